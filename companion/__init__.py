"""The companion of the course *Transformers as Algorithms*: samplers, models, baselines and probes that the lessons
share.

Importing it loads nothing heavy: take what you need from its rooms, e.g. ``from companion.baselines import
regression``.
"""

__version__ = "0.2.0"
SCALES = ("smoke", "course", "paper")  # how large a run is: seconds; a laptop's CPU; the published sizes, for a GPU
