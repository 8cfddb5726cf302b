"""A bench for circuits: which heads, MLPs and wires of a language model bring a behaviour about, and a score for it."""
