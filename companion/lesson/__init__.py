"""What makes a notebook a lesson: exercises and their checks, claims, figures, widgets."""
