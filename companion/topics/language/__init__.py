"""Language: the circuits that were written by hand, in a language model that others trained (lesson 15)."""
