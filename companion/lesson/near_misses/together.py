"""Near misses that are one mistake made in several places at once."""

import ast
import dataclasses
import itertools
from collections.abc import Iterator

from companion.lesson.near_misses.carried import Group, first_twice
from companion.lesson.near_misses.trees import BEFORE, Edit, Path, edited, expressions, made
from companion.lesson.near_misses.words import Words, size_of

LIKELY, MANY = 1.1, 200  # edits that are tried in one place of several
OTHER = "another_"  # a variable made in another form


def groups(tree: ast.FunctionDef, words: Words) -> Iterator[Group]:
    """Edits to be made together, and what this costs."""
    yield from _constants(tree)
    yield from _results(tree, words)
    yield from first_twice(tree, words)


def _group(paths: list[tuple[Path, str]], says: str, cost: float) -> Group:
    """At each path stands an expression's text."""
    return tuple(Edit(path, lambda _, text=text: made(text), says, "together", cost) for path, text in paths), cost


def _constants(tree: ast.FunctionDef) -> Iterator[Group]:
    places: dict[int | float, list[Path]] = {}
    for path, node, above in expressions(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1, -1):
            held = [type(each) for each in above[-2:]]
            if ast.keyword not in held and ast.Call not in held[-1:] and ast.Subscript not in held:
                places.setdefault(node.value, []).append(path)
    for one, other in itertools.combinations(places, 2):
        if type(one) is type(other):
            swapped = [(path, repr(other)) for path in places[one]] + [(path, repr(one)) for path in places[other]]
            yield _group(swapped, f"{one:g} and {other:g} are exchanged", 1)
    shares = {value: paths for value, paths in places.items() if type(value) is float and 0.01 < value < 1}
    for value, paths in shares.items():
        turned = [(path, f"(1 - {value})") for path in paths]
        yield _group(turned, f"1 - {value:g} stands where {value:g} belongs, and the other way round", 1)
    if len(shares) > 1:
        turned = [(path, f"(1 - {value})") for value, paths in shares.items() for path in paths]
        names = " and ".join(f"{value:g}" for value in shares)
        yield _group(turned, f"1 minus the number stands where {names} belong, and the other way round", 1)


def in_one_place(tree: ast.FunctionDef, words: Words, edits: list[Edit]) -> Iterator[Edit]:
    """Likely edits of what a variable is, made in one of the places alone where it is used."""
    for index, line in enumerate(tree.body):
        if not (isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)):
            continue
        name, value = line.targets[0].id, line.value
        if words.changing & {node.id for node in ast.walk(line) if isinstance(node, ast.Name)}:
            continue  # it may be something else by the time it is used
        uses = [path for path, node, _ in expressions(tree) if isinstance(node, ast.Name) and node.id == name]
        root = ("body", index), ("value", None)
        inside = [edit for edit in edits if edit.path[:2] == root and edit.cost <= LIKELY]
        if len(uses) > 1 and len(uses) * len(inside) <= MANY:
            for path, edit in itertools.product(uses, inside):
                if path[0] != root[0]:
                    other = edited(
                        ast.Expression(value), (dataclasses.replace(edit, path=(("body", None), *edit.path[2:])),)
                    )
                    says = f"in one place of several, {edit.says}"
                    yield Edit(path, lambda _, other=other: other.body, says, "in one place", 1.2)


def in_one_place_of_a_loop(tree: ast.FunctionDef, edits: list[Edit]) -> Iterator[Group]:
    """The same in a loop, where what a variable is made of may change before it is used: it is made in both forms at
    once, and the other form goes to one of the places.
    """
    for path, node, above in expressions(tree):
        if not (isinstance(node, ast.Name) and any(isinstance(each, ast.For) for each in above)):
            continue
        for line_path in _made_in_a_loop(tree, node.id):
            inside = [edit for edit in edits if edit.path[: len(line_path)] == line_path and edit.cost <= LIKELY]
            if path[: len(line_path)] == line_path or len(inside) > MANY // 4:
                continue
            for edit in inside:

                def twice(now: ast.Assign, edit=edit, at=line_path) -> ast.If:
                    other = edited(now, (dataclasses.replace(edit, path=edit.path[len(at) :]),))
                    aside = ast.Assign([ast.Name(OTHER, ast.Store())], other.value)
                    return ast.If(ast.Constant(True), [aside, now], [])

                says = f"in one place of several, {edit.says}"
                use = Edit(path, lambda _: ast.Name(OTHER, ast.Load()), says, "in one place")
                yield (Edit(line_path, twice, says, "in one place"), use), 1.2


def _made_in_a_loop(tree: ast.FunctionDef, name: str) -> list[Path]:
    """Where a variable is made, if it is once, in a loop, and used in more than one place."""
    found = []
    for index, loop in enumerate(tree.body):
        if isinstance(loop, ast.For):
            for at, line in enumerate(loop.body):
                makes = isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == name
                if makes and name not in {node.id for node in ast.walk(line.value) if isinstance(node, ast.Name)}:
                    found.append((("body", index), ("body", at)))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return found if len(found) == 1 and len(used) > 2 and not name.startswith(BEFORE) else []


def _results(tree: ast.FunctionDef, words: Words) -> Iterator[Group]:
    """Several results, each a step too early or too late."""
    last = tree.body[-1]
    for path, node, _ in expressions(last, (("body", len(tree.body) - 1),)):
        if not isinstance(node, ast.List | ast.Tuple):
            continue
        for later in (True, False):
            changed = []
            for at, each in enumerate(node.elts):
                other = _neighbour(each, words, later=later)
                if other is not None:
                    changed.append(((*path, ("elts", at)), each, other))
            if len(changed) > 1:
                old = " and ".join(words.noun(each) for _, each, _ in changed)
                new = " and ".join(words.noun(ast.Name(other)) for _, _, other in changed)
                yield _group([(at, other) for at, _, other in changed], f"{new} are returned, where {old} are due", 1)


def _neighbour(node: ast.expr, words: Words, *, later: bool) -> str | None:
    """The one variable that follows from another, or the one that it had been before."""
    if not isinstance(node, ast.Name):
        return None
    if not later:
        return BEFORE + node.id if BEFORE + node.id in words.defined else None
    follow = [
        name
        for name, value in words.defined.items()
        if not name.startswith(BEFORE)
        and isinstance(value, ast.BinOp)
        and isinstance(value.left, ast.Name)
        and value.left.id == node.id
    ]
    return follow[0] if len(follow) == 1 else None


def local_sizes(draws: list[dict], values: list[dict[str, object]], known: set[tuple]) -> list[tuple[str, str]]:
    """The numbers of rows of what is made on the way, where they are none of an argument's sizes."""
    found: dict[tuple, tuple[str, str]] = {}
    for name in values[0]:
        shapes = [getattr(each.get(name), "shape", ()) for each in values]
        if name in draws[0] or name.startswith(BEFORE) or not all(len(shape) for shape in shapes):
            continue
        sizes = tuple(shape[0] for shape in shapes)
        if sizes not in known and len(set(sizes)) > 1:
            found.setdefault(sizes, (f"len({name})", size_of(made(f"len({name})")) or ""))
    return list(found.values())
