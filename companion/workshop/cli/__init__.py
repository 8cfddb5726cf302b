"""The machinery behind the commands. What people read to learn never imports it."""
