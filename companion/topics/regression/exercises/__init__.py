"""The exercises on in-context regression: what the two lessons import as ``exercises``."""

from companion.topics.regression.exercises.in_context import gd_closed_form, newton_layer, newton_step, triplet_tokens
from companion.topics.regression.exercises.reading import readout_predictions, similarity_of_errors
from companion.topics.regression.exercises.recurrent import ask_again, interval, lstm_step, ogd_step
from companion.topics.regression.exercises.spectra import (
    conjugate_gradient,
    descent_circuits,
    growth_r2,
    measured_filter,
    newton_share,
)
from companion.topics.regression.exercises.states import delta_write, recall, rls_states, rls_update

__all__ = [
    "ask_again",
    "conjugate_gradient",
    "delta_write",
    "descent_circuits",
    "gd_closed_form",
    "growth_r2",
    "interval",
    "lstm_step",
    "measured_filter",
    "newton_layer",
    "newton_share",
    "newton_step",
    "ogd_step",
    "readout_predictions",
    "recall",
    "rls_states",
    "rls_update",
    "similarity_of_errors",
    "triplet_tokens",
]
