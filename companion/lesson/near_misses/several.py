"""Edits of an answer that are one mistake together."""

import ast
import dataclasses
import itertools
from collections.abc import Iterator

from companion.lesson.near_misses.scene import Scene, written_as
from companion.lesson.near_misses.trees import Edit, Path, all_statements, edited, expressions, remembers

Group = tuple[tuple[Edit, ...], float]
LIKELY, MANY = 1.1, 200  # edits that are tried in one place of several


def groups(edits: list[Edit], scene: Scene) -> Iterator[Group]:
    """Yield edits to be made together, and what this costs: of one kind everywhere, or everywhere but once; two numbers
    exchanged; and likely ones in one place of several.
    """
    kinds: dict[str, dict[Path, Edit]] = {}
    for edit in edits:
        kinds.setdefault(edit.kind, {}).setdefault(edit.path, edit)
    for _, by_path in sorted(kinds.items()):
        every = tuple(by_path.values())
        if 2 <= len(every) <= 5:
            cost = max(edit.cost for edit in every) + 0.1
            yield every, cost
            if len(every) > 2:
                yield every[1:], cost + 0.1
    yield from _constants(scene.tree)
    yield from _in_one_place(edits, scene)


def _constants(tree: ast.FunctionDef) -> Iterator[Group]:
    """Yield each two numbers that are written out, exchanged."""
    places: dict[int | float, list[Path]] = {}
    for path, node, above in expressions(tree):
        if "constant" in written_as(node, above) and node.value not in (0, 1):
            places.setdefault(node.value, []).append(path)
    for one, other in itertools.combinations(places, 2):
        says = f"{one:g} and {other:g} are exchanged"
        new = {path: ast.Constant(value) for old, value in ((one, other), (other, one)) for path in places[old]}
        if type(one) is type(other):
            yield tuple(Edit(path, lambda _, node=node: node, says, "exchanged") for path, node in new.items()), 1.0


def _in_one_place(edits: list[Edit], scene: Scene) -> Iterator[Group]:
    """Yield likely edits of what a variable is, made in one alone of the places where it is used."""
    tree, words = scene.tree, scene.words
    places = [(path, node.id) for path, node, _ in expressions(tree) if isinstance(node, ast.Name)]
    for path, line in all_statements(tree):
        if not (isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)) or remembers(line):
            continue
        name, own = line.targets[0].id, {node.id for node in ast.walk(line.value) if isinstance(node, ast.Name)}
        uses = [use for use, used in places if used == name and use[: len(path)] != path]
        inside = [edit for edit in edits if edit.path[: len(path)] == path != edit.path and edit.cost <= LIKELY]
        if name in words.changing or own & words.changing:
            continue  # it may be something else by the time it is used
        if len(uses) < 2 or len(uses) * len(inside) > MANY:
            continue
        for use, edit in itertools.product(uses, inside):
            other = edited(line, (dataclasses.replace(edit, path=edit.path[len(path) :]),)).value
            says = f"in one of the places where it is used, {edit.says}"
            yield (Edit(use, lambda _, other=other: other, says, "in one place"),), 1.2
