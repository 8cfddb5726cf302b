"""What the course measured itself, as tables, each beside the module of its topic whose functions make it again."""
