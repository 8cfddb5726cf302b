"""The exercises on in-context regression: what the two lessons import as ``exercises``.

They stand in several files, which are loaded when an exercise is asked for.
"""

from importlib import import_module

FILES = ("impostor", "in_context", "recurrent")


def _exercises() -> dict[str, object]:
    kind = import_module("companion.lesson.exercise").Exercise
    modules = [import_module(f"{__name__}.{file}") for file in FILES]
    return {name: value for module in modules for name, value in vars(module).items() if isinstance(value, kind)}


def __getattr__(name: str) -> object:
    found = {} if name.startswith("__") else _exercises()
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no exercise {name!r}")
    return found[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *_exercises()])
