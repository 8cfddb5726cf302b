"""The exercises on in-context regression: what the two lessons import as ``exercises``.

They stand in several files; each is loaded when one of its names is asked for.
"""

from importlib import import_module

FILES = {
    "recurrent": ("ask_again", "interval", "lstm_step", "memory_test", "ogd_step"),
    "spectra": ("conjugate_gradient", "descent_circuits", "growth_r2", "measured_filter", "newton_share"),
    "impostor": ("fool_the_rate_test",),
    "states": ("delta_write", "recall", "rls_states", "rls_update"),
    "in_context": ("gd_closed_form", "newton_layer", "newton_step", "triplet_tokens"),
    "reading": ("readout_predictions", "similarity_of_errors"),
}
PLACES = {name: file for file, names in FILES.items() for name in names}
__all__ = list(PLACES)


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no exercise {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PLACES])
