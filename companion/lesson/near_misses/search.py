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
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.lesson.near_misses.edits import edits, together
from companion.lesson.near_misses.places import Context
from companion.lesson.near_misses.programs import Program
from companion.lesson.near_misses.trees import (
    BEFORE,
    ROUNDS,
    Edit,
    answer_path,
    compiled,
    definition,
    edited,
    expressions,
    made,
    remembers,
)
from companion.lesson.near_misses.words import Words, size_words

DRAW_SEEDS = range(2000, 2004)
CONFIRM_SEEDS = range(2000, 2006)
MORE_SEEDS = range(2000, 2018)  # for whole numbers and conditions, of which one draw says little
LONE_NUMBER = re.compile(r"-?[\d.]+ is (left out|not added|not subtracted)")  # too little to be said of values
ELSEWHERE = ", and likewise elsewhere"
MOST_ENTRIES = 100_000  # of a tensor on the way
SECONDS = 20.0  # of computing, for one exercise's near misses: a stop for answers that are slow, not the rule
WIDE_SEEDS = range(7000, 7004)  # for inputs of another kind
NEAR = 0.3  # of the cheapest near miss that agrees: the first of these that the program bears out is told
MISFITS = (SyntaxError, TypeError, ValueError, LookupError, AttributeError, StopIteration, RecursionError)  # of a row


@dataclass(frozen=True)
class NearMiss:
    """A function beside the answer, its value on the first input, what it gets wrong, how unlikely it is, its
    definition, and the edits that make it.
    """

    function: Callable[..., Any]
    value: Tensor
    says: str
    cost: float
    tree: ast.FunctionDef
    edits: tuple[Edit, ...]

    @property
    def of_answer(self) -> bool:
        """Return whether it changes the answer alone, once all is computed."""
        return all(edit.path == answer_path(self.tree) for edit in self.edits)

    def sentence(self, words: Words) -> str:
        """Say what it gets wrong in the words of a learner's program; nothing where words fail."""
        said = min(self.edits, key=lambda edit: len(edit.path)).sentence(words)  # of several, the outermost
        return said + ("" if len({edit.mistake for edit in self.edits}) < 2 or not said else ELSEWHERE)


@dataclass(frozen=True)
class Reason:
    """What a wrong answer gets wrong, and whether its own program bears that out. If not, it is said of its values."""

    says: str
    sure: bool


class Family:
    """The near misses of one exercise's answer, made when first needed: how many are tried is fixed, not how long.

    ``alike``: what is no different on any input.
    """

    def __init__(self, answer: Callable[..., Tensor], drawn: Callable[[int], dict[str, Any]], tolerance: float):
        self.answer, self.drawn = inspect.unwrap(answer), drawn
        self.same, self.tolerance = partial(same, tolerance=tolerance), tolerance
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
    def wide(self) -> list[tuple[dict[str, Any], Tensor | None]]:
        """Inputs of other sizes and signs than a task has, each with what the answer makes of them."""
        drawn = [unrestricted(self.drawn(seed), seed, whole=seed % 2 == 1) for seed in WIDE_SEEDS]
        return [(inputs, self.run(self.answer, list(inputs.values()))) for inputs in drawn]

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Return what each variable of the answer was on a drawn input."""
        values, variables = self.values, dict(self.draws[0])
        for path, node, above in expressions(self.tree):  # type: ignore[arg-type]
            if isinstance(node, ast.Name) and path in values and node.id not in self.home:
                variables.setdefault(node.id, values[path])
                if above and remembers(above[-1]):
                    variables.setdefault(BEFORE + node.id, values[path])
        return {name: value for name, value in variables.items() if isinstance(value, Tensor | int | float)}

    @cached_property
    def values(self) -> dict[tuple, Any]:
        """Return what each expression of the answer was on a drawn input."""
        return _probed(self.tree, self.home, list(self.draws[0].values()))

    @cached_property
    def singles(self) -> list[NearMiss]:
        """Every function one step away."""
        if self.tree is None:
            return []
        with warnings.catch_warnings(action="ignore"):
            single = list(edits(self.context()))
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

    def context(self) -> Context:
        """Return what is known of the answer."""
        return Context(self.tree, self.words(), self.draws[0], self.variables, *_sizes(self.draws), self.values)

    def words(self, known: Collection[str] = ()) -> Words:
        """Return the words for the answer's parts; its variables that are ``known`` go by their names."""
        ndims = {name: each.ndim for name, each in self.variables.items() if isinstance(each, Tensor)}
        return Words(self.tree, ndims, known)  # type: ignore[arg-type]

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
        likewise = ELSEWHERE if len({edit.mistake for edit in edits}) > 1 else ""
        miss = NearMiss(function, first, edits[0].mistake + likewise, cost, tree, edits)
        if not all(map(self.same, chain([first], values), self.rights)):
            return miss
        self.alike.append(miss)
        return None

    def run(self, function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
        """Call a near miss; cut to whole numbers where these are due, since a float is told by its dtype."""
        with self.guard:
            got = called(function, inputs)
        return got.long() if got is not None and self.whole and got.is_floating_point() else got

    def named(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Reason | None:
        """Say what a wrong answer gets wrong, or None: the cheapest near miss that does as it does wherever both are
        tried. What the answer's own program does not bear out is told of its values alone, and only if these agree on
        more inputs, of other kinds, too. An answer that differs from the right one in nothing but zeros, NaN or
        infinities gets no reason.
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

    def reason(self) -> Reason | None:
        """Say what the wrong answer gets wrong if it does as one of the near misses, the cheapest, wherever it is tried."""
        first, family = self.got[1], self.family  # on the input that the near misses' values are known for
        if first is None or (family.whole and first.is_floating_point()):
            return None
        close = [miss for miss in family.singles if family.same(first, miss.value)]
        found = [miss for miss in sorted(close, key=lambda miss: miss.cost)[:100] if self._agrees(miss)]
        near = [miss for miss in found if miss.cost <= found[0].cost + NEAR]
        program = Program.of(self.function, family.tree)
        words = family.words(program.names if program else ())
        told = [(miss, said) for miss in near if (said := miss.sentence(words)) and fits(miss, said, program)]
        if program is not None:
            sure = [program.evidence(miss.tree) for miss, _ in told]
            if any(sure):
                return Reason(told[sure.index(max(sure))][1], True)
        of_values = [
            (miss, said)
            for miss, said in sorted(told, key=lambda each: not each[0].of_answer)
            if (all(edit.of_values for edit in miss.edits) or (program and program.shows(miss.tree)))
            and not LONE_NUMBER.match(said)
        ]
        if self._is_a_constant():
            of_values = [each for each in of_values if each[0].of_answer]
        of_values = [each for each in of_values if self._agrees_further(each[0])]
        elsewhere = [each for each in of_values if self._agrees_elsewhere(each[0], program)]
        count = self.family.exact and not self.family.rights[0].ndim  # one small number agrees too often
        for _, said in elsewhere or ([] if count else of_values):
            return Reason(f"the values are those that come out when {said.partition(':')[0]}", False)
        return None

    def _agrees_further(self, miss: NearMiss) -> bool:
        """Return whether the answer has the values of a near miss on more of the task's inputs."""
        further = (list(self.family.drawn(seed).values()) for seed in sorted(set(MORE_SEEDS) - set(CONFIRM_SEEDS)))
        return all(
            self.family.same(called(self.function, each), self.family.run(miss.function, each)) for each in further
        )

    def _agrees_elsewhere(self, miss: NearMiss, program: Program | None) -> bool:
        """Return whether it has them on inputs of other kinds, too, where both say something; a program that may never
        end on these is not tried.
        """
        if program is None or program.waits:
            return True
        for inputs, right in self.family.wide:
            values = list(inputs.values())
            with _Guard():
                got = called(self.function, values)
            other = self.family.run(miss.function, values)
            if got is not None and other is not None and right is not None and not self.family.same(got, other):
                return False
        return True

    def _is_a_constant(self) -> bool:
        """Return whether one entry alone is wrong on each input, and 0 on all of them, or 1: that has many reasons."""
        rights = [self.family.run(self.family.answer, list(inputs.values())) for inputs in self.inputs]
        wrong = [
            got[(got.double() - due.double()).abs() > self.family.tolerance * due.double().abs().max()]
            for got, due in zip(self.got, rights, strict=True)
            if got is not None and due is not None and got.shape == due.shape and due.numel() and not got.is_complex()
        ]
        found = torch.cat([each.flatten().double() for each in wrong]) if wrong else torch.zeros(0)
        return all(len(each) <= 1 for each in wrong) and len(found) > 0 and any((found == end).all() for end in (0, 1))

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

    probes = tuple(Edit(path, noting(at)) for at, path in enumerate(paths))
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


def unrestricted(inputs: dict[str, Any], seed: int, *, whole: bool = False) -> dict[str, Any]:
    """Draw inputs of the same shapes, with floating-point numbers of any size and sign; for ``whole``, fractions in the
    place of whole numbers, too.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return 2 * torch.randn(value.shape, generator=generator, dtype=value.dtype) + 0.3
        if whole and isinstance(value, Tensor) and value.dtype == torch.int64:
            return value + torch.rand(value.shape, generator=generator, dtype=torch.float64) - 0.5
        return value

    return {name: drawn(value) for name, value in inputs.items()}


def fits(miss: NearMiss, said: str, program: Program | None) -> bool:
    """Return whether a learner's program allows what is said of a near miss: a number that it is said to have is
    written there, an argument that it is said not to use is not, and what is said to stay as it is changes nowhere.
    """
    for new, old in (edit.number for edit in miss.edits if edit.number):
        if not (program and (abs(new) in program.numbers or (abs(new) == 1 and abs(old) not in {*program.numbers, 1}))):
            return False  # a factor 1 is not written
    unchanged = re.match(r"(\w+) is not changed", said)
    if unchanged and program and program.names[unchanged[1]] > 1:
        return False
    unused = re.search(r"\b(\w+) is not used", said)
    known = {argument.arg for argument in miss.tree.args.args}
    return unused is None or unused[1] not in known or (program is not None and not program.mentions(unused[1]))


_families: dict[int, Family] = {}


def family(exercise: Any) -> Family:
    """Return an exercise's near misses, made once in a process."""
    if id(exercise) not in _families:
        _families[id(exercise)] = Family(exercise.answer, exercise._drawn, exercise.tolerance)
    return _families[id(exercise)]
