"""What instructors and maintainers use: grading, the site, the commands. What people read to learn never imports it."""
