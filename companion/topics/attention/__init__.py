"""Attention: weights, heads, residual stream (lesson 01)."""
