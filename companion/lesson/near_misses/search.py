"""Finding the near miss that a wrong answer behaves like, on the input where it failed and on fresh ones; and whether the
answer's own program bears it out, since other programs give the same values.
"""

import ast
import contextlib
import inspect
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.lesson.attempts import source_of
from companion.lesson.near_misses.edits import Scene, edits, together
from companion.lesson.near_misses.trees import (
    BEFORE,
    ROUNDS,
    Edit,
    compiled,
    definition,
    edited,
    expressions,
    made,
    remembers,
)
from companion.lesson.near_misses.words import Words, operation, size_words

DRAW_SEEDS = range(2000, 2004)
CONFIRM_SEEDS = range(2000, 2006)
MORE_SEEDS = range(2000, 2018)  # for whole numbers and conditions, of which one draw says little
MOST_ENTRIES = 100_000  # of a tensor on the way
SECONDS = 20.0  # of computing, for one exercise's near misses: a stop for answers that are slow, not the rule
NEAR = 0.3  # of the cheapest near miss that agrees: the first of these that the program bears out is told
MISFITS = (SyntaxError, TypeError, ValueError, LookupError, AttributeError, StopIteration, RecursionError)  # of a row
ALIKE: dict[Hashable, Hashable] = {  # one operation under several names
    "T": "mT", "t": "mT", "transpose": "mT", "matmul": "MatMult", "mm": "MatMult", "bmm": "MatMult", "mv": "MatMult",
    "dot": "MatMult", "square": ("Pow", 2), "sqrt": ("Pow", 0.5), "max": "amax", "min": "amin", "mul": "Mult",
    "div": "Div", "pow": "Pow", "linalg_norm": "norm", "vector_norm": "norm", "remainder": "Mod", "neg": "USub",
    "logical_not": "Invert", "sub": "Sub", "add": "Add",
}  # fmt: skip


@dataclass(frozen=True)
class NearMiss:
    """A function beside the answer, its value on the first input, what it gets wrong, how unlikely it is, and its
    definition.
    """

    function: Callable[..., Any]
    value: Tensor
    says: str
    cost: float
    tree: ast.FunctionDef


class Family:
    """The near misses of one exercise's answer, made when first needed: how many are tried is fixed, not how long.

    ``alike``: what is no different on any input.
    """

    def __init__(self, answer: Callable[..., Tensor], drawn: Callable[[int], dict[str, Any]], tolerance: float):
        self.answer, self.drawn = inspect.unwrap(answer), drawn
        self.same = partial(same, tolerance=tolerance)
        self.tree = definition(self.answer)
        self.alike: list[NearMiss] = []
        if self.tree is None:
            return
        self.home = {**self.answer.__globals__, "torch": torch, "ROUNDS": ROUNDS}
        # least squares; powers of sizes; entries picked in a loop by x[rows, columns], where a slice for one adds an axis
        watched = re.search(r"lstsq|2 \*\* |for .*\[\w+, \w+\]", ast.unparse(self.tree), re.DOTALL)
        self.guard: contextlib.AbstractContextManager = _Guard() if watched else contextlib.nullcontext()
        self.draws = [self.drawn(seed) for seed in DRAW_SEEDS]
        self.rights = [called(self.answer, list(draw.values())) for draw in self.draws]
        self.whole = self.rights[0].dtype in (torch.int32, torch.int64)
        self.exact = not (self.rights[0].is_floating_point() or self.rights[0].is_complex())

    @cached_property
    def singles(self) -> list[NearMiss]:
        """Every function one step away."""
        if self.tree is None:
            return []
        with warnings.catch_warnings(action="ignore"):
            single = list(edits(self.scene()))
            steps = [((edit,), edit.cost) for edit in single] + [*together(single)]
            found, end = [], time.process_time() + SECONDS
            for step, cost in sorted(steps, key=lambda each: each[1]):
                found.append(self._made(step, cost))
                if time.process_time() > end:
                    break
        return [miss for miss in found if miss]

    @cached_property
    def fresh(self) -> list[tuple[dict[str, Any], Tensor | None]]:
        """The inputs, beside the one that failed, on which a near miss is confirmed, each with its right answer."""
        drawn = [self.drawn(seed) for seed in (MORE_SEEDS if self.exact else CONFIRM_SEEDS)]
        return [(inputs, self.run(self.answer, list(inputs.values()))) for inputs in drawn]

    def scene(self) -> Scene:
        """Return what is known of the answer."""
        values, variables = _probed(self.tree, self.home, list(self.draws[0].values())), dict(self.draws[0])
        for path, node, above in expressions(self.tree):  # type: ignore[arg-type]
            if isinstance(node, ast.Name) and path in values and node.id not in self.home:
                variables.setdefault(node.id, values[path])
                if above and remembers(above[-1]):
                    variables.setdefault(BEFORE + node.id, values[path])
        variables = {name: value for name, value in variables.items() if isinstance(value, Tensor | int | float)}
        words = Words(self.tree, {name: each.ndim for name, each in variables.items() if isinstance(each, Tensor)})
        return Scene(self.tree, words, self.draws[0], variables, *_sizes(self.draws), values)

    def _made(self, edits: tuple[Edit, ...], cost: float) -> NearMiss | None:
        """Make what differs by some edits, which are one mistake, and runs on the first input. It is a near miss if it
        differs from the answer there or elsewhere.
        """
        try:
            tree = edited(self.tree, edits)
            function = compiled(tree, self.home)
        except MISFITS:
            return None
        values = (self.run(function, list(draw.values())) for draw in self.draws)
        if (first := next(values)) is None:
            return None
        likewise = ", and likewise elsewhere" if len({edit.says for edit in edits}) > 1 else ""
        miss = NearMiss(function, first, edits[0].says + likewise, cost, tree)
        if not all(map(self.same, chain([first], values), self.rights)):
            return miss
        self.alike.append(miss)
        return None

    def run(self, function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
        """Call a near miss; cut to whole numbers where these are due, since a float is told by its dtype."""
        with self.guard:
            got = called(function, inputs)
        return got.long() if got is not None and self.whole and got.is_floating_point() else got

    def named(self, function: Callable[..., Any], inputs: dict[str, Any]) -> str | None:
        """Say what a wrong answer gets wrong, or None: the cheapest near miss that does as it does wherever both are
        tried. What the answer's own program does not bear out is told as what comes out, not as what is done. An answer
        that differs from the right one in nothing but zeros, NaN or infinities gets no reason.
        """
        if not self.singles:
            return None
        trial = _Trial(self, function, inputs)
        return trial.reason() if trial.says_something() else None


class _Trial:
    """A wrong answer's values on the inputs that confirm a near miss: where it failed, and on fresh ones."""

    def __init__(self, family: Family, function: Callable[..., Any], failing: dict[str, Any]):
        self.family, self.function = family, function
        self.inputs = [failing, *(inputs for inputs, _ in family.fresh)]
        self.got = [called(function, list(inputs.values())) for inputs in self.inputs]

    def says_something(self) -> bool:
        """Return whether some entry differs from the right answer and is finite, and not all are 0, or all True,
        wherever they are.
        """
        family = self.family
        rights = [family.run(family.answer, list(self.inputs[0].values())), *(right for _, right in family.fresh)]
        known = [(got, due) for got, due in zip(self.got, rights, strict=True) if got is not None and due is not None]
        if all(not got.any() or (got.dtype == torch.bool and got.all()) for got, _ in known):
            return False
        return any(
            (got.isfinite() & (True if got.shape != due.shape else (got != due) & due.isfinite())).any()
            for got, due in known
        )

    def reason(self) -> str | None:
        """Say what the wrong answer gets wrong if it does as one of the near misses, the cheapest, wherever it is tried."""
        first, family = self.got[1], self.family  # on the input that the near misses' values are known for
        if first is None or (family.whole and first.is_floating_point()):
            return None
        close = [miss for miss in family.singles if family.same(first, miss.value)]
        found = [miss for miss in sorted(close, key=lambda miss: miss.cost)[:100] if self._agrees(miss)]
        if not found:
            return None
        near = [miss for miss in found if miss.cost <= found[0].cost + NEAR]
        sure = [evidence(self.function, family.tree, miss.tree) for miss in near]
        if any(sure):
            return near[sure.index(max(sure))].says
        return f"this is what comes out when {found[0].says}"

    def _agrees(self, miss: NearMiss) -> bool:
        ours = (self.family.run(miss.function, list(inputs.values())) for inputs in self.inputs)
        return all(self.family.same(theirs, other) for theirs, other in zip(self.got, ours, strict=True))


class _Guard(TorchFunctionMode):
    """Least squares of nothing, or of what is not finite, makes LAPACK complain on the terminal; of too low a rank, it
    says one thing now and another then, but for the driver gelsd (torch hands gelsy a permutation that it has not set);
    and what gets another axis in each round of a loop, or a power of a power of two as its size, fills the memory.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.linalg.lstsq and not (
            args[0].numel() and torch.stack([each.isfinite().all() for each in args]).all()
        ):
            raise ValueError
        drivers = {"driver": "gelsd"} if function is torch.linalg.lstsq else {}
        got = function(*args, **drivers | (kwargs or {}))
        if isinstance(got, Tensor) and got.numel() > MOST_ENTRIES:
            raise ValueError
        return got


def _sizes(draws: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], list[list[tuple[str, int]]]]:
    """Return the sizes that an answer may meet, as code and in words, and which axes of arguments share one in every draw.

    A whole number among the arguments may be a size, too.
    """
    tied: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    for name, value in draws[0].items():
        for dim in range(getattr(value, "ndim", 0)):
            tied.setdefault(tuple(draw[name].shape[dim] for draw in draws), []).append((name, dim))
    sizes = [(name, name) for name, value in draws[0].items() if type(value) is int]
    for (name, dim), *_ in tied.values():
        sizes.append((f"{name}.shape[{dim}]", size_words(name, dim, draws[0][name].ndim)))
    return sizes, list(tied.values())


def _probed(tree: Any, home: dict[str, Any], inputs: list[Any]) -> dict[tuple, Any]:
    """Return what every expression of the answer was, on one input."""
    values: dict[tuple, Any] = {}
    paths = [
        path
        for path, node, _ in expressions(tree)
        if not isinstance(node, ast.Slice | ast.Starred)
        and not (isinstance(node, ast.Tuple) and path[-1][0] == "slice")
    ]

    def note(at: int, value: Any) -> Any:
        values.setdefault(paths[at], value)
        return value

    def noting(at: int) -> Callable[[Any], Any]:
        return lambda now: made(f"note_({at}, X)", X=now)

    probes = tuple(Edit(path, noting(at), "", "", 0) for at, path in enumerate(paths))
    called(compiled(edited(tree, probes), {**home, "note_": note}), inputs)
    return values


def called(function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
    """Call a function on copies; None if it crashes, or gives no tensor."""
    try:
        with torch.no_grad():
            got = function(*(value.clone() if isinstance(value, Tensor) else value for value in inputs))
    except (Exception, SystemExit):  # a near miss that does not run is none
        return None
    return got if isinstance(got, Tensor) and got.device.type == "cpu" else None


def same(got: Tensor | None, other: Tensor | None, tolerance: float) -> bool:
    """Return whether two results are equal within ``tolerance``, relative to the largest; NaN equals NaN, and no result
    none.
    """
    if got is None or other is None:
        return got is other
    if got.shape != other.shape or got.is_complex() != other.is_complex():
        return False
    if not other.numel():
        return True
    if not (got.is_floating_point() or other.is_floating_point() or got.is_complex()):
        return bool(torch.equal(got.long(), other.long()))
    wide = torch.complex128 if got.is_complex() else torch.float64
    got, other = got.to(wide), other.to(wide)
    sizes, off = other.abs(), float((got - other).abs().max())
    if math.isfinite(off):  # as are then all entries
        return off <= tolerance * float(sizes.max())
    within = tolerance * torch.where(sizes.isfinite(), sizes, 0).max()
    return torch.allclose(got, other, rtol=0, atol=float(within), equal_nan=True)


def evidence(function: Callable[..., Any], answer: ast.FunctionDef, near_miss: ast.FunctionDef) -> int:
    """Return how well a function's program bears out that it is this near miss: 2 if it has something of the near miss
    that the answer has not, 1 if nothing speaks against it, 0 if it lacks what the near miss has, has what the near miss
    lacks, has little in common with it, or has no source.

    ``function``: what the learner wrote.
    ``answer``: the course's own.
    ``near_miss``: the answer, edited.
    """
    source = source_of(function)
    if source is None:
        return 0
    own = source.tree
    names = [[argument.arg for argument in tree.args.args] for tree in (answer, own)]
    right, wrong = _features(answer, names[0]), _features(near_miss, names[0])
    # the learner may call an argument by another name
    held = _features(own, names[1], dict(zip(names[1], names[0], strict=False)))
    new, gone = wrong - right, [each for each in right if not wrong[each]]
    if not all(held[each] for each in new) or any(held[each] for each in gone):
        return 0
    if 2 * sum(held[each] > 0 for each in wrong) < len(+wrong):
        return 0
    return 2 if any(not right[each] for each in new) else 1


def _features(tree: ast.AST, arguments: Collection[str], known_as: dict[str, str] | None = None) -> Counter[Hashable]:
    """Count operations and comparisons, again with each bare argument or number that they are of, and numbers above 1."""
    found: Counter[Hashable] = Counter()

    def note(kind: Hashable, *operands: ast.AST | None) -> None:
        found[kind] += 1
        for at, each in enumerate(operands):
            side = at if kind in ("Sub", "Div") else None  # 1 - a is not a - 1
            if isinstance(each, ast.Name) and each.id in arguments:
                found[kind, side, (known_as or {}).get(each.id, each.id)] += 1
            elif isinstance(each, ast.Constant):
                found[kind, side, each.value] += 1

    for node in ast.walk(tree):
        name, inside = operation(node)
        if name is not None and (isinstance(node, ast.Call) or name in ("T", "mT")):
            note(ALIKE.get(name, name), inside)
        elif isinstance(node, ast.BinOp | ast.UnaryOp) and not any(isinstance(n, ast.Name) for n in ast.walk(node)):
            continue  # a number, as -1 and 2 / 3 are
        elif isinstance(node, ast.BinOp):
            kind, by = type(node.op).__name__, getattr(node.right, "value", None)
            note((kind, by) if kind == "Pow" and by in (0.5, 2) else kind, node.left, node.right)
        elif isinstance(node, ast.UnaryOp):
            note(type(node.op).__name__, node.operand)
        elif isinstance(node, ast.Compare):
            note(type(node.ops[0]).__name__, node.left, node.comparators[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) > 1:
            note(node.value)
    return found


_families: dict[int, Family] = {}


def family(exercise: Any) -> Family:
    """Return an exercise's near misses, made once in a process."""
    if id(exercise) not in _families:
        _families[id(exercise)] = Family(exercise.answer, exercise._drawn, exercise.tolerance)
    return _families[id(exercise)]
