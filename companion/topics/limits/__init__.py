"""What one pass can compute (lesson 12)."""
