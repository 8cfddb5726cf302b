"""Associative memories (lesson 05)."""
