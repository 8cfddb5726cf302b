"""Reading a notebook without running it: what a lesson asks, what a student answered, what is odd."""
