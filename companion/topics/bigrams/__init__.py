"""Trigger bigrams and induction heads (lesson 06)."""
