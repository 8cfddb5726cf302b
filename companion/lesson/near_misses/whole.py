"""What is made of a whole answer, whatever it is inside."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

SETTLED = 30  # steps, after which little changes
Whole = tuple[Callable[..., Tensor], str, float]


def of_the_whole(answer: Callable[..., Tensor], draws: list[dict[str, Any]]) -> Iterator[Whole]:
    """Yield the answer from the end to the start and, where it has the form of an argument, the step done twice and until
    nothing changes; each with what is wrong with it and its cost.
    """
    with torch.no_grad():
        shapes = [tuple(answer(**draw).shape) for draw in draws]
    given = {name: [getattr(draw[name], "shape", None) for draw in draws] for name in draws[0]}
    pairs = {name: list(zip(sizes, shapes, strict=True)) for name, sizes in given.items()}
    long = {name for name, each in pairs.items() if all(size and size[:1] == shape[:1] for size, shape in each)}
    if long:

        def from_the_end(*inputs: Any) -> Tensor:
            named = zip(draws[0], inputs, strict=True)
            return answer(*(value.flip(0) if name in long else value for name, value in named)).flip(0)

        yield from_the_end, "all runs from the end to the start", 1.1
    for at, name in enumerate(draws[0]):
        if name in long and all(size == shape for size, shape in pairs[name]):
            yield _repeated(answer, at, 2), "this is the answer after two steps, not after one", 1
            yield _repeated(answer, at, SETTLED), "the step is done until nothing changes, not once", 1.1


def _repeated(answer: Callable[..., Tensor], at: int, times: int) -> Callable[..., Tensor]:
    def repeated(*inputs: Any) -> Tensor:
        for _ in range(times):
            inputs = (*inputs[:at], answer(*inputs), *inputs[at + 1 :])
        return inputs[at]

    return repeated
