"""What learns, and what is built by hand from explicit weights."""
