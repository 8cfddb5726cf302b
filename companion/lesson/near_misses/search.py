"""What a wrong answer gets wrong: the near miss that it behaves like, if its own program or more inputs bear that out."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from companion.lesson.near_misses.families import CONFIRM_SEEDS, MORE_SEEDS, Family, NearMiss, family
from companion.lesson.near_misses.programs import Program
from companion.lesson.near_misses.running import Guard, called

LONE_NUMBER = re.compile(r"-?[\d.]+ is (left out|not added|not subtracted)")  # too little to be said of values
NEAR = 0.3  # of the cheapest near miss that agrees: the first of these that the program bears out is told


@dataclass(frozen=True)
class Reason:
    """What a wrong answer gets wrong, and whether its own program bears that out. If not, it is said of its values."""

    says: str
    sure: bool


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
            with Guard():
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


def reason_of(exercise: Any, function: Callable[..., Any], inputs: dict[str, Any]) -> Reason | None:
    """Say what a wrong answer gets wrong, or None: the cheapest near miss that does as it does wherever both are
    tried. What the answer's own program does not bear out is told of its values alone, and only if these agree on
    more inputs, of other kinds, too. An answer that differs from the right one in nothing but zeros, NaN or
    infinities gets no reason.
    """
    if not family(exercise).singles:
        return None
    trial = _Trial(family(exercise), function, inputs)
    return trial.reason() if trial.says_something() else None
