"""Near misses of a value on its way: scaled, turned, normalised, masked, shifted."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from companion.lesson.near_misses.trees import Path
from companion.lesson.near_misses.words import Words, along


@dataclass(frozen=True)
class Site:
    """An expression of the answer: where it is, what is above it, and what it was on a drawn input."""

    path: Path
    node: ast.expr
    above: tuple[ast.AST, ...]
    value: Any
    returned: bool


@dataclass(frozen=True)
class Scene:
    """What an edit may know about the answer: its words, what its variables were, and the sizes of its arguments and of
    what it makes on the way, as code and in words.
    """

    words: Words
    variables: dict[str, Any]
    sizes: list[tuple[str, str]]
    local_sizes: list[tuple[str, str]]
    sides: list[tuple[str, str]]


def sizes(node: ast.expr, said: str, scene: Scene) -> Iterator[tuple]:
    own = ast.unparse(node)
    yield "1", f"is not divided by {said}, or not multiplied by it", "size left out", 1.05
    yield "(X - 1)", f"one less than {said} is used", "size off by one", 1.2
    yield "(X + 1)", f"one more than {said} is used", "size off by one", 1.2
    yield "X ** 0.5", f"the square root of {said} is used, where {said} itself is due", "root", 1.3
    yield "X ** 2", f"the square of {said} is used", "square", 1.4
    for name, value in scene.variables.items():
        if isinstance(value, Tensor) and value.is_floating_point() and value.ndim == 2:
            for text, of in ((f"{name}.sum(0)", "columns"), (f"{name}.sum(1, keepdim=True)", "rows")):
                says = f"the sums of the {of} of {name} are used where {said} belongs"
                yield text, says, "sum for a size", 1.3
                yield f"{text}.clamp_min(1e-300)", says, "sum for a size", 1.3
    for text, words in scene.sizes + scene.local_sizes + scene.sides:
        if text != own:
            yield text, f"{words} is used where {said} belongs", "another size", 1
            yield f"X * {text}", f"besides {said}, {words} comes in", "another size too", 1.6


def scalars(said: str) -> Iterator[tuple]:
    yield "(X + 1)", f"one more than {said} is used", "off by one", 1.3
    yield "(X - 1)", f"one less than {said} is used", "off by one", 1.3
    yield "2 * X", f"{said} is doubled", "doubled", 1.5
    yield "X / 2", f"{said} is halved", "halved", 1.5
    yield "X ** 2", f"{said} is squared", "squared", 1.5


def wraps(site: Site, scene: Scene) -> Iterator[tuple]:
    """What may be done to any tensor on its way."""
    value, node = site.value, site.node
    said = "the answer" if site.returned else scene.words.noun(node)
    whole = site.returned
    over = site.above[-1] if site.above else None
    term = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Add | ast.Sub)
    argument = isinstance(over, ast.Call | ast.Attribute) or (len(site.above) > 1 and isinstance(over, ast.keyword))
    step = whole or term or argument or isinstance(node, ast.Call) or isinstance(over, ast.Assign)
    base = 0.8 if whole else 1.6
    if value.ndim >= 2 and not (isinstance(node, ast.Attribute) and node.attr in ("mT", "T")):
        name = "the answer is transposed" if whole else f"{said} is transposed, and should not be"
        yield "X.mT", name, "transposed", base + 0.1
    counts = (
        value.is_floating_point() and value.numel() and not (value % 1).any() and value.min() >= 0 and value.max() > 1
    )
    if isinstance(node, ast.Name) and counts:
        yield "X.sign()", f"only whether {said} is above 0 counts here, not how much it is", "sign alone", 1.3
    if value.dtype.is_floating_point:
        yield "-X", "the sign is flipped" if whole else f"the sign of {said} is wrong", "sign", base
        if step:
            yield "X.abs()", f"{said} loses its sign", "sign lost", base + 0.3
            yield "X.square()", f"{said} is squared", "squared", base + 0.4
            yield "X.abs().sqrt()", f"the square root of {said} is taken", "root taken", base + 0.5
            yield "(X + 1)", f"1 is added to {said}", "1 added", base + 0.6
            yield "(X - 1)", f"1 is taken from {said}", "1 taken", base + 0.6
            share = isinstance(node, ast.Call) and scene.words.operation(node)[0] in ("sigmoid", "softmax")
            yield "(1 - X)", f"this is 1 minus {said}", "complement", base + (-0.1 if share else 0.5)
            yield "1 / X", f"{said} is inverted: this is 1 over it", "inverse", base + 0.6
            yield "X.exp()", f"the exponential of {said} is taken", "exp taken", base + 0.7
            yield "X.log()", f"the logarithm of {said} is taken", "log taken", base + 0.7
            yield "X.clamp_min(0)", f"negative values of {said} are set to 0", "clamped", base + 0.6
            yield "X.clamp(0, 1)", f"{said} is kept between 0 and 1", "clamped", base + 0.7
            yield "X.sign()", f"only the sign of {said} is kept", "sign alone", base + 0.7
            yield "X.round()", f"{said} is rounded", "rounded", base + 0.7
            yield (
                "2 * X",
                "the answer is twice what it should be" if whole else f"{said} is doubled",
                "doubled",
                base + 0.5,
            )
            yield (
                "X / 2",
                "the answer is half of what it should be" if whole else f"{said} is halved",
                "halved",
                base + 0.5,
            )
            if value.ndim >= 2 and value.shape[-1] == value.shape[-2] and value.shape[-1] > 1:
                yield (
                    "X.tril()",
                    f"{said} is masked: what comes later is hidden, and should not be",
                    "masked",
                    base + 0.4,
                )
                yield (
                    "X.triu()",
                    f"{said} is masked: what comes before is hidden, and should not be",
                    "masked",
                    base + 0.5,
                )
                yield (
                    "(X - torch.diag_embed(X.diagonal(dim1=-2, dim2=-1)))",
                    f"the diagonal of {said} is left out",
                    "diagonal",
                    base + 0.4,
                )
            for text, words in scene.sizes + scene.local_sizes * whole:
                yield f"X / {text}", f"{said} is divided by {words}", f"/ {text}", base + 0.3
                yield f"X * {text}", f"{said} is multiplied by {words}", f"* {text}", base + 0.35
                yield (
                    f"X / {text} ** 0.5",
                    f"{said} is divided by the square root of {words}",
                    f"/ sqrt {text}",
                    base + 0.3,
                )
                yield (
                    f"X * {text} ** 0.5",
                    f"{said} is multiplied by the square root of {words}",
                    f"* sqrt {text}",
                    base + 0.4,
                )
            for dim in range(value.ndim):
                where = along("the", dim, value.ndim)
                yield (
                    f"X / X.norm(dim={dim}, keepdim=True)",
                    f"{said} is brought to length 1{where}",
                    "normalised",
                    base + 0.5,
                )
                yield (
                    f"X / X.sum({dim}, keepdim=True)",
                    f"{said} is divided by its sum{where}",
                    "normalised by sum",
                    base + 0.5,
                )
                yield f"X.softmax({dim})", f"a softmax of {said} is taken{where}", "softmax taken", base + 0.5
                yield (
                    f"(X - X.mean({dim}, keepdim=True))",
                    f"the mean of {said} is taken away{where}",
                    "centred",
                    base + 0.5,
                )
                yield (
                    f"X.mean({dim}, keepdim=True).expand_as(X)",
                    f"{said} is replaced by its mean{where}",
                    "averaged",
                    base + 0.6,
                )
                yield f"X.cumsum({dim})", f"{said} is summed up step by step{where}", "running sum", base + 0.7
    elif value.dtype.is_signed and step:
        yield (
            "(X + 1)",
            "one too many: the answer is 1 too large" if whole else f"{said} is one too large",
            "off by one",
            base,
        )
        yield (
            "(X - 1)",
            "one too few: the answer is 1 too small" if whole else f"{said} is one too small",
            "off by one",
            base,
        )
        yield "2 * X", f"{said} is doubled", "doubled", base + 0.4
        yield "X.clamp(min=0)", f"negative values of {said} are set to 0", "clamped", base + 0.6
    elif not value.dtype.is_signed:
        yield "~X", "True and False are exchanged" if whole else f"the condition is inverted: {said}", "inverted", base
    if step:
        for dim in range(value.ndim):
            where = along("the", dim, value.ndim)
            yield f"X.flip({dim})", f"{said} is in reversed order{where}", "reversed", base + 0.3
            yield (
                f"X.roll(1, {dim})",
                f"{said} is shifted by one place{where}, what leaves at the end comes in at the start",
                "shifted",
                base + 0.4,
            )
            yield f"X.roll(-1, {dim})", f"{said} is shifted by one place back{where}", "shifted", base + 0.4
