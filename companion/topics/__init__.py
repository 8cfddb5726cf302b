"""A topic is a room: its data, models, constructions by hand, baselines, probes, recipes and exercises."""
