"""Training that ends once a test has seen what it asks for, or is interrupted."""

from collections.abc import Callable
from typing import Any

from torch import nn

from companion.core.recipe import Recipe


class _EnoughError(Exception):
    """Carries the model out of its run."""


def train_until(passes: Callable[[nn.Module], bool], plan: Recipe, **how: Any) -> nn.Module:
    """The model of a run that stops where the model passes, asked ``every`` so many steps; else that of the whole run.

    ``how``: the run's other settings, those of `companion.core.recipe.Recipe.train`.
    """

    def look(model: nn.Module) -> None:
        if passes(model):
            raise _EnoughError(model)

    try:
        return plan.train(each=look, **how)[0]
    except _EnoughError as enough:
        return enough.args[0]


def stops_after(many: int, draw: Callable[..., Any]) -> Callable[..., Any]:
    """The same ``draw``, which somebody interrupts after so many batches."""
    calls = iter(range(many))

    def drawn(*how: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return draw(*how)

    return drawn
