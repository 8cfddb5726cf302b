"""Finding the near miss that a wrong answer behaves like, on the input where it failed and on fresh ones."""

import ast
import contextlib
import gc
import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.lesson.near_misses.borne_out import evidence
from companion.lesson.near_misses.edits import edits
from companion.lesson.near_misses.scene import Scene
from companion.lesson.near_misses.several import groups
from companion.lesson.near_misses.trees import (
    BEFORE,
    Edit,
    compiled,
    definition,
    edited,
    expressions,
    loops,
    made,
    remembers,
)
from companion.lesson.near_misses.whole import of_the_whole
from companion.lesson.near_misses.words import Words, size_words

DRAW_SEEDS = range(2000, 2004)
CONFIRM_SEEDS = range(2000, 2006)
MORE_SEEDS = range(2000, 2018)  # for whole numbers and conditions, of which one draw says little
PAIRS = 600
PAIR_COST = 1.1  # only the likelier single steps are combined
MOST_ENTRIES = 100_000  # of a tensor on the way
SECONDS = 20.0  # of computing, for one exercise's near misses: a stop for answers that are slow, not the rule
NEAR = 0.3  # of the cheapest near miss that agrees: the first of these that the program bears out is told
MISFITS = (SyntaxError, TypeError, ValueError, LookupError, AttributeError, StopIteration, RecursionError)  # of a row
KNOWN = 8  # entries, not all zero, in which an answer must differ from the right one, so that two steps explain it


@dataclass(frozen=True)
class NearMiss:
    """A function beside the answer, its value on the first input, what it gets wrong, how unlikely it is, and its
    definition.
    """

    function: Callable[..., Any]
    value: Tensor
    says: tuple[str, ...]
    cost: float
    tree: ast.FunctionDef | None = None

    @property
    def sentence(self) -> str:
        return "; and ".join(self.says)


class Family:
    """The near misses of one exercise's answer, made when first needed: how many are tried is fixed, not how long.

    ``alike``: what is no different on any input.
    """

    def __init__(self, answer: Callable[..., Tensor], drawn: Callable[[int], dict[str, Any]], tolerance: float):
        self.answer, self.drawn, self.tolerance = inspect.unwrap(answer), drawn, tolerance
        self.tree = definition(self.answer)
        self.alike: list[NearMiss] = []
        self._likely: list[Edit] = []
        if self.tree is None:
            return
        self.ending = loops(self.tree)
        self.home = {**self.answer.__globals__, "torch": torch}
        text = ast.unparse(self.tree)
        watched = "lstsq" in text or "2 ** " in text or _picks_in_a_loop(self.tree)
        self.guard: contextlib.AbstractContextManager = _Guard() if watched else contextlib.nullcontext()
        self.draws = [self.drawn(seed) for seed in DRAW_SEEDS]
        self.rights = [self.answer(*_copies(list(draw.values()))) for draw in self.draws]
        self.whole = self.rights[0].dtype in (torch.int32, torch.int64)
        self.exact = not (self.rights[0].is_floating_point() or self.rights[0].is_complex())

    @cached_property
    def singles(self) -> list[NearMiss]:
        """Every function one step away."""
        if self.tree is None:
            return []
        with _undisturbed():
            found = [self._differing(each, (says,), cost) for each, says, cost in of_the_whole(self.answer, self.draws)]
            scene = self.scene()
            single = list(edits(scene))
            several = [((edit,), edit.cost) for edit in single] + [*groups(single, scene)]
            end = time.process_time() + SECONDS
            for group, cost in sorted(several, key=lambda each: each[1]):
                found.append(miss := self._made(group, cost))
                if miss and len(group) == 1 and cost <= PAIR_COST:
                    self._likely.append(group[0])
                if time.process_time() > end:
                    break
        return [miss for miss in found if miss]

    @cached_property
    def pairs(self) -> list[NearMiss]:
        """The likelier pairs of two steps, of which the same mistake in two places is the likeliest."""
        assert self.singles
        chosen = sorted(
            combinations(self._likely, 2),
            key=lambda pair: (
                pair[0].cost
                + pair[1].cost
                - 0.5 * (pair[0].kind == pair[1].kind)
                - 0.5 * (pair[0].says == pair[1].says)
            ),
        )
        found, end = [], time.process_time() + SECONDS
        with _undisturbed():
            for pair in chosen[:PAIRS]:
                if pair[0].path != pair[1].path:
                    found.append(self._made(pair, pair[0].cost + pair[1].cost, pair=True))
                if time.process_time() > end:
                    break
        return [miss for miss in found if miss]

    def scene(self) -> Scene:
        """Return what is known of the answer."""
        probed = [_probed(self.tree, self.home, list(draw.values())) for draw in self.draws]
        variables = [self._variables(draw, each) for draw, each in zip(self.draws, probed, strict=True)]
        words = Words(self.tree, {name: each.ndim for name, each in variables[0].items() if isinstance(each, Tensor)})
        sizes, tied = _sizes(self.draws, variables, words)
        return Scene(self.tree, words, self.draws[0], variables[0], sizes, tied, probed[0])

    def _variables(self, draw: dict[str, Any], values: dict[tuple, Any]) -> dict[str, Any]:
        """Return what each name was, the arguments and what is made on the way."""
        variables = dict(draw)
        for path, node, above in expressions(self.tree):  # type: ignore[arg-type]
            if isinstance(node, ast.Name) and path in values and node.id not in self.home:
                variables.setdefault(node.id, values[path])
                if above and remembers(above[-1]):
                    variables.setdefault(BEFORE + node.id, values[path])
        return {name: value for name, value in variables.items() if isinstance(value, Tensor | int | float)}

    def _made(self, edits: tuple[Edit, ...], cost: float, *, pair: bool = False) -> NearMiss | None:
        """Make what differs by some edits, which are one mistake or a ``pair`` of them."""
        try:
            tree = edited(self.tree, edits)
            function = compiled(tree, self.home, ending=self.ending)
        except MISFITS:
            return None
        says = tuple(dict.fromkeys(edit.says for edit in edits))
        if not pair and len(says) > 1:
            says = (f"{says[0]}, and likewise elsewhere",)
        return self._differing(function, says, cost, tree, pair=pair)

    def _differing(self, function: Callable[..., Any], *about: Any, pair: bool = False) -> NearMiss | None:
        """Return what runs on the first input and differs from the answer there or, but for a ``pair``, elsewhere."""
        value = self.run(function, list(self.draws[0].values()))
        if value is None:
            return None
        miss = NearMiss(function, value, *about)
        if not same(value, self.rights[0], self.tolerance):
            return miss
        if pair:
            return None
        for draw, right in zip(self.draws[1:], self.rights[1:], strict=True):
            if not same(self.run(function, list(draw.values())), right, self.tolerance):
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
        if not (known := trial.telling()):
            return None
        found = trial.reason(self.singles)
        if found is None and (known >= KNOWN or not self.exact):
            found = trial.reason(self.pairs)
        return found


class _Trial:
    """A wrong answer's values on the inputs that confirm a near miss: where it failed, and on fresh ones."""

    def __init__(self, family: Family, function: Callable[..., Any], failing: dict[str, Any]):
        self.family, self.function = family, function
        seeds = MORE_SEEDS if family.exact else CONFIRM_SEEDS
        self.inputs = [failing, *(family.drawn(seed) for seed in seeds)]
        self.got = [called(function, list(inputs.values())) for inputs in self.inputs]

    def telling(self) -> int:
        """Count the entries that differ from the right answer and say something: finite, and not 0, or all True,
        wherever they are.
        """
        count, silent = 0, True
        for inputs, got in zip(self.inputs, self.got, strict=True):
            right = self.family.run(self.family.answer, list(inputs.values()))
            if got is None or right is None:
                continue
            silent = silent and (not got.any() or (got.dtype == torch.bool and bool(got.all())))
            if got.shape != right.shape:
                count += int(got.isfinite().sum()) if got.is_floating_point() else got.numel()
            else:
                count += int(((got != right) & got.isfinite() & right.isfinite()).sum())
        return 0 if silent else count

    def reason(self, misses: list[NearMiss]) -> str | None:
        """Say what the wrong answer gets wrong if it does as one of the near misses, the cheapest, wherever it is tried."""
        first, family = self.got[1], self.family  # on the input that the near misses' values are known for
        if first is None or (family.whole and first.is_floating_point()):
            return None
        close = [miss for miss in misses if same(first, miss.value, family.tolerance)]
        found = [miss for miss in sorted(close, key=lambda miss: miss.cost)[:100] if self._agrees(miss)]
        if not found:
            return None
        near = [miss for miss in found if miss.cost <= found[0].cost + NEAR and len(miss.says) == 1]
        sure = [evidence(self.function, family.tree, miss.tree) if miss.tree else 1 for miss in near]
        if any(sure):
            return near[sure.index(max(sure))].sentence
        return f"this is what comes out when {found[0].sentence}"

    def _agrees(self, miss: NearMiss) -> bool:
        ours = (self.family.run(miss.function, list(inputs.values())) for inputs in self.inputs)
        return all(same(theirs, other, self.family.tolerance) for theirs, other in zip(self.got, ours, strict=True))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Make near misses without warnings, and without a search for garbage, of which thousands of trees have none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        if collects:
            gc.enable()


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


def _picks_in_a_loop(tree: ast.AST) -> bool:
    """Return whether a loop picks entries by several indices, x[rows, columns], where a slice for one adds an axis."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    picked = [node.slice for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Subscript)]
    return any(
        isinstance(index, ast.Tuple) and all(isinstance(each, ast.Name) for each in index.elts) for index in picked
    )


def _sizes(
    draws: list[dict[str, Any]], variables: list[dict[str, Any]], words: Words
) -> tuple[list[tuple[str, str]], list[list[tuple[str, int]]]]:
    """Return the sizes that an answer may meet, as code and in words, and which axes of arguments share one in every draw.

    A size of what is made on the way counts where it is none of an argument's; a whole number among the arguments may be
    a size, too.
    """
    tied: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    for name, value in draws[0].items():
        for dim in range(getattr(value, "ndim", 0)):
            tied.setdefault(tuple(draw[name].shape[dim] for draw in draws), []).append((name, dim))
    sizes = [(name, name) for name, value in draws[0].items() if type(value) is int]
    for (name, dim), *_ in tied.values():
        sizes.append((f"{name}.shape[{dim}]", size_words(name, dim, draws[0][name].ndim)))
    known = set(tied)
    for name in variables[0]:
        shapes = [getattr(each.get(name), "shape", ()) for each in variables]
        if name not in draws[0] and not name.startswith(BEFORE) and all(len(shape) for shape in shapes):
            rows = tuple(shape[0] for shape in shapes)
            if rows not in known and len(set(rows)) > 1:
                known.add(rows)
                sizes.append((f"len({name})", words.size(made(f"len({name})")) or ""))
    return sizes, list(tied.values())


def _probed(tree: Any, home: dict[str, Any], inputs: list[Any]) -> dict[tuple, Any]:
    """Return what every expression of the answer was, on one input."""
    values: dict[tuple, Any] = {}
    paths = [path for path, node, _ in expressions(tree) if not _has_no_value(node, path)]

    def note(at: int, value: Any) -> Any:
        values.setdefault(paths[at], value)
        return value

    def noting(at: int) -> Callable[[Any], Any]:
        return lambda now: made(f"note_({at}, X)", X=now)

    probes = tuple(Edit(path, noting(at), "", "", 0) for at, path in enumerate(paths))
    called(compiled(edited(tree, probes), {**home, "note_": note}, ending=loops(tree)), inputs)
    return values


def _has_no_value(node: ast.expr, path: tuple) -> bool:
    return isinstance(node, ast.Slice | ast.Starred) or (isinstance(node, ast.Tuple) and path[-1][0] == "slice")


def called(function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
    """Call a function on copies; None if it crashes, or gives no tensor."""
    try:
        with torch.no_grad():
            got = function(*_copies(inputs))
    except (Exception, SystemExit):  # a near miss that does not run is none
        return None
    return got if isinstance(got, Tensor) and got.device.type == "cpu" else None


def _copies(inputs: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in inputs]


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
    sizes = other.abs()
    within = tolerance * torch.where(sizes.isfinite(), sizes, 0).max()
    return torch.allclose(got, other, rtol=0, atol=float(within), equal_nan=True)


_families: dict[int, Family] = {}


def family(exercise: Any) -> Family:
    """Return an exercise's near misses, made once in a process."""
    if id(exercise) not in _families:
        _families[id(exercise)] = Family(exercise.answer, exercise._drawn, exercise.tolerance)
    return _families[id(exercise)]
