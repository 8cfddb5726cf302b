"""What a wrong answer gets wrong: the near miss that it behaves like, if its own program or more inputs bear that out."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.families import CONFIRM_SEEDS, MORE_SEEDS, Family, NearMiss, family
from companion.lesson.near_misses.programs import Program
from companion.lesson.near_misses.running import Guard, called

LONE_NUMBER = re.compile(r"-?[\d.]+ is (left out|not added|not subtracted)")  # too little to be said of values
NEAR = 0.3  # of the cheapest near miss that agrees: the first of these that the program bears out is told


@dataclass(frozen=True)
class Reason:
    """What a wrong answer gets wrong.

    ``mistake``: in words.
    ``sure``: whether its own program bears that out; if not, it is said of its values.
    """

    mistake: str
    sure: bool


def reason_of(exercise: Any, function: Callable[..., Any], inputs: dict[str, Any]) -> Reason | None:
    """Return what a wrong answer gets wrong, or None: the cheapest near miss that does as it does wherever both are
    tried. What the answer's own program does not bear out is said of its values alone, and only if these agree on more
    inputs, of other kinds, too. An answer that differs from the right one in nothing but zeros, NaN or infinities gets
    no reason.

    ``exercise``: whose answer it is.
    ``function``: the wrong answer.
    ``inputs``: on which it failed.
    """
    if not family(exercise).singles:
        return None
    trial = _Trial(family(exercise), function, inputs)
    return trial.reason() if trial.has_values() else None


class _Trial:
    """A wrong answer's values on the inputs that confirm a near miss: where it failed, and on fresh ones."""

    def __init__(self, family: Family, function: Callable[..., Any], failing: dict[str, Any]):
        self.family, self.function = family, function
        self.inputs = [failing, *(inputs for inputs, _ in family.fresh)]
        self.values = [called(function, list(inputs.values())) for inputs in self.inputs]
        right = family.run(family.answer, list(failing.values()))
        self.rights = [right, *(right for _, right in family.fresh)]
        self.program = Program.of(function, family.tree)  # type: ignore[arg-type]  # it has near misses, so it has a tree

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Return the answer's values beside the right ones, where there are both."""
        pairs = zip(self.values, self.rights, strict=True)
        return [(value, right) for value, right in pairs if value is not None and right is not None]

    def has_values(self) -> bool:
        """Return whether some entry differs from the right answer and is finite, and not all are 0, or all True,
        wherever they are.
        """
        if all(not value.any() or (value.dtype == torch.bool and value.all()) for value, _ in self._pairs()):
            return False
        return any(
            (value.isfinite() & (True if value.shape != right.shape else (value != right) & right.isfinite())).any()
            for value, right in self._pairs()
        )

    def reason(self) -> Reason | None:
        """Return what the wrong answer gets wrong if it does as one of the near misses, the cheapest, wherever it is
        tried.
        """
        candidates = self._candidates()
        if self.program is not None:
            evidence = [self.program.evidence(miss.tree) for miss, _ in candidates]
            if any(evidence):
                return Reason(candidates[evidence.index(max(evidence))][1], True)
        mistake = self._mistake_in_values(candidates)
        if mistake is None:
            return None
        return Reason(f"the values are those that come out when {mistake.partition(':')[0]}", False)

    def _candidates(self) -> list[tuple[NearMiss, str]]:
        """Return the near misses that have the answer's values and whose sentence its program allows, with that
        sentence; but for those that are much dearer than the cheapest.
        """
        family, first = self.family, self.values[1]  # on the input that the near misses' values are known for
        if first is None or (family.whole and first.is_floating_point()):
            return []
        similar = sorted(
            (miss for miss in family.singles if family.same(first, miss.value)), key=lambda miss: miss.cost
        )
        agreeing = [miss for miss in similar[:100] if self._agrees(miss)]
        words = family.words(self.program.names if self.program else ())
        cheap = [(miss, miss.sentence(words)) for miss in agreeing if miss.cost <= agreeing[0].cost + NEAR]
        return [(miss, sentence) for miss, sentence in cheap if sentence and allows(self.program, miss, sentence)]

    def _mistake_in_values(self, candidates: list[tuple[NearMiss, str]]) -> str | None:
        """Return the first sentence that may be said of the values alone and that more inputs bear out, if any; of what
        changes the answer at last before the others.
        """
        constant = self._is_a_constant()
        agreeing = [
            (miss, sentence)
            for miss, sentence in sorted(candidates, key=lambda candidate: not candidate[0].of_answer)
            if (miss.of_values or (self.program and self.program.shows(miss.tree)))
            and not LONE_NUMBER.match(sentence)
            and (miss.of_answer or not constant)
            and self._agrees_further(miss)
        ]
        elsewhere = (sentence for miss, sentence in agreeing if self._agrees_elsewhere(miss))
        one_count = self.family.exact and not self.family.rights[0].ndim  # one small number agrees too often
        return next(elsewhere, None if one_count or not agreeing else agreeing[0][1])

    def _agrees(self, miss: NearMiss) -> bool:
        values = (self.family.run(miss.function, list(inputs.values())) for inputs in self.inputs)
        return all(map(self.family.same, self.values, values))

    def _agrees_further(self, miss: NearMiss) -> bool:
        """Return whether the answer has the values of a near miss on more of the task's inputs."""
        further = (list(self.family.drawn(seed).values()) for seed in sorted(set(MORE_SEEDS) - set(CONFIRM_SEEDS)))
        return all(
            self.family.same(called(self.function, inputs), self.family.run(miss.function, inputs))
            for inputs in further
        )

    def _agrees_elsewhere(self, miss: NearMiss) -> bool:
        """Return whether it has them on inputs of other kinds, too, where both have values; a program that may never
        end on these is not tried.
        """
        if self.program is None or self.program.waits:
            return True
        for inputs, right in self.family.wide:
            with Guard():
                value = called(self.function, list(inputs.values()))
            other = self.family.run(miss.function, list(inputs.values()))
            if not (value is None or other is None or right is None or self.family.same(value, other)):
                return False
        return True

    def _is_a_constant(self) -> bool:
        """Return whether one entry alone is wrong on each input, and 0 on all of them, or 1: that has many reasons."""
        wrong = [
            value[(value.double() - right.double()).abs() > self.family.tolerance * right.double().abs().max()].double()
            for value, right in self._pairs()
            if value.shape == right.shape and right.numel() and not value.is_complex()
        ]
        if not wrong or any(len(entries) > 1 for entries in wrong):
            return False
        entries = torch.cat([entries.flatten() for entries in wrong])
        return len(entries) > 0 and any((entries == end).all() for end in (0, 1))


def allows(program: Program | None, miss: NearMiss, sentence: str) -> bool:
    """Return whether a learner's program allows what is said of a near miss: a number that it is said to have is
    written there, an argument that it is said not to use is not, and what is said to stay as it is changes nowhere.
    """
    if not all(program and _writes(program, *edit.number) for edit in miss.edits if edit.number):
        return False
    unchanged = re.match(r"(\w+) is not changed", sentence)
    if unchanged and program and program.names[unchanged[1]] > 1:
        return False
    unused = re.search(r"\b(\w+) is not used", sentence)
    if unused is None or unused[1] not in {argument.arg for argument in miss.tree.args.args}:
        return True
    return program is not None and not program.mentions(unused[1])


def _writes(program: Program, new: float, old: float) -> bool:
    """Return whether a number stands in a program, or none where the answer has one: a factor 1 is not written."""
    return abs(new) in program.numbers or (abs(new) == 1 and abs(old) not in {*program.numbers, 1})
