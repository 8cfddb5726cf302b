"""What learned data structures are compared with: searches, search trees, sketches of streams."""
