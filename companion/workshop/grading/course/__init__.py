"""Keeping a class: hand-ins, deadlines, marks, feedback, gradebook, learning platforms."""
