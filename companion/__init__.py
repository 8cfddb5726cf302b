"""The companion of the course *Transformers as Algorithms*: samplers, models, baselines and probes that the lessons
share.

Importing it loads nothing heavy: take what you need from its rooms, e.g. ``from companion.baselines import
regression``.
"""

__version__ = "0.2.0"
