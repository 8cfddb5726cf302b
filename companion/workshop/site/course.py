"""What a site is made from."""

from dataclasses import dataclass, field
from pathlib import Path

HUB = "https://hub.invalid"  # stands in an address for a class's own JupyterHub, until the reader says where that is


@dataclass(frozen=True)
class Chapter:
    """One lesson: its name, its notebook's facts, where it and those beside it (by what they are called) were executed,
    the picture that asks at its head and the one that answers, and its entry in the run's report.

    ``opens`` are, by notebook, the names and addresses of places in which a reader can run it; ``pulls`` is where a
    hub at `HUB` fetches it, empty if it cannot.
    """

    name: str
    facts: dict
    executed: Path
    picture: Path
    entry: dict
    opens: dict[str, dict[str, str]] = field(default_factory=dict)
    pulls: str = ""
    beside: dict[str, Path] = field(default_factory=dict)
    answer: Path | None = None

    @property
    def title(self) -> str:
        """Number and title."""
        return f"{self.name[:2]} · {self.facts['title']}"

    @property
    def notebooks(self) -> list[Path]:
        """Return where its notebooks were executed."""
        return [self.executed, *self.beside.values()]

    def needed(self) -> list[str]:
        """Return the numbers of the lessons that this one builds on, as its facts name them."""
        return [need[7:9] for need in self.facts["needs"] if need.startswith("lesson ")]


@dataclass(frozen=True)
class Course:
    """Everything: the checkout, its chapters in order, where it is published (empty: nowhere), which modules the
    reference describes, and the notation, in Markdown.
    """

    root: Path
    chapters: list[Chapter]
    repository: str = ""
    modules: tuple[str, ...] = ()
    notation: str = ""
