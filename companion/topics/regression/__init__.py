"""Linear regression in context (lessons 02 and 03)."""
