"""Layers, one's own and the course's, put to the course's tasks."""
