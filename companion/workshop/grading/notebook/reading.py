"""A notebook's code, read from top to bottom: which of it an answer rests on, and what more of it may bear on that."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from companion.workshop.grading.notebook import slices, syntax
from companion.workshop.grading.notebook.handout import Handout, Question

Way = tuple[list[str], str]  # what is run before an answer's cell, and of it


@dataclass(frozen=True)
class Lesson:
    """What a lesson's own cells say: the likeness and the shape of each statement, and the names that they import."""

    likenesses: frozenset[str]
    shapes: frozenset[str]
    modules: frozenset[str]

    def has(self, source: str) -> bool:
        """Return whether the lesson has this statement."""
        return syntax.shape(source) in self.shapes

    def has_like(self, source: str) -> bool:
        """Return whether the lesson has this statement, perhaps with other numbers and texts."""
        return syntax.likeness(source) in self.likenesses


@functools.lru_cache(1)
def lesson_of(handout: Handout) -> Lesson:
    """Return what the lesson's own cells say."""
    course = [*map(syntax.plain, handout.code)]
    statements = [piece.source for cell in course for piece in slices.pieces(cell, frozenset())]
    modules = frozenset().union(*map(syntax.imported, course))
    return Lesson(frozenset(map(syntax.likeness, statements)), frozenset(map(syntax.shape, statements)), modules)


class Reading:
    """A notebook's code as it reads from top to bottom, with the ``files`` that it may import."""

    def __init__(self, handout: Handout, sources: list[str], files: Mapping[str, str]):
        self.files = {name.removesuffix(".py"): text for name, text in files.items()}
        self.sources, own = sources, frozenset(self.files)
        self.lesson = lesson_of(handout)
        self.modules = self.lesson.modules.union(*(syntax.imported(source, own) for source in self.sources))
        self.cells = [  # what a hand-in imports besides leaves a cell as it was that does not speak of it
            slices.pieces(cell, self.modules & syntax.words_of(cell)) for cell in self.sources
        ]

    def of(self, question: Question, place: int, end: int) -> tuple[Way, bool]:
        """Return what to run of the other cells, and then of the cell at ``place``, which answers the question once the
        first ``end`` cells have run; of what cannot be parsed the whole cell alone. And whether this leaves out
        something of the first ``end`` cells that may bear on the answer.
        """
        every, starts = [], [0]
        for number, cell in enumerate(self.cells):
            others = number != place  # whose definitions of the same function do not count
            every += [slices.Piece() if others and question.function in piece.binds else piece for piece in cell]
            starts.append(len(every))
        numbers = slices.needed(question.function, starts[place + 1], every, starts[end])
        here = [every[number].source for number in numbers if starts[place] <= number < starts[place + 1]]
        before = [every[number].source for number in numbers if not starts[place] <= number < starts[place + 1]]
        way = (before, "\n".join(here)) if here else ([], self.sources[place])
        left = {*range(starts[end])}.difference(numbers)
        return way, self._bear([every[number] for number in left], [every[number] for number in numbers])

    def _bear(self, left: list[slices.Piece], taken: list[slices.Piece]) -> bool:
        """Whether one of the statements that are ``left`` out may bear on an answer for which others are ``taken``:
        what acts and is the learner's own; what gives a name that the answer speaks of, be it in a text; and what acts
        and is the lesson's, and speaks of values that the answer needs.
        """
        words = {word for piece in taken if not self.lesson.has(piece.source) for word in syntax.words_of(piece.source)}
        values = frozenset().union(*(piece.changes for piece in taken if not slices.defines(piece.source)))
        values -= self.modules

        def bears_on_it(piece: slices.Piece) -> bool:
            if self.lesson.has(piece.source):
                return piece.acts and not values.isdisjoint(syntax.used(piece.source))
            return piece.acts or not words.isdisjoint(piece.changes)

        return any(map(bears_on_it, left))

    def own(self, end: int) -> list[str]:
        """Return the statements of the first ``end`` cells that the lesson does not have in this form or a like one."""
        statements = [piece.source for cell in self.cells[:end] for piece in cell]
        return [source for source in statements if not self.lesson.has_like(source)]

    def files_of(self, code: list[str]) -> list[str]:
        """Return the files that this code speaks of, and those that these speak of."""
        found: dict[str, str] = {}
        while more := {
            name: text
            for name, text in self.files.items()
            if name not in found and any(name in syntax.words_of(source) for source in code)
        }:
            found |= more
            code = [*more.values()]
        return [*found.values()]
