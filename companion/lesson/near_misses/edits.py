"""One step away from an answer, expression by expression: what people write instead, and how to say it."""

import ast
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.call_parts import inner, with_inner
from companion.lesson.near_misses.calls import call_edits
from companion.lesson.near_misses.conditions import COMPARISONS, comparisons, signs
from companion.lesson.near_misses.operators import operators
from companion.lesson.near_misses.order import orders_of_call, orders_of_operator
from companion.lesson.near_misses.ratios import ratios
from companion.lesson.near_misses.tables import joined_shifts, lookups, of_bits, shifts
from companion.lesson.near_misses.trees import BEFORE, Edit, made
from companion.lesson.near_misses.values import Scene, Site, scalars, sizes, wraps
from companion.lesson.near_misses.words import OPERATIONS, size_of

SLICES = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two", ":-2": "all but the last two",
    "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip


def expression_edits(site: Site, scene: Scene) -> Iterator[Edit]:
    """All edits at one expression."""
    node = site.node
    for text, says, kind, cost, *fill in _proposals(site, scene):
        nodes = fill[0] if fill else None

        def change(now: Any, text=text, nodes=nodes) -> ast.AST:
            if callable(text):
                return text(now)
            parts = {"X": now} | ({} if nodes is None else nodes(now))
            return made(text, **parts)

        yield Edit(site.path, change, says, kind, cost)
    proposals: list[Iterator[tuple]] = []
    if isinstance(node, ast.Call | ast.Attribute):
        proposals.append(call_edits(node, site.value, scene.words))
    if isinstance(node, ast.Call):
        proposals.append(orders_of_call(node, scene.words))
    if isinstance(node, ast.BinOp):
        proposals.append(orders_of_operator(node, scene.words))
    for change, says, kind, cost in itertools.chain(*proposals):
        yield Edit(site.path, change, says, kind, cost)


def _proposals(site: Site, scene: Scene) -> Iterator[tuple]:
    node = site.node
    if isinstance(node, ast.BinOp):
        yield from operators(node, scene.words)
        yield from ratios(node, scene.words)
        yield from of_bits(node, site.value, scene.words)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield from comparisons(node, scene.words)
    elif isinstance(node, ast.UnaryOp):
        yield from signs(node, scene.words)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from _numbers(site)
    elif isinstance(node, ast.Name):
        yield from _names(site, scene)
    elif isinstance(node, ast.Subscript):
        yield from _subscripts(node, scene)
        yield from lookups(node, scene.variables, scene.words)
        yield from shifts(node, scene.words)
    elif isinstance(node, ast.List) and not isinstance(site.above[-1], ast.Call):
        yield from _listed(node, scene)
    elif isinstance(node, ast.IfExp):
        yield (
            "B",
            "the two branches are exchanged",
            "branches",
            1,
            lambda now: {"B": ast.IfExp(now.test, now.orelse, now.body)},
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _of_another(node, scene)
        yield from _of_others(node, scene)
        yield from joined_shifts(node, scene.words)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int":
        yield from _share_of(node, scene)
    if (said := size_of(node)) is not None:
        yield from sizes(node, said, scene)
    elif isinstance(site.value, Tensor):
        yield from wraps(site, scene)
    elif (
        isinstance(site.value, int | float)
        and not isinstance(node, ast.Constant | ast.Name)
        and not isinstance(site.value, bool)
    ):
        yield from scalars(scene.words.noun(node))


def _numbers(site: Site) -> Iterator[tuple]:
    value, above = site.node.value, site.above
    if any(isinstance(node, ast.keyword) for node in above[-1:]) or (
        type(value) is int
        and above
        and isinstance(above[-2 if isinstance(above[-1], ast.UnaryOp) else -1], ast.Call | ast.keyword)
    ):
        return  # an axis or an option; the call's own edits know it
    if any(size_of(node) for node in above[-2:]):
        return
    if above and isinstance(above[-1], ast.BinOp) and isinstance(above[-1].op, ast.Pow) and value == 0.5:
        return
    inside = any(isinstance(node, ast.Subscript) for node in above[-3:])
    others = {value + 1: 0.95, value - 1: 0.95, 2 * value: 1.3, value / 2: 1.3, -value: 1.4}
    if value == 0 and inside:
        others = {1: 1.2, -1: 1.2}
    if (value and type(value) is float) or not inside:
        others = ({1 / value: 1.5} if value else {}) | others
        others = {value**2: 1.5, 10 * value: 1.7, value / 10: 1.7, 5: 1.8, 0.5: 1.5} | others | {1: 1.4, 2: 1.5, 0: 1.4}
    for number, cost in others.items():
        if number == value or (inside and number != int(number)):
            continue
        other = int(number) if number == int(number) and type(value) is int else number
        if inside and value in (0, -1) and other in (0, -1, 1, -2):
            says = f"the {'first' if value == 0 else 'last'} one is due where an entry is picked; another is taken"
        elif inside:
            says = "an index or a limit of a slice is off"
        else:
            says = f"the number {other:g} stands where {value:g} belongs"
        yield repr(other), says, "number", cost, lambda now: {}


def _names(site: Site, scene: Scene) -> Iterator[tuple]:
    node, own = site.node, scene.variables.get(site.node.id)
    said = scene.words.noun(node)
    for part in scene.words.inside(node.id):
        says = f"{scene.words.noun(part)} is used where {said} belongs"
        yield "I", says, f"inside of {type(part).__name__}", 1.2, lambda now, part=part: {"I": part}
    made_of = scene.words.made_of_what_changes(node.id)
    if made_of is not None:
        says = f"{said} is computed anew, when what it is made of has changed; the one from before is due"
        yield "A", says, "computed anew", 1, lambda now: {"A": made_of}
    for other, value in scene.variables.items():
        if other == node.id or isinstance(value, bool):
            continue
        alike = (
            isinstance(own, Tensor)
            and isinstance(value, Tensor)
            and own.ndim == value.ndim
            and own.is_floating_point() == value.is_floating_point()
        )
        numbers = isinstance(own, int | float) and isinstance(value, int | float)
        if alike or numbers:
            old = other.startswith(BEFORE)
            made_here = other not in scene.words.parameters and not old
            says = f"{scene.words.noun(ast.Name(other))} is used where {said} belongs"
            yield (
                other,
                says,
                f"{other} for {node.id}",
                1 + 0.12 * made_here if old or (alike and own.shape == value.shape) else 1.2,
                lambda now: {},
            )


def _listed(node: ast.List, scene: Scene) -> Iterator[tuple]:
    """Of what is added to a list: two things exchanged."""
    for i, j in itertools.combinations(range(len(node.elts)), 2):

        def change(now: ast.List, i=i, j=j) -> ast.List:
            elts = list(now.elts)
            elts[i], elts[j] = elts[j], elts[i]
            return ast.List(elts, ast.Load())

        both = f"{scene.words.noun(node.elts[i])} and {scene.words.noun(node.elts[j])}"
        yield change, f"the order is wrong: {both} are exchanged", "order", 0.95


def _of_another(node: ast.Call, scene: Scene) -> Iterator[tuple]:
    """A mean, a sum, a variance of another variable, over all of it or row by row; and an extreme of what an index
    picks.
    """
    name, inside = scene.words.operation(node)
    if (
        name in ("amin", "amax")
        and isinstance(inside, ast.Name)
        and isinstance(value := scene.variables.get(inside.id), Tensor)
    ):
        for index, places in scene.variables.items():
            if isinstance(places, Tensor) and places.dtype == torch.int64 and places.ndim == value.ndim:
                says = f"the {OPERATIONS[name]} is that of those in {index} alone; it is that of all of {inside.id}"
                yield (
                    "Y",
                    says,
                    "picked first",
                    1.2,
                    lambda now, index=index: {"Y": with_inner(now, made(f"X.gather(-1, {index})", X=inner(now)))},
                )
    if name not in ("mean", "sum", "var", "std", "norm") or not isinstance(inside, ast.Name):
        return
    options = "".join(f", {each.arg}={ast.unparse(each.value)}" for each in node.keywords if each.arg == "unbiased")
    said, word = scene.words.noun(inside), OPERATIONS.get(name, name)
    for other, value in scene.variables.items():
        if other != inside.id and isinstance(value, Tensor) and value.is_floating_point():
            noun = scene.words.noun(ast.Name(other))
            rows = f"{other}.{name}(dim=-1, keepdim=True{options})"
            whole = f"{other}.{name}({options.removeprefix(', ')})"
            yield whole, f"the {word} of {noun} is taken; that of {said} is due", "another's", 1.2, lambda now: {}
            says = f"the {word} of each row of {noun} is taken; that of {said} is due"
            yield rows, says, "another's", 1.2, lambda now: {}


def _of_others(node: ast.Call, scene: Scene) -> Iterator[tuple]:
    """A mean whose sum is right and whose number is not: that of all, where some are chosen, or that of other things."""
    name, inside = scene.words.operation(node)
    if name != "mean" or inside is None:
        return
    said = scene.words.noun(inside)
    for text, words in scene.sizes + scene.local_sizes:

        def divided(now: ast.Call, text=text) -> ast.AST:
            summed = ast.Call(ast.Attribute(now.func.value, "sum", ast.Load()), now.args, now.keywords)
            return made(f"S / {text}", S=summed)

        yield divided, f"the sum of {said} is divided by {words}, not by how many are summed", f"mean over {text}", 1.1
    for mask in _masks(node.func.value, scene):
        yield (
            lambda now, mask=mask: made("X * M.double().mean()", X=now, M=mask),
            f"the mean divides by the number of all, as if those left out were 0; divide by the number of those chosen "
            f"by {scene.words.noun(mask)}",
            "mean over all",
            0.95,
        )


def _masks(node: ast.AST, scene: Scene) -> Iterator[ast.expr]:
    """The conditions that chose what a value is made of."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in scene.words.defined:
            each = scene.words.defined[each.id]  # noqa: PLW2901  # one step back, to where it was chosen
        if isinstance(each, ast.Subscript):
            yield from (part for part in _slice_parts(each.slice) if _is_mask(part, scene))


def _is_mask(node: ast.expr, scene: Scene) -> bool:
    if isinstance(node, ast.Name):
        value = scene.variables.get(node.id)
        return isinstance(value, Tensor) and value.dtype.is_signed is False
    return isinstance(node, ast.Compare)


def _share_of(node: ast.Call, scene: Scene) -> Iterator[tuple]:
    """Of int(share * len(values)): a share of the largest value, or of their sum, for a share of their number."""
    product = node.args[0]
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and size_of(product.right)):
        return
    values = product.right.args[0] if isinstance(product.right, ast.Call) else product.right.value.value
    said, share = scene.words.noun(values), scene.words.noun(product.left)
    for text, what in (
        ("int((V >= A * V.max()).sum())", "of the largest of"),
        ("int((V.cumsum(0) <= A * V.sum()).sum())", "of the sum of"),
        ("int((V.cumsum(0) < A * V.sum()).sum()) + 1", "of the sum of"),
        ("int((V.square().cumsum(0) <= A * V.square().sum()).sum())", "of the sum of the squares of"),
        ("int((V.square().cumsum(0) < A * V.square().sum()).sum()) + 1", "of the sum of the squares of"),
    ):
        says = f"{share} is taken {what} {said}; it is a share of their number"
        yield text, says, "share of what", 1, lambda now: {"V": values, "A": now.args[0].left}


def _slice_parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _with_part(at: int, text: str):
    """A subscript with another slice at one place."""

    def change(now: ast.Subscript) -> ast.Subscript:
        index = ast.parse(f"x[{text}]", mode="eval").body.slice
        parts = _slice_parts(now.slice)
        parts = [*parts[:at], index, *parts[at + 1 :]]
        return ast.Subscript(now.value, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())

    return change


def _subscripts(node: ast.Subscript, scene: Scene) -> Iterator[tuple]:
    inside = scene.words.noun(node.value)
    parts = _slice_parts(node.slice)
    masks = [scene.words.noun(part) for part in parts if _is_mask(part, scene)]
    missing = f"the choice is missing: all of {inside} counts, not only the part chosen by {masks[0]}" if masks else ""
    yield (
        "V",
        missing or f"the index is missing: the whole of {inside} is used",
        "index left out",
        1.1,
        lambda now: {"V": now.value},
    )
    for at, part in enumerate(parts):
        texts: dict[str, tuple[str, str, float]] = {}
        if isinstance(part, ast.Slice) and (part.lower or part.upper):
            text = ast.unparse(part)
            due = SLICES.get(text, "another part")
            for other, taken in SLICES.items():
                if other != text:
                    says = f"{taken} of {inside} is used where {due} is due"
                    texts[other] = (says, f"[{text}] for [{other}]", 1 if other == ":" else 1.2)
            for bound in (part.lower, part.upper):
                if bound is not None and not isinstance(bound, ast.Constant | ast.UnaryOp):
                    old = ast.unparse(bound)
                    for change, word in (("+ 1", "one more"), ("- 1", "one fewer")):
                        texts[text.replace(old, f"{old} {change}")] = (
                            f"{word} than is due is kept of {inside}",
                            f"slice {change}",
                            1.1,
                        )
                    if part.lower is None:
                        texts[f"{old}:"] = (
                            f"the other part of {inside} is kept: what is cut off should stay, and the rest go",
                            "slice turned",
                            1.1,
                        )
                        texts[f"-{old}:"] = (f"the last ones of {inside} are kept, not the first", "last ones", 1.1)
        elif isinstance(part, ast.Name) and part.id in scene.variables:
            picked, value = part.id, scene.variables[part.id]
            if isinstance(value, Tensor):
                texts[f":len({picked})"] = (
                    f"the first ones of {inside} are used, not those that {picked} names",
                    "index left out",
                    1.1,
                )
                texts[f"{picked}.flip(0)"] = (f"{picked} is read backwards", "order", 1.6)
            else:
                texts[f"{picked} - 1"] = (f"one too low: {inside} is read at {picked} - 1", "off by one", 1.1)
                texts[f"{picked} + 1"] = (f"one too high: {inside} is read at {picked} + 1", "off by one", 1.1)
                texts["0"] = (f"the first of {inside} is read, whatever {picked} is", "only the first", 1.2)
                texts["-1"] = (f"the last of {inside} is read, whatever {picked} is", "only the last", 1.2)
        if _is_mask(part, scene) and len(parts) == 1:
            yield (
                "V * I",
                f"what the condition leaves out of {inside} is set to 0, and still there",
                "0 for left out",
                1.1,
                lambda now: {"V": now.value, "I": now.slice},
            )
        for text, (says, kind, cost) in texts.items():
            yield _with_part(at, text), says, kind, cost
    if len(parts) == 2:
        yield _exchanged_axes, f"{inside} is indexed along the wrong axis", "axis of an index", 1.1
    if len(parts) == 1 and isinstance(parts[0], ast.Name):
        yield _second_axis, f"columns of {inside} are picked; rows are due", "axis of an index", 1.1


def _exchanged_axes(now: ast.Subscript) -> ast.Subscript:
    return ast.Subscript(now.value, ast.Tuple(_slice_parts(now.slice)[::-1], ast.Load()), ast.Load())


def _second_axis(now: ast.Subscript) -> ast.expr:
    return made("V[:, I].mT", V=now.value, I=now.slice)
