"""Near misses of an answer as a whole: what is done to its arguments, its statements and its result."""

import ast
import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from companion.lesson.near_misses.carried import LATE, carried_edits
from companion.lesson.near_misses.loops import loops
from companion.lesson.near_misses.trees import BEFORE, SLOT, Edit, Path, made, statement
from companion.lesson.near_misses.words import ORDINALS, SIZE, Words, along


def sizes_of(draws: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], list[list[tuple[str, int]]]]:
    """The sizes of an exercise's arguments, as code and in words, and which dimensions have each of them: those that
    are equal in every draw are one. A whole number among the arguments may be a size, too.
    """
    tied: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    for name, value in draws[0].items():
        if isinstance(value, Tensor):
            for dim in range(value.ndim):
                tied.setdefault(tuple(draw[name].shape[dim] for draw in draws), []).append((name, dim))
    sizes = []
    for places in tied.values():
        name, dim = places[0]
        ndim = draws[0][name].ndim
        kind = (
            "rows"
            if dim == 0 and ndim > 1
            else "columns"
            if dim == ndim - 1 and ndim > 1
            else "entries"
            if ndim == 1
            else f"places along the {ORDINALS[dim]} axis"
        )
        sizes.append((f"{name}.shape[{dim}]", SIZE.format(kind, name)))
    for name, value in draws[0].items():
        if type(value) is int:
            sizes.append((name, name))
    return sizes, list(tied.values())


def sides_of(draws: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The larger and the smaller side of the matrices that are now wide, now high, and never square."""
    sides = []
    for name, value in draws[0].items():
        shapes = [tuple(draw[name].shape) for draw in draws] if isinstance(value, Tensor) else [()]
        if len(shapes[0]) == 2 and {(rows > columns) - (rows < columns) for rows, columns in shapes} == {1, -1}:
            sides += [
                (f"max({name}.shape)", f"the larger side of {name}"),
                (f"min({name}.shape)", f"the smaller side of {name}"),
            ]
    return sides


def whole_edits(tree: ast.FunctionDef, draws: list[dict[str, Any]], words: Words) -> Iterator[Edit]:
    """Edits of no single expression."""
    yield from _exchanged(tree, draws[0])
    for name, value in draws[0].items():
        if isinstance(value, Tensor):
            yield from _tensor(name, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number(name, value)
    _, tied = sizes_of(draws)
    for places in tied:
        yield from _parts(places, draws[0])
    yield from _statements(tree, words)
    yield from loops(tree, words)
    yield from carried_edits(tree, words)
    yield from _returns(tree, draws[0], words)


def _before(text: str, says: str, kind: str, cost: float) -> Edit:
    return Edit(SLOT, lambda _: statement(text), says, kind, cost)


def _exchanged(tree: ast.FunctionDef, inputs: dict[str, Any]) -> Iterator[Edit]:
    names = list(inputs)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if isinstance(inputs[first], Tensor) == isinstance(inputs[second], Tensor):
                yield _before(
                    f"{first}, {second} = {second}, {first}",
                    f"{first} and {second} are exchanged",
                    "arguments exchanged",
                    0.9,
                )
        for other in names:
            if (
                other != first
                and isinstance(inputs[other], Tensor)
                and isinstance(inputs[first], Tensor)
                and inputs[other].ndim == inputs[first].ndim
            ):
                yield _before(
                    f"{first} = {other}", f"{other} is used in place of {first}", f"{other} for {first}", 1.15
                )


def _number(name: str, value: float) -> Iterator[Edit]:
    table = [
        ("1", f"{name} is not used", 1), (f"1 / {name}", f"{name} enters with its inverse: divide by it, or multiply by it, the other way round", 1),
        (f"-{name}", f"the sign of {name} is turned", 1), (f"{name} ** 2", f"{name} is squared", 1), (f"{name} ** 0.5", f"the square root of {name} is taken", 1),
        (f"1 - {name}", f"1 minus {name} is used where {name} belongs", 1.2), (f"2 * {name}", f"{name} is doubled", 1.2), (f"{name} / 2", f"{name} is halved", 1.2),
        (f"{name} + 1", f"one more than {name} is used", 1.1), (f"{name} - 1", f"one less than {name} is used", 1.1),
        ("0", f"{name} is set to 0", 1.3), (f"2 ** {name}", f"2 to the power of {name} is used", 1.4),
        (f"{name} + 2", f"two more than {name} is used", 1.4), (f"{name} - 2", f"two less than {name} is used", 1.4),
    ]  # fmt: skip
    if isinstance(value, float):
        table += [
            (f"round({name})", f"{name} is rounded", 1),
            (f"int({name})", f"{name} is cut to a whole number", 1),
            (f"{name} ** 3", f"{name} is cubed", 1.5),
        ]
    for text, says, cost in table:
        yield _before(f"{name} = {text}", says, f"number {text.replace(name, 'x')}", cost)


def _tensor(name: str, value: Tensor) -> Iterator[Edit]:
    table: list[tuple[str, str, float]] = []
    for dim in range(value.ndim):
        where = along("its", dim, value.ndim)
        table += [
            (f"{name}.flip({dim})", f"{name} is read backwards{where}", 1.4),
            (
                f"{name}.roll(1, {dim})",
                f"{name} is shifted by one place{where}, and what leaves at the end comes in at the start",
                1.4,
            ),
            (
                f"{name}.roll(-1, {dim})",
                f"{name} is shifted back by one place{where}, and what leaves at the start comes in at the end",
                1.4,
            ),
        ]
        if value.is_floating_point():
            table += [
                (
                    f"{name}.sum({dim}, keepdim=True)",
                    f"{name} is summed{where} beforehand, so that one sum stands for all",
                    1.3,
                )
            ] * (value.ndim > 1)
            table += [
                (
                    f"{name} - {name}.mean({dim}, keepdim=True)",
                    f"{name} is centred{where}: its mean is taken away",
                    1.3,
                ),
                (f"{name} / {name}.norm(dim={dim}, keepdim=True)", f"{name} is brought to length 1{where}", 1.3),
                (f"{name}.softmax({dim})", f"a softmax of {name} is taken{where}", 1.5),
                (f"{name} / {name}.sum({dim}, keepdim=True)", f"{name} is divided by its sum{where}", 1.4),
                (
                    f"{name}.mean({dim}, keepdim=True).expand_as({name})",
                    f"the mean of {name}{where} stands for its single values",
                    1.4,
                ),
                (f"{name}.sort({dim}).values", f"{name} is sorted{where}", 1.5),
                (f"{name}.cumsum({dim})", f"running sums of {name} are used{where}", 1.7),
                (
                    f"torch.cat([torch.zeros_like({name}.narrow({dim}, 0, 1)), {name}.narrow({dim}, 0, {name}.shape[{dim}] - 1)], {dim})",
                    f"{name} is shifted by one place{where}",
                    1.4,
                ),
            ]
    if value.ndim >= 2:
        table += [(f"{name}.mT", f"{name} is transposed, and should not be", 1)]
    if value.is_floating_point():
        table += [
            (f"-{name}", f"the sign of {name} is turned", 1), (f"{name}.abs()", f"{name} loses its sign", 1.3), (f"{name}.square()", f"{name} is squared", 1.3),
            (f"torch.ones_like({name})", f"{name} is not used", 1.2), (f"torch.zeros_like({name})", f"{name} is left out", 1.25),
            (f"2 * {name}", f"{name} is doubled", 1.5), (f"{name} / 2", f"{name} is halved", 1.5), (f"1 - {name}", f"1 minus {name} is used where {name} belongs", 1.2),
            (f"{name}.exp()", f"the exponential of {name} is taken", 1.6), (f"{name}.abs().sqrt()", f"the square root of {name} is taken", 1.4), (f"{name} + 1", f"1 is added to {name}", 1.3),
            (f"{name} - {name}.mean()", f"the mean of all of {name} is taken away", 1.4), (f"{name} / {name}.norm()", f"{name} is brought to length 1 as a whole", 1.4),
            (f"{name} / {name}.sum()", f"{name} is divided by its sum", 1.4), (f"{name}.sign()", f"only the sign of {name} counts", 1.3), (f"{name}.clamp_min(0)", f"negative values of {name} are set to 0", 1.5),
        ]  # fmt: skip
        if value.ndim == 2:
            table += [
                (f"{name}.triu()", f"the lower triangle of {name} is left out", 1.7),
                (f"{name}.tril()", f"the upper triangle of {name} is left out", 1.7),
            ]
        if value.ndim == 2 and value.shape[0] == value.shape[1]:
            table += [
                (f"({name} + {name}.mT) / 2", f"{name} is made symmetric", 1.6), (f"torch.diag({name}.diagonal())", f"only the diagonal of {name} is used", 1.1),
                (f"{name} - torch.diag({name}.diagonal())", f"the diagonal of {name} is left out", 1.1), (f"{name} + torch.eye(len({name})).to({name})", f"the identity is added to {name}", 1.4),
                (f"torch.linalg.inv({name})", f"{name} is inverted", 1.4), (f"torch.eye(len({name})).to({name})", f"{name} is not used", 1.2),
            ]  # fmt: skip
    else:
        table += [
            (f"{name} + 1", f"{name} is taken one too high", 1.2),
            (f"{name} - 1", f"{name} is taken one too low", 1.2),
            (f"torch.zeros_like({name})", f"{name} is not used", 1.3),
            (f"{name}.abs()", f"{name} loses its sign", 1.2),
        ]
        if value.ndim == 1:
            table += [(f"torch.arange(len({name}))", f"{name} is not used: places are taken in order", 1)]
        if value.ndim == 2:
            table += [
                (f"{name}[:, :1].expand_as({name})", f"only the first column of {name} counts", 1.3),
                (f"{name}[:1].expand_as({name})", f"only the first row of {name} counts", 1.3),
            ]
    for text, says, cost in table:
        yield _before(f"{name} = {text}", says, f"argument {text.replace(name, 'x')}", cost)


def _parts(places: list[tuple[str, int]], inputs: dict[str, Any]) -> Iterator[Edit]:
    """Only a part of what the arguments share: the first row, all but the last, every other."""
    names = " and ".join(dict.fromkeys(name for name, _ in places))
    name, dim = places[0]
    last = inputs[name].ndim - 1
    what = (
        "entry"
        if last == 0
        else "row"
        if dim == 0
        else "column"
        if dim == last
        else f"place along the {ORDINALS[dim]} axis"
    ) + f" of {names}"
    for part, says, cost in (
        (":1", f"only the first {what} counts", 1.1), ("-1:", f"only the last {what} counts", 1.1),
        (":-1", f"the last {what} is left out", 1.35), ("1:", f"the first {what} is left out", 1.35),
        (":2", f"only two of the {what.replace('entry', 'entries').replace('row', 'rows').replace('column', 'columns')} count", 1.8),
    ):  # fmt: skip
        values = [f"{name}[{':, ' * dim}{part}]" for name, dim in places]
        yield (
            _before(f"{', '.join(name for name, _ in places)} = {', '.join(values)}", says, f"part {part}", cost)
            if len({name for name, _ in places}) == len(places)
            else _twice(places, part, says, cost)
        )


def _twice(places: list[tuple[str, int]], part: str, says: str, cost: float) -> Edit:
    cuts: dict[str, str] = {}
    for name, dim in places:
        cuts[name] = cuts.get(name, name) + f"[{':, ' * dim}{part}]"
    return _before(f"{', '.join(cuts)}, = {', '.join(cuts.values())},", says, f"part {part}", cost)


def _blocks(node: ast.AST, path: Path) -> Iterator[tuple[Path, list[ast.stmt]]]:
    yield (*path, ("body", None)), node.body
    for index, inner in enumerate(node.body):
        if isinstance(inner, ast.For | ast.FunctionDef):
            yield from _blocks(inner, (*path, ("body", index)))


def _statements(tree: ast.FunctionDef, words: Words) -> Iterator[Edit]:
    for path, body in _blocks(tree, ()):
        for index, line in enumerate(body):
            here = (*path[:-1], ("body", index))
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call):
                said = words.about(line.value).removeprefix("the part with ")
                yield Edit(
                    here,
                    lambda _: ast.Pass(),
                    f"a step is missing: {said} should be changed in place",
                    "statement left out",
                    1,
                )
            if not isinstance(line, ast.Assign):
                continue
            target = line.targets[0]
            names = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
            kept = [
                name
                for name in names
                if any(
                    isinstance(node, ast.Name) and node.id == BEFORE + name
                    for other in body
                    for node in ast.walk(other)
                )
            ]
            if kept and not names[0].startswith(BEFORE):
                yield Edit(
                    here,
                    lambda _: ast.Pass(),
                    f"a step is missing: {' and '.join(kept)} should be changed once more",
                    "statement left out",
                    1,
                )
                yield Edit(
                    here,
                    lambda line: ast.If(ast.Constant(True), [line, line], []),
                    f"a step is done twice: that which changes {' and '.join(kept)}",
                    "statement doubled",
                    1.4,
                )
            if isinstance(target, ast.Tuple) and not isinstance(line.value, ast.Tuple):
                yield from _unpacked(here, target)
            if isinstance(target, ast.Tuple) and isinstance(line.value, ast.Tuple):
                for order in ([0, 1], [1, 0]):

                    def in_turn(line: ast.Assign, order=order) -> ast.If:
                        pairs = list(zip(line.targets[0].elts, line.value.elts, strict=True))
                        return ast.If(ast.Constant(True), [ast.Assign([pairs[i][0]], pairs[i][1]) for i in order], [])

                    if len(target.elts) == 2:
                        first, second = (names[i] for i in order)
                        yield Edit(
                            here,
                            in_turn,
                            f"{second} is computed from the new {first}; both follow from the old ones",
                            "one after the other",
                            1,
                        )
                    for i in (0, 1):

                        def alone(line: ast.Assign, i=i) -> ast.Assign:
                            return ast.Assign([line.targets[0].elts[i]], line.value.elts[i])

                        yield Edit(
                            here, alone, f"only {names[i]} is changed; {names[1 - i]} must be, too", "half a step", 1.1
                        )


def _unpacked(path: Path, target: ast.Tuple) -> Iterator[Edit]:
    """A result taken apart in another order."""
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    for i in range(len(names)):
        for j in range(i):

            def change(line: ast.Assign, i=i, j=j) -> ast.Assign:
                elts = list(line.targets[0].elts)
                elts[i], elts[j] = elts[j], elts[i]
                return ast.Assign([ast.Tuple(elts, ast.Store())], line.value)

            yield Edit(
                path,
                change,
                f"{names[j]} and {names[i]} are exchanged where the result is taken apart",
                "order of parts",
                0.95,
            )


def _returns(tree: ast.FunctionDef, inputs: dict[str, Any], words: Words) -> Iterator[Edit]:
    path: Path = (("body", len(tree.body) - 1), ("value", None))
    if not isinstance(tree.body[-1], ast.Return):
        return
    for name, value in inputs.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            first = (
                f"{BEFORE}{name}"
                if any(isinstance(node, ast.Name) and node.id == BEFORE + name for node in ast.walk(tree))
                else name
            )
            for text, says, cost in (
                (f"X - {first}", f"the change of {name} alone is returned, not the new {name}", 0.9),
                (f"X + {first}", f"{name} is added to the answer, and should not be", 1),
                (f"{first} - X", f"this is {name} minus the answer", 1),
                (f"X * {first}", f"the answer is multiplied by {name}", 1.4),
                (f"({first} + X) / 2", f"this is half way between {name} and the answer", 1.3),
            ):
                yield Edit(path, lambda now, text=text: made(text, X=now), says, f"answer and {name}", cost)
    for text, says, cost in (
        *_bases(tree),
        ("X + X.transpose(0, 1)", "the answer's transpose is added to it", 1.35), ("torch.softmax(X, -1)", "a softmax of the answer is taken", 1.5), ("X / X.norm()", "the answer is brought to length 1; leave it as it is", 1.1),
        ("X.mean(0, keepdim=True).expand_as(X)", "the answer is averaged over its first axis", 1.5),
        ("X.flatten().flip(0).view(X.shape)", "the answer is in reversed order", 1.2),
        ("X.to(torch.float64).exp()", "this is the exponential of the answer", 1.3), ("X.sum()", "all is summed up to one number", 1.4), ("X.mean()", "all is averaged to one number", 1.4),
        ("X.mean(-1)", "the last axis is averaged away", 1.4), ("X.sum(-1)", "the last axis is summed away", 1.4), ("X.mean(0)", "the first axis is averaged away", 1.4), ("X.sum(0)", "the first axis is summed away", 1.4),
        ("X[0]", "only the first of what is due is returned", 1.4), ("X[-1]", "only the last of what is due is returned", 1.4), ("X[:, 0]", "only the first column of the answer is returned", 1.4), ("X[:, -1]", "only the last column of the answer is returned", 1.4),
        *LATE, ("X[1:]", "the first of what is due is missing", 1.4), ("X[:-1]", "the last of what is due is missing", 1.4), ("X[:, 1:]", "the first column of the answer is missing", 1.4), ("X[:, :-1]", "the last column of the answer is missing", 1.4),
    ):  # fmt: skip
        yield Edit(path, lambda now, text=text: made(text, X=now), says, f"answer {text}", cost)
    known = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith(BEFORE)
    ]
    for name in dict.fromkeys(known):
        said = words.noun(ast.Name(name))
        yield Edit(
            path,
            lambda _, name=name: ast.Name(name, ast.Load()),
            f"what is returned is {said}; that is a step on the way",
            "step returned",
            1.2,
        )


def _bases(tree: ast.FunctionDef) -> list[tuple[str, str, float]]:
    """The answer with logarithms of another base."""
    in_bits = any(text in ast.unparse(tree) for text in ("log2", "log(2)"))
    if in_bits:
        return [(f"X * {math.log(2)}", "the logarithm is the natural one; for bits it has base 2", 0.75)]
    return [
        (f"X / {math.log(base)}", f"the logarithm has base {base}; take the natural logarithm", 0.75)
        for base in (2, 10)
    ]
