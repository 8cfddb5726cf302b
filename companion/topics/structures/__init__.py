"""Learned data structures (lesson 08)."""
