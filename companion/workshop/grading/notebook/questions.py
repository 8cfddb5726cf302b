"""What a lesson asks, as data."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Question:
    """One graded cell of a lesson. ``exercise`` is where its `Exercise` lies, as (module, name); None if a person marks
    the answer.
    """

    id: str
    answer_id: str
    points: float
    source: str
    function: str = ""
    exercise: tuple[str, str] | None = None


@dataclass(frozen=True)
class Handout:
    """A lesson as its own notebook has it: its questions in order, its other code cells, and the sources of all marked
    cells as learners get them. ``solutions`` are by question.
    """

    name: str
    questions: tuple[Question, ...]
    code: tuple[str, ...]
    sources: dict[str, str] = field(hash=False)
    solutions: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def automatic(self) -> list[Question]:
        """Return the questions that a check answers."""
        return [question for question in self.questions if question.exercise]

    @property
    def written(self) -> list[Question]:
        """Return the questions that a person marks."""
        return [question for question in self.questions if not question.exercise]

    @property
    def points(self) -> float:
        """Return all that can be earned."""
        return sum(question.points for question in self.questions)
