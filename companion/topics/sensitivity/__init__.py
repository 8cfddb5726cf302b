"""Sensitivity and simplicity bias (lesson 10)."""
