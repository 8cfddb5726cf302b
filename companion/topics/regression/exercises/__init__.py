"""The exercises on in-context regression: what the two lessons import as ``exercises``.

They stand in several files; each is loaded when one of its names is asked for.
"""

from importlib import import_module

FILES = {
    "in_context": (
        "conjugate_gradient",
        "descent_circuits",
        "gd_closed_form",
        "growth_r2",
        "measured_filter",
        "newton_layer",
        "newton_share",
        "newton_step",
        "readout_predictions",
        "similarity_of_errors",
        "triplet_tokens",
    ),
    "impostor": ("fool_the_rate_test",),
    "recurrent": (
        "ask_again",
        "delta_write",
        "interval",
        "lstm_step",
        "memory_test",
        "ogd_step",
        "recall",
        "rls_states",
        "rls_update",
    ),
}
PLACES = {name: file for file, names in FILES.items() for name in names}
__all__ = list(PLACES)


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no exercise {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PLACES])
