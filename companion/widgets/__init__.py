"""What a learner moves and fills in: `Explorer`, sliders on a figure, and `Predictions`, which are asked for and come
back.
"""

from companion.widgets.explorer import Explorer
from companion.widgets.predictions import Predictions

__all__ = ["Explorer", "Predictions"]
