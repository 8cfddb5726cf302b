"""Transformers that nobody trained: explicit weights that carry out an algorithm."""
