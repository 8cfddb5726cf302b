"""How circuits are named: heads "16.0", MLPs "m0", and wires "16.0 -> 18.6 by keys"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, get_args

from companion.core.circuits import Part, Side

PART = re.compile(r"(\d+)\.(\d+)|m(\d+)")
WIRE = re.compile(r"(\S+?)\s*->\s*(\S+)\s+by\s+(\S+)")
ENDS = f"which ends at a head, by one of its {', '.join(get_args(Side))}, and comes from an earlier layer's head or MLP"


class Wire(NamedTuple):
    """What ``writer`` gives, as the ``reader``, a head, reads it by one ``side``."""

    writer: Part
    reader: Part
    side: Side

    def __str__(self) -> str:
        return f"{part_name(self.writer)} -> {part_name(self.reader)} by {self.side}"


def part_name(part: Part) -> str:
    """Return a part's name: "16.0" for a head, "m0" for an MLP."""
    return f"m{part.layer}" if part.head is None else f"{part.layer}.{part.head}"


@dataclass(frozen=True)
class Circuit:
    """Parts, in the order of layers, and wires between them."""

    parts: tuple[Part, ...]
    wires: tuple[Wire, ...] = ()

    @classmethod
    def read(cls, names: Iterable[object]) -> "Circuit":
        """Read ``["m0", "16.0 -> 18.6 by keys"]``; the ends of a wire belong to the circuit. Raises ValueError for a
        name that is none, for one part or wire named twice, and for a wire that leads nowhere.
        """
        said, parts = {}, []
        for name in [names] if isinstance(names, str) else names:
            if not isinstance(name, str):
                raise ValueError(f"circuit: {name!r} is not a text; must be a head '16.0', an MLP 'm0' or a wire")
            found = WIRE.fullmatch(name.strip())
            item = _wire(name, *found.groups()) if found else _part(name)
            if item in said:
                raise ValueError(
                    f"circuit: {said[item]!r} and {name!r} name the same {'wire' if found else 'part'}; must be "
                    "named once"
                )
            said[item] = name
            parts += item[:2] if isinstance(item, Wire) else [item]
        ordered = sorted(set(parts), key=lambda part: (part.layer, part.head is None, part.head or 0))
        return cls(tuple(ordered), tuple(item for item in said if isinstance(item, Wire)))

    @property
    def names(self) -> list[str]:
        """Return what `read` reads."""
        return [*map(part_name, self.parts), *map(str, self.wires)]


def _part(name: str) -> Part:
    found = PART.fullmatch(name.strip())
    if not found:
        raise ValueError(
            f"circuit: {name!r} must be a head '16.0', an MLP 'm0' or a wire '16.0 -> 18.6 by keys', {ENDS}"
        )
    layer, head, mlp = found.groups()
    return Part(int(mlp)) if mlp else Part(int(layer), int(head))


def _wire(name: str, writer: str, reader: str, by: str) -> Wire:
    side = next((side for side in get_args(Side) if side == by), None)
    if side is None:
        raise ValueError(f"circuit: {name!r}: {by!r} is not one of a head's inputs; must be a wire {ENDS}")
    wire = Wire(_part(writer), _part(reader), side)
    if wire.reader.head is None or wire.writer.layer >= wire.reader.layer:
        raise ValueError(f"circuit: {name!r}: must be a wire {ENDS}")
    return wire
