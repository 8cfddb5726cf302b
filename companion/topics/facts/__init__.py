"""Factual recall (lesson 07)."""
