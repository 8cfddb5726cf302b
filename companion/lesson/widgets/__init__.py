"""What a learner moves and fills in: `Explorer`, sliders on a figure, and `Predictions`, which are asked for and come
back.
"""

from companion.lesson.widgets.explorer import Explorer
from companion.lesson.widgets.predictions import Predictions

__all__ = ["Explorer", "Predictions"]
