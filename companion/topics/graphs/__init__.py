"""Graph connectivity (lesson 11)."""
