"""The one import upwards: what rooms make known to core, in modules of one name, is found here; and what a name that
nobody knows may have been meant for.
"""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from importlib import import_module
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).parents[1]
ALIKE = 0.75  # from 0 to 1: --quik is like --quick, and pytest's --quiet is not


def rooms(kind: str, topic: str = "*") -> Iterator[ModuleType]:
    """Import, one after another, the modules that are called ``kind``, such as "recipes": of a topic, or of all; and
    then those of `companion.pretrained`, which stands beside the topics, and of its rooms.
    """
    for path in [*sorted(HOME.glob(f"topics/{topic}/{kind}.py")), *sorted(HOME.glob(f"pretrained/**/{kind}.py"))]:
        yield import_module(".".join(["companion", *path.relative_to(HOME).with_suffix("").parts]))


def like(word: str, known: Iterable[str]) -> list[str]:
    """Return, best first, at most twelve of the ``known`` names that are like ``word``, as a whole or in a part."""

    def likeness(name: str) -> float:
        parts = {name, *name.split("-")}
        return max(SequenceMatcher(None, str(word).casefold(), part.casefold()).ratio() for part in parts)

    scores = {name: likeness(name) for name in known}
    return sorted((name for name in scores if scores[name] >= ALIKE), key=scores.__getitem__, reverse=True)[:12]


def nearest_first(word: str, known: Iterable[str]) -> list[str]:
    """Return the ``known`` names: those that are `like` ``word``, and then the others in their order."""
    known = list(known)
    return list(dict.fromkeys([*like(word, known), *known]))


def one_of_many(word: str, known: Iterable[str], command: str) -> str:
    """Return, to go on after "must be one of", which of many ``known`` names are `like` ``word``, and what
    lists all.
    """
    known = list(known)
    near = "".join(f"{name}, " for name in like(word, known))
    return f"{near}{'or another of ' * bool(near)}the {len(known)} that `python -m companion {command}` lists"
