"""The exercises on in-context regression: what the two lessons import as ``exercises``."""

from companion.checks.regression.in_context import (
    gd_closed_form,
    newton_layer,
    newton_step,
    readout_predictions,
    similarity_of_errors,
    triplet_tokens,
)
from companion.checks.regression.recurrent import ask_again, delta_write, interval, lstm_step, ogd_step, rls_update

__all__ = [
    "ask_again",
    "delta_write",
    "gd_closed_form",
    "interval",
    "lstm_step",
    "newton_layer",
    "newton_step",
    "ogd_step",
    "readout_predictions",
    "rls_update",
    "similarity_of_errors",
    "triplet_tokens",
]
