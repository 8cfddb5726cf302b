"""Every step away from an answer: each row of the table at each place where it applies, with its sentence."""

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from companion.lesson.near_misses.fillings import FILLINGS
from companion.lesson.near_misses.matching import Parts, Reading, readings
from companion.lesson.near_misses.places import AnswerPlace, Context, places_of
from companion.lesson.near_misses.syntax import operation
from companion.lesson.near_misses.table import Row, TableBlock, near_miss_table
from companion.lesson.near_misses.trees import FUNCTION_LETTERS, SLOT, Edit, Path, made
from companion.lesson.near_misses.words import OPERATIONS, RELATIONS, VAGUE, Words
from companion.lesson.seen import ORDINALS

INNER = 0.8  # how much less likely a change is to a tensor on its way than to the answer


def edits(context: Context) -> Iterator[Edit]:
    """Yield every step away from an answer."""
    for place in places_of(context):
        for block in near_miss_table():
            for reading in readings(block, place, context):
                application = Application(block, place, reading, context)
                for row in block.rows:
                    yield from application.edits(row)


def together(edits: list[Edit]) -> Iterator[tuple[tuple[Edit, ...], float]]:
    """Yield edits of one group, to be made together everywhere, or everywhere but once, and what this costs."""
    groups: dict[str, dict[Path, Edit]] = {}
    for edit in edits:
        groups.setdefault(edit.group, {}).setdefault(edit.path, edit)
    for _, by_path in sorted(groups.items()):
        all_places = tuple(by_path.values())
        if 2 <= len(all_places) <= 5:
            cost = max(edit.cost for edit in all_places) + 0.1
            yield all_places, cost
            if len(all_places) > 2:
                yield all_places[1:], cost + 0.1


@dataclass(frozen=True)
class Variant:
    """A row at one place, with something in place of its names in braces.

    ``text``: the code, in which the names of ``nodes`` and the letters of the row stand for nodes.
    ``mistake``: the sentence, in which letters and the names of ``parts`` are still to be put into words.
    ``cost``: how much less likely it is than the row.
    ``number``: one that is written out, and the one that it replaces.
    """

    text: str
    mistake: str
    nodes: dict[str, ast.AST] = field(default_factory=dict)
    parts: dict[str, ast.AST] = field(default_factory=dict)
    cost: float = 0
    number: tuple[float, float] | None = None


@dataclass(frozen=True)
class Application:
    """A block of the table at a place of an answer where it applies, in one of the ways in which it does."""

    block: TableBlock
    place: AnswerPlace
    reading: Reading
    context: Context

    @cached_property
    def parts(self) -> Parts:
        """Return what the letters of the block's rows stand for."""
        return self.reading(self.place.node)

    def edits(self, row: Row) -> Iterator[Edit]:
        """Yield the edits that a row makes, but for those whose sentence names a part that is not there."""
        at_answer = "answer" in self.place.kinds
        whole_value = self.block.kind == "value"
        for variant in self._variants(row):
            sentence = Sentence(variant.mistake, self.parts | variant.parts, self.place)
            try:
                plain = sentence(self.context.words)
            except KeyError:
                continue
            yield Edit(
                path=self.place.path,
                change=self._change(variant),
                mistake=plain,
                group=self._group(row, variant),
                cost=(INNER if whole_value and not at_answer else 0) + row.cost + variant.cost,
                row=row.line,
                sentence=sentence,
                number=variant.number,
                of_values=row.of_values or (whole_value and at_answer),
            )

    def _change(self, variant: Variant) -> Any:
        return lambda now: made(variant.text, **self.reading(now), **variant.nodes)

    def _group(self, row: Row, variant: Variant) -> str:
        """Return what edits have in common that a learner makes in all places at once."""
        of_parts = "".join(map(ast.unparse, variant.parts.values()))
        mistake = row.mistake if self.block.kind == "list" else variant.mistake + of_parts
        function = self.place.function if "is missing" in mistake else ""
        return f"{self.place.kinds & {'argument'}} {mistake} {function}"

    def _variants(self, row: Row) -> Iterator[Variant]:
        """Yield a row with each thing that can stand in place of its names in braces."""
        text = row.text.replace("{name}", self.place.function).replace("{now}", self.place.comparison)
        mistake = row.mistake.replace("{now}", RELATIONS.get(self.place.comparison, ""))
        text = f"X = {text}" if "argument" in self.place.kinds else text
        if "{new}" in mistake:
            yield from self._of_number(text, mistake)
        elif "places" in self.parts:
            yield Variant(f"cut({text!r})", _of_axis(mistake, self.parts["places"], self.context.inputs))
        elif name := re.search(r"\{(\w+)\}", text):
            yield from self._filled(name[0], text, mistake)
        else:
            yield Variant(text, mistake)

    def _of_number(self, text: str, mistake: str) -> Iterator[Variant]:
        """Yield a number that is computed from the one that stands there, by the row's own text."""
        own = ast.literal_eval(self.place.node)
        try:
            new = eval(text, {"X": own})
        except ZeroDivisionError:
            return
        new = int(new) if type(own) is int and new == int(new) else float(f"{new:.12g}")  # 10 * 1e-6
        if new != own:
            unwritten = new == 0 and self.block.kind == "index"  # as in [0:]
            number = None if unwritten else (float(new), float(own))
            yield Variant(repr(new), mistake.replace("{new}", f"{new:g}"), number=number)

    def _filled(self, name: str, text: str, mistake: str) -> Iterator[Variant]:
        """Yield a row for each filling of its name in braces."""
        shifts_parts = _is_joined(self.place.node) and (".flip(" in text or ".roll(" in text)
        for filling in FILLINGS[name[1:-1]](self.place, self.parts, self.context):
            if shifts_parts and name == "{each_axis}" and filling.code.value == 0:  # type: ignore[union-attr]
                continue  # what a list puts together is no row of places
            words = mistake
            for key, word in filling.words.items():
                words = words.replace(f"{{{key}}}", word)
            if isinstance(filling.code, str):
                yield Variant(text.replace(name, filling.code), words, {}, filling.parts, filling.cost)
            else:
                nodes = {"FILLING": filling.code}
                yield Variant(text.replace(name, "FILLING"), words, nodes, filling.parts, filling.cost)


@dataclass(frozen=True)
class Sentence:
    """A mistake at a place, whose parts are to be put into words; what follows || is said if two have the same words."""

    text: str
    parts: Parts
    place: AnswerPlace

    def __call__(self, words: Words) -> str:
        """Return the sentence, or nothing where words fail. Raises KeyError for a part that is not there."""
        nouns: dict[str, str] = {}

        def noun(found: re.Match) -> str:
            name = found[1]
            if name in FUNCTION_LETTERS:
                return OPERATIONS[operation(self.parts[name])[0]]
            nouns[name] = self._noun(self.parts[name], words)
            return nouns[name]

        distinct, _, alike = self.text.partition(" || ")
        for text in (distinct, alike):
            nouns.clear()
            sentence = re.sub(r"\{([A-Zfg]|one|two|other|whose)\}", noun, text)
            sentence = sentence.replace("{word}", OPERATIONS.get(self.place.function) or self.place.function)
            sentence = sentence.replace("1 minus minus ", "1 plus ")
            if VAGUE not in sentence and _told_apart(list(nouns.values())):
                return sentence
        return ""

    def _noun(self, part: Any, words: Words) -> str:
        if self.place.path == SLOT:
            return part.id  # an argument, before anything has changed it
        return "the answer" if part is self.place.node and "answer" in self.place.kinds else words.noun(part)


def _told_apart(nouns: list[str]) -> bool:
    """Return whether no two parts have one name, nor one a vague name that is part of another's."""
    vague = [noun[noun.find("what is computed from") :] if "what is computed from" in noun else "" for noun in nouns]
    alike = any(one and two.startswith(one) for one, two in itertools.permutations(vague, 2))
    return len(set(nouns)) == len(nouns) and not alike


def _is_joined(node: Any) -> bool:
    """Return whether a node puts the entries of a list together."""
    joins = node is not None and operation(node)[0] in ("stack", "cat")
    return joins and isinstance(node.args[0], ast.List | ast.Tuple)


def _of_axis(mistake: str, shared: list[tuple[str, int]], inputs: dict[str, Any]) -> str:
    """Put into words what is cut from an axis that arguments share: entries, rows or columns of all of them."""
    (name, dim), *_ = shared
    last = inputs[name].ndim - 1
    names = " and ".join(dict.fromkeys(name for name, _ in shared))
    kinds = ("entry", "entries") if not last else ("row", "rows") if not dim else ("column", "columns")
    if dim not in (0, last):
        kinds, names = ("place", "places"), f"{names} along the {ORDINALS[dim]} axis"
    return mistake.format(one=f"{kinds[0]} of {names}", many=f"{kinds[1]} of {names}")
