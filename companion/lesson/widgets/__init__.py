"""What a learner moves and fills in: `Explorer`, sliders on a figure, and `Predictions`, which are asked for and come
back.
"""
