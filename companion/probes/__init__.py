"""How to look inside a model: readouts of its layers, and how close what they say is to an algorithm."""
