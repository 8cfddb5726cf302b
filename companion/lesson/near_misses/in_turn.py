"""Near misses that are made of the whole answer: its parts in turn, the step done twice."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.words import ORDINALS


def part_by_part(answer: Callable[..., Tensor], names: list[str], changed: str, dim: int) -> Callable[..., Tensor]:
    """The answer with the parts of one argument along an axis replaced one after the other, so that each sees those
    before it replaced.

    ``answer``: the course's own.
    ``names``: of its parameters, in order.
    ``changed``: the one whose parts are replaced; the answer has its shape.
    ``dim``: the axis.
    """
    at = names.index(changed)

    def sequential(*arguments: Any) -> Tensor:
        new = arguments[at].clone()
        for i in range(new.shape[dim]):
            after = answer(*arguments[:at], new.clone(), *arguments[at + 1 :])
            new.select(dim, i).copy_(after.select(dim, i))
        return new

    return sequential


def twice(answer: Callable[..., Tensor], names: list[str], changed: str) -> Callable[..., Tensor]:
    """The answer, taken for the argument, and the step done again."""
    at = names.index(changed)

    def again(*arguments: Any) -> Tensor:
        once = answer(*arguments)
        return answer(*arguments[:at], once, *arguments[at + 1 :])

    return again


def combined(
    tree: ast.FunctionDef, draws: list[dict[str, Any]], answer: Callable[..., Tensor]
) -> Iterator[tuple[Callable[..., Tensor], str, float]]:
    """Near misses that are made of the whole answer: rows in turn, the step done twice."""
    names = list(draws[0])
    with torch.no_grad():
        shapes = [tuple(answer(**draw).shape) for draw in draws]
    for name in names:
        if all(
            isinstance(draw[name], Tensor) and tuple(draw[name].shape) == shape and len(shape) > 0
            for draw, shape in zip(draws, shapes, strict=True)
        ):
            for dim in range(draws[0][name].ndim):
                parts = "rows" if dim == 0 else f"parts along the {ORDINALS[dim]} axis"
                yield (
                    part_by_part(answer, names, name, dim),
                    f"the {parts} of {name} are replaced one after the other, so that later ones see the new ones; all follow from the old {name}",
                    1,
                )
            yield twice(answer, names, name), "this is the answer after two steps; make one", 1
