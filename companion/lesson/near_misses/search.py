"""Finding the near miss that a wrong answer behaves like."""

import ast
import contextlib
import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, groupby
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.lesson.near_misses.edits import expression_edits
from companion.lesson.near_misses.in_turn import combined
from companion.lesson.near_misses.places import place_edits
from companion.lesson.near_misses.together import groups, in_one_place, in_one_place_of_a_loop, local_sizes
from companion.lesson.near_misses.trees import BEFORE, Edit, compiled, definition, edited, expressions, made
from companion.lesson.near_misses.values import Scene, Site
from companion.lesson.near_misses.whole import sides_of, sizes_of, whole_edits
from companion.lesson.near_misses.words import Words

FILTER_SEED = 2000
DRAW_SEEDS = range(2000, 2004)
CONFIRM_SEEDS = range(2000, 2006)
BUDGET = 1.3  # seconds of this process for one wrong answer
PAIRS = 6000
MOST_ENTRIES = 100_000  # of a tensor on the way
PAIR_COST = 1.3  # only the likelier single steps are combined


@dataclass(frozen=True)
class NearMiss:
    """A function beside the answer, and what it gets wrong."""

    function: Callable[..., Any]
    says: tuple[str, ...]
    cost: float

    @property
    def sentence(self) -> str:
        return "; and ".join(self.says)


@dataclass
class Family:
    """The near misses of one exercise's answer, made as far as they have been needed."""

    answer: Callable[..., Tensor]
    drawn: Callable[[int], dict[str, Any]]
    tolerance: float
    singles: list[NearMiss] = field(default_factory=list)
    alike: list[NearMiss] = field(default_factory=list)  # what is no different on any input
    _values: dict[tuple[int, ...], list[tuple[Tensor, NearMiss]]] = field(default_factory=dict)
    _pair_values: dict[tuple[int, ...], list[tuple[Tensor, NearMiss]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answer = inspect.unwrap(self.answer)
        tree = definition(self.answer)
        self._singly = self._pairs = iter(())
        if tree is None:
            return
        self.home = {**self.answer.__globals__, "torch": torch}
        self.guard = _Guard() if "lstsq" in ast.unparse(tree) or _picks_in_a_loop(tree) else contextlib.nullcontext()
        self.draws = [self.drawn(seed) for seed in DRAW_SEEDS]
        self.inputs = list(self.draws[0].values())
        self.rights = [self.answer(*_copies(list(draw.values()))) for draw in self.draws]
        right = self.rights[0]
        self.right, self.right_shape = _flat(right), tuple(right.shape)
        self.whole = right.dtype in (torch.int32, torch.int64)
        self.tree = tree
        self._singly = self._single()

    def _single(self) -> Iterator[None]:
        """Makes all that is one step away, the likeliest first."""
        edits = list(self._edits(self.draws))
        edits += in_one_place(self.tree, Words(self.tree), edits)
        several = [((edit,), edit.cost) for edit in edits] + _everywhere(edits)
        several += groups(self.tree, Words(self.tree))
        several += in_one_place_of_a_loop(self.tree, edits)
        for function, says, cost in combined(self.tree, self.draws, self.answer):
            miss = NearMiss(function, (says,), cost)
            if self._known(miss, self._values):
                self.singles.append(miss)
        likely = []
        for group, cost in sorted(several, key=lambda each: each[1]):
            if (miss := self._made(group, self._values, cost)) is not None:
                self.singles.append(miss)
                if len(group) == 1 and cost <= PAIR_COST:
                    likely.append(group[0])
            yield
        self._pairs = self._paired(likely)

    def all_singles(self) -> list[NearMiss]:
        """Every function one step away."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in self._singly:
                pass
        return self.singles

    def _edits(self, draws: list[dict[str, Any]]) -> Iterator[Edit]:
        tree, words = self.tree, Words(self.tree)
        probed = [_probed(tree, self.home, list(draw.values())) for draw in draws]
        values, variables = probed[0], self._variables(draws[0], probed[0])
        known, _ = sizes_of(draws)
        own = {tuple(draw[name].shape[dim] for draw in draws) for name, dim in _dimensions(draws[0])}
        others = [self._variables(draw, each) for draw, each in zip(draws, probed, strict=True)]
        scene = Scene(words, variables, known, local_sizes(draws, others, own), sides_of(draws))
        last = (("body", len(tree.body) - 1), ("value", None))
        for path, node, above in expressions(tree):
            if not any(isinstance(each, ast.Assign) and _remembers(each) for each in above):
                yield from expression_edits(Site(path, node, above, values.get(path), path == last), scene)
        yield from whole_edits(tree, draws, words)
        yield from place_edits(tree, words)

    def _variables(self, draw: dict[str, Any], values: dict[tuple, Any]) -> dict[str, Any]:
        """What each name was, the arguments and what is made on the way."""
        variables = dict(draw)
        for path, node, above in expressions(self.tree):
            if isinstance(node, ast.Name) and path in values and node.id not in self.home:
                variables.setdefault(node.id, values[path])
                if above and isinstance(above[-1], ast.Assign) and _remembers(above[-1]):
                    variables.setdefault(BEFORE + node.id, values[path])
        return {name: value for name, value in variables.items() if isinstance(value, Tensor | int | float)}

    def _made(self, edits: tuple[Edit, ...], values: dict, cost: float | None = None) -> NearMiss | None:
        try:
            function = compiled(edited(self.tree, edits), self.home)
        except (SyntaxError, TypeError, ValueError, AttributeError, IndexError, StopIteration, RecursionError):
            return None
        says = tuple(dict.fromkeys(edit.says for edit in edits))
        if cost is not None and len(says) > 1:
            says = (f"{says[0]}, and likewise elsewhere",)
        miss = NearMiss(function, says, sum(edit.cost for edit in edits) if cost is None else cost)
        return miss if self._known(miss, values) else None

    def _known(self, miss: NearMiss, values: dict) -> bool:
        """Whether it runs, and differs from the answer; if so, what it gives on the first input is kept."""
        got = self.run(miss.function, self.inputs)
        if got is None:
            return False
        flat = _flat(got)
        if (
            tuple(got.shape) == self.right_shape
            and flat.shape == self.right.shape
            and _alike(flat, self.right, self.tolerance)
            and (values is not self._values or not self._differs_elsewhere(miss))
        ):
            return False
        values.setdefault((flat.numel(), *got.shape), []).append((flat, miss))
        return True

    def _differs_elsewhere(self, miss: NearMiss) -> bool:
        """Whether a near miss that does as the answer on the first input does otherwise on another."""
        for draw, right in zip(self.draws[1:], self.rights[1:], strict=True):
            got = self.run(miss.function, list(draw.values()))
            if got is None or got.shape != right.shape or not _alike(_flat(got), _flat(right), self.tolerance):
                return True
        self.alike.append(miss)
        return False

    def run(self, function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
        """What a near miss gives; cut to whole numbers where these are due, since a float is told by its dtype."""
        with self.guard:
            got = _called(function, inputs)
        return got.long() if got is not None and self.whole and got.is_floating_point() else got

    def _paired(self, edits: list[Edit]) -> Iterator[NearMiss | None]:
        order = sorted(
            combinations(edits, 2),
            key=lambda pair: (
                pair[0].cost
                + pair[1].cost
                - 0.5 * (pair[0].kind == pair[1].kind)
                - 0.5 * (pair[0].says == pair[1].says)  # the same mistake in two places
            ),
        )
        for first, second in order[:PAIRS]:
            if first.path != second.path:
                yield self._made((first, second), self._pair_values)

    def named(self, function: Callable[..., Any], inputs: dict[str, Any], budget: float = BUDGET) -> str | None:
        """What a wrong answer gets wrong, in words, if it behaves like a near miss on ``inputs`` and on others."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._named(function, inputs, time.process_time() + budget)

    def _named(self, function: Callable[..., Any], inputs: dict[str, Any], end: float) -> str | None:
        got = _called(function, self.inputs) if hasattr(self, "tree") else None
        if got is None:
            return None
        trial = _Trial(self, function, inputs)
        _advance(self._singly, end)
        if (sentence := self._best(trial, self._agreeing(got, self._values))) is not None:
            return sentence
        _advance(self._pairs, end)
        return self._best(trial, self._agreeing(got, self._pair_values))

    def _agreeing(self, got: Tensor, values: dict) -> list[NearMiss]:
        flat = _flat(got)
        known = values.get((flat.numel(), *got.shape), [])
        if not known:
            return []
        stacked = torch.stack([each for each, _ in known])
        off = (stacked - flat).abs()
        scale = torch.where(stacked.abs() < 1e29, stacked.abs(), 0).amax(1, keepdim=True) if stacked.shape[1] else 1
        fits = (off <= self.tolerance * scale).all(1)
        return [known[i][1] for i in fits.nonzero()[:, 0].tolist()]

    def _best(self, trial: "_Trial", misses: list[NearMiss]) -> str | None:
        found = [miss for miss in sorted(misses, key=lambda miss: miss.cost)[:100] if trial.agrees(miss)]
        if not found or (trial.is_zero() and len({miss.sentence for miss in found}) > 1):
            return None  # nothing, or nothing that tells one mistake from another
        least = [miss for miss in found if miss.cost <= found[0].cost + 1e-9]
        if len(least[0].says) == 1 or len({miss.sentence for miss in least}) == 1:
            return least[0].sentence
        shared = [says for says in least[0].says if all(says in miss.says for miss in found)]
        return f"{shared[0]}; and something else is wrong" if shared else least[0].sentence


class _Trial:
    """A wrong answer's values on the inputs that confirm a near miss."""

    def __init__(self, family: Family, function: Callable[..., Any], failing: dict[str, Any]):
        self.family, self.function = family, function
        self.inputs = [failing, *(family.drawn(seed) for seed in CONFIRM_SEEDS)]
        self.got: list[Any] = []

    def agrees(self, miss: NearMiss) -> bool:
        for i, inputs in enumerate(self.inputs):
            if len(self.got) <= i:
                self.got.append(_called(self.function, list(inputs.values())))
            theirs, ours = self.got[i], self.family.run(miss.function, list(inputs.values()))
            if (theirs is None) != (ours is None):
                return False
            if theirs is not None and (
                theirs.shape != ours.shape
                or theirs.is_complex() != ours.is_complex()
                or not _alike(_flat(theirs), _flat(ours), self.family.tolerance)
            ):
                return False
        return True

    def is_zero(self) -> bool:
        """Whether the wrong answer is 0 wherever it was tried."""
        return not any(each is not None and each.any() for each in self.got)


class _Guard(TorchFunctionMode):
    """Least squares of nothing, or of what is not finite, makes LAPACK complain on the terminal; of too low a rank, it
    says one thing now and another then, but for the driver gelsd (torch hands gelsy a permutation that it has not set);
    and what gets another axis in each round of a loop fills the memory.
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
    """Whether a loop picks entries by several indices, x[rows, columns], where a slice for one adds an axis."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    picked = [node.slice for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Subscript)]
    return any(
        isinstance(index, ast.Tuple) and all(isinstance(each, ast.Name) for each in index.elts) for index in picked
    )


def _advance(work: Iterator[Any], end: float) -> None:
    """Goes on with what is still to be made, until it is done or the time is up."""
    while time.process_time() < end and next(work, work) is not work:
        pass


def _everywhere(edits: list[Edit]) -> list[tuple[tuple[Edit, ...], float]]:
    """Edits of one kind, made in all places at once, or in all but the first; and what this costs."""
    groups = []
    for _, same in groupby(sorted(edits, key=lambda edit: edit.kind), key=lambda edit: edit.kind):
        by_path: dict[tuple, Edit] = {}
        for edit in same:
            by_path.setdefault(edit.path, edit)
        every = tuple(by_path.values())
        if 2 <= len(every) <= 5:
            cost = max(edit.cost for edit in every) + 0.1
            groups.append((every, cost))
            if len(every) > 2:
                groups.append((every[1:], cost + 0.1))
    return groups


def _probed(tree: Any, home: dict[str, Any], inputs: list[Any]) -> dict[tuple, Any]:
    """What every expression of the answer was, on one input."""
    values: dict[tuple, Any] = {}
    paths = [path for path, node, _ in expressions(tree)]

    def note(at: int, value: Any) -> Any:
        values.setdefault(paths[at], value)
        return value

    def noting(at: int) -> Callable[[Any], Any]:
        return lambda now: made(f"note_({at}, X)", X=now)

    probes = tuple(Edit(path, noting(at), "", "", 0) for at, path in enumerate(paths) if not _awkward(tree, path))
    _called(compiled(edited(tree, probes), {**home, "note_": note}), inputs)
    return values


def _dimensions(draw: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in draw.items():
        if isinstance(value, Tensor):
            yield from ((name, dim) for dim in range(value.ndim))


def _remembers(line: ast.Assign) -> bool:
    """Whether a statement is none of the answer's, but keeps a former value."""
    return isinstance(line.targets[0], ast.Name) and line.targets[0].id.startswith(BEFORE)


def _awkward(tree: Any, path: tuple) -> bool:
    """A slice is no value; the name of a module is none worth keeping."""
    node = tree
    for name, index in path:
        node = getattr(node, name) if index is None else getattr(node, name)[index]
    if type(node).__name__ in ("Slice", "Starred"):
        return True
    return type(node).__name__ == "Tuple" and path[-1][0] == "slice"


def _called(function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
    try:
        with torch.no_grad():
            got = function(*_copies(inputs))
    except (Exception, SystemExit):  # a near miss that does not run is none
        return None
    return got if isinstance(got, Tensor) and got.device.type == "cpu" else None


def _copies(inputs: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in inputs]


def _flat(values: Tensor) -> Tensor:
    values = torch.view_as_real(values.to(torch.complex128)) if values.is_complex() else values.to(torch.float64)
    return values.detach().flatten().nan_to_num(nan=0.12345, posinf=1e30, neginf=-1e30)


def _alike(got: Tensor, other: Tensor, tolerance: float) -> bool:
    if not other.numel():
        return True
    finite = torch.where(other.abs() < 1e29, other.abs(), 0)
    return bool(((got - other).abs() <= tolerance * finite.max()).all())


_families: dict[int, Family] = {}


def family(exercise: Any) -> Family:
    """An exercise's near misses, made once in a process."""
    if id(exercise) not in _families:
        _families[id(exercise)] = Family(exercise.answer, exercise._drawn, exercise.tolerance)
    return _families[id(exercise)]
