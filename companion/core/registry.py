"""The one import upwards: what rooms make known to core, in modules of one name, is found here."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).parents[1]


def rooms(kind: str, topic: str = "*") -> Iterator[ModuleType]:
    """Import, one after another, the modules that are called ``kind``, such as "recipes": of a topic, or of all; and
    then that of `companion.pretrained`, which stands beside the topics, if it has one.
    """
    for path in [*sorted(HOME.glob(f"topics/{topic}/{kind}.py")), *HOME.glob(f"pretrained/{kind}.py")]:
        yield import_module(".".join(["companion", *path.relative_to(HOME).with_suffix("").parts]))
