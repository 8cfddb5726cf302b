"""Running a stranger's code: behind walls, within limits, with the course without its answers."""
