"""The near misses of one exercise's answer, made when first needed and run on drawn inputs."""

import ast
import contextlib
import inspect
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

from companion.lesson.near_misses.edits import edits, together
from companion.lesson.near_misses.places import Context
from companion.lesson.near_misses.running import Guard, called, same, unrestricted
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
ELSEWHERE = ", and likewise elsewhere"
SECONDS = 20.0  # of computing, for one exercise's near misses: a stop for answers that are slow, not the rule
WIDE_SEEDS = range(7000, 7004)  # for inputs of another kind
MISFITS = (SyntaxError, TypeError, ValueError, LookupError, AttributeError, StopIteration, RecursionError)  # of a row


@dataclass(frozen=True)
class NearMiss:
    """A function one step away from the answer.

    ``value``: what it gives on the first input.
    ``mistake``: what it gets wrong, in words.
    ``cost``: the lower, the likelier.
    ``tree``: its definition.
    ``edits``: what makes it of the answer.
    """

    function: Callable[..., Any]
    value: Tensor
    mistake: str
    cost: float
    tree: ast.FunctionDef
    edits: tuple[Edit, ...]

    @property
    def of_answer(self) -> bool:
        """Return whether it changes the answer alone, once all is computed."""
        return all(edit.path == answer_path(self.tree) for edit in self.edits)

    @property
    def of_values(self) -> bool:
        """Return whether its mistake is one in the values, whatever the program."""
        return all(edit.of_values for edit in self.edits)

    def sentence(self, words: Words) -> str:
        """Return what it gets wrong in the words of a learner's program; nothing where words fail."""
        outermost = min(self.edits, key=lambda edit: len(edit.path)).sentence(words)
        return outermost and outermost + _elsewhere(self.edits)


def _elsewhere(edits: tuple[Edit, ...]) -> str:
    return ELSEWHERE if len({edit.mistake for edit in edits}) > 1 else ""


class Family:
    """The near misses of one exercise's answer, made when first needed: how many are tried is fixed, not how long.

    ``answer``: the course's.
    ``drawn``: gives the inputs of a seed.
    ``tolerance``: within which two results are the same.
    ``alike``: the functions one step away that give what the answer gives on every input.
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
        self.guard: contextlib.AbstractContextManager = Guard() if watched else contextlib.nullcontext()
        self.draws = [self.drawn(seed) for seed in DRAW_SEEDS]
        self.rights = [called(self.answer, list(draw.values())) for draw in self.draws]
        self.whole = self.rights[0].dtype in (torch.int32, torch.int64)
        self.exact = not (self.rights[0].is_floating_point() or self.rights[0].is_complex())

    @cached_property
    def wide(self) -> list[tuple[dict[str, Any], Tensor | None]]:
        """Draw inputs of other sizes and signs than a task has, each with what the answer makes of them."""
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
        """Make every function one step away that runs and differs from the answer, the cheapest first."""
        if self.tree is None:
            return []
        with warnings.catch_warnings(action="ignore"):
            single = list(edits(self.context()))
            steps = [((edit,), edit.cost) for edit in single] + [*together(single)]
            misses, end = [], time.process_time() + SECONDS
            for step, cost in sorted(steps, key=lambda step: step[1]):
                misses.append(self._made(step, cost))
                if time.process_time() > end:
                    break
        return [miss for miss in misses if miss]

    @cached_property
    def fresh(self) -> list[tuple[dict[str, Any], Tensor | None]]:
        """Draw the inputs, beside the one that failed, on which a near miss is confirmed, each with its right answer."""
        drawn = [self.drawn(seed) for seed in (MORE_SEEDS if self.exact else CONFIRM_SEEDS)]
        return [(inputs, self.run(self.answer, list(inputs.values()))) for inputs in drawn]

    def context(self) -> Context:
        """Return what is known of the answer."""
        return Context(self.tree, self.words(), self.draws[0], self.variables, *_sizes(self.draws), self.values)

    def words(self, known: Collection[str] = ()) -> Words:
        """Return the words for the answer's parts; its variables that are ``known`` go by their names."""
        ndims = {name: value.ndim for name, value in self.variables.items() if isinstance(value, Tensor)}
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
        miss = NearMiss(function, first, edits[0].mistake + _elsewhere(edits), cost, tree, edits)
        if not all(map(self.same, chain([first], values), self.rights)):
            return miss
        self.alike.append(miss)
        return None

    def run(self, function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
        """Call a near miss; cut to whole numbers where these are due, since a float is told by its dtype."""
        with self.guard:
            got = called(function, inputs)
        return got.long() if got is not None and self.whole and got.is_floating_point() else got


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


_families: dict[int, Family] = {}


def family(exercise: Any) -> Family:
    """Return an exercise's near misses, made once in a process."""
    if id(exercise) not in _families:
        _families[id(exercise)] = Family(exercise.answer, exercise._drawn, exercise.tolerance)
    return _families[id(exercise)]
