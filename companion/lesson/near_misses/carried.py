"""Near misses of what a loop carries from round to round: it begins elsewhere, is begun again, is not kept; another
variable is changed in its place; two steps of a round are exchanged.
"""

import ast
import itertools
from collections.abc import Iterator

from companion.lesson.near_misses.trees import BEFORE, Edit, Path
from companion.lesson.near_misses.words import Words

Group = tuple[tuple[Edit, ...], float]
Start = tuple[Path, ast.expr]

# what has done nothing yet: for sums, for products, and for permutations
NEUTRAL = {
    "torch.zeros_like({0})": "at 0",
    "torch.ones_like({0})": "at 1",
    "torch.arange({0}.shape[-1]).expand_as({0})": "with every place at itself",
}

LATE = [
    (f"torch.cat([{first}, X[:-1]])", f"every entry is one step late; the first is {words}", 1.25)
    for first, words in (
        ("torch.zeros_like(X[:1])", "0"),
        ("torch.ones_like(X[:1])", "1"),
        ("torch.arange(X.shape[-1]).expand_as(X[:1])", "where nothing has happened: every place is at itself"),
        ("X[:1]", "there twice"),
    )
]


def carried_edits(tree: ast.FunctionDef, words: Words) -> Iterator[Edit]:
    """Edits of all loops."""
    for path, loop, starts in _loops(tree, (), {}):
        changed = _assigned(loop)
        read = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for name in sorted(changed & read & starts.keys()):
            yield from _begun(path, name, starts[name], words)
            yield from _not_kept(path, loop, name, words)
        yield from _another_changed(path, loop, changed, words)
        yield from _steps_exchanged(path, loop, words)


def first_twice(tree: ast.FunctionDef, words: Words) -> Iterator[Group]:
    """A list that begins empty, and a loop that begins with the first, which has been taken as the start already."""
    for path, loop, starts in _loops(tree, (), {}):
        over = loop.iter
        if not (isinstance(over, ast.Subscript) and ast.unparse(over.slice) == "1:"):
            continue
        for list_path, start in starts.values():
            if isinstance(start, ast.List) and start.elts:
                says = f"the first of {words.noun(over.value)} comes in twice: as the start, and in the loop"
                edits = (
                    Edit(list_path, lambda _: ast.List([], ast.Load()), says, "first twice"),
                    Edit((*path, ("iter", None)), lambda now: now.value, says, "first twice"),
                )
                yield edits, 1.0


def _loops(node: ast.AST, path: Path, known: dict[str, Start]) -> Iterator[tuple[Path, ast.For, dict[str, Start]]]:
    """Every loop, with what each variable is when it begins."""
    starts = dict(known)
    for index, line in enumerate(node.body):
        here = (*path, ("body", index))
        if isinstance(line, ast.For):
            yield here, line, dict(starts)
            yield from _loops(line, here, starts)
        elif isinstance(line, ast.Assign):
            target, value, at = line.targets[0], line.value, (*here, ("value", None))
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                for i, (name, start) in enumerate(zip(target.elts, value.elts, strict=True)):
                    starts |= {name.id: ((*at, ("elts", i)), start)} if isinstance(name, ast.Name) else {}
            elif isinstance(target, ast.Name) and not target.id.startswith(BEFORE):
                starts[target.id] = at, value


def _assigned(loop: ast.For) -> set[str]:
    names = {
        node.id
        for line in ast.walk(loop)
        if isinstance(line, ast.Assign)
        for target in line.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return {name for name in names if not name.startswith(BEFORE)}


def _led(path: Path, text: str, says: str, cost: float) -> Edit:
    """The loop with a statement at the head of its body."""

    def change(loop: ast.For) -> ast.For:
        return ast.For(loop.target, loop.iter, [*ast.parse(text).body, *loop.body], loop.orelse)

    return Edit(path, change, says, "loop led", cost)


def _begun(path: Path, name: str, start: Start, words: Words) -> Iterator[Edit]:
    said, text = words.noun(ast.Name(name)), ast.unparse(start[1])
    for neutral, words_ in NEUTRAL.items():
        begins = neutral.format(f"({text})")
        yield Edit(
            start[0],
            lambda _, begins=begins: ast.parse(begins, mode="eval").body,
            f"{said} begins {words_}: what it is to begin with is left out",
            "begins with nothing",
            1,
        )
        yield _led(
            path,
            f"{name} = {begins}",
            f"every round begins afresh, {words_}: what {said} has become in the round before is not used",
            1.05,
        )
    yield _led(
        path,
        f"{name} = {text}",
        f"every round begins where the first one began: what {said} has become in the round before is not used",
        1,
    )


def _not_kept(path: Path, loop: ast.For, name: str, words: Words) -> Iterator[Edit]:
    said = words.noun(ast.Name(name))
    names = [node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)]
    for item in names:
        says = f"what {said} has become is not kept: every round begins from the {item} of the round before"

        def change(loop: ast.For, item=item) -> ast.For:
            return ast.For(loop.target, loop.iter, [*loop.body, *ast.parse(f"{name} = {item}").body], loop.orelse)

        yield Edit(path, change, says, "not kept", 1)
    for line, item in itertools.product(loop.body, names):
        for node in ast.walk(line):
            index = getattr(node.slice, "lower", node.slice) if isinstance(node, ast.Subscript) else None
            if isinstance(index, ast.Name) and index.id == item and isinstance(node.value, ast.Name):
                of = node.value.id
                says = f"every round begins from what stands before it in {of}, not from what {said} has become"
                yield _led(path, f"{name} = {of}[{item} - 1]", says, 1)


def _another_changed(path: Path, loop: ast.For, changed: set[str], words: Words) -> Iterator[Edit]:
    """Of X = f(X) in a loop: Y = f(Y)."""
    for index, line in enumerate(loop.body):
        target = line.targets[0] if isinstance(line, ast.Assign) else None
        if not isinstance(target, ast.Name) or target.id not in changed:
            continue
        if target.id not in {node.id for node in ast.walk(line.value) if isinstance(node, ast.Name)}:
            continue
        for other in sorted(changed - {target.id}):
            says = (
                f"{words.noun(ast.Name(other))} is changed where {words.noun(ast.Name(target.id))} is to be, which "
                "stays as it is"
            )

            def change(line: ast.Assign, old=target.id, new=other) -> ast.stmt:
                return _Renamed(old, new).visit(ast.parse(ast.unparse(line)).body[0])

            yield Edit((*path, ("body", index)), change, says, "another changed", 1)


class _Renamed(ast.NodeTransformer):
    """A variable by another name."""

    def __init__(self, old: str, new: str):
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.new, node.ctx), node) if node.id == self.old else node


def _steps_exchanged(path: Path, loop: ast.For, words: Words) -> Iterator[Edit]:
    steps = [index for index, line in enumerate(loop.body) if not _remembers(line)]
    for first, second in itertools.pairwise(steps):
        names = [_changes(loop.body[at]) for at in (first, second)]
        if not all(names):
            continue

        def change(loop: ast.For, first=first, second=second) -> ast.For:
            body = list(loop.body)
            body[first], body[second] = body[second], body[first]
            return ast.For(loop.target, loop.iter, body, loop.orelse)

        said = [words.noun(ast.Name(name)) for name in names]
        first_said, second_said = said if said[0] != said[1] else names
        says = f"{second_said} is changed before {first_said} is; it comes after"
        yield Edit(path, change, says, "steps exchanged", 1.05)


def _remembers(line: ast.stmt) -> bool:
    return isinstance(line, ast.Assign) and ast.unparse(line).startswith(BEFORE)


def _changes(line: ast.stmt) -> str:
    """The variable that a statement changes: what it assigns to, adds to, appends to, or does so on a condition."""
    if isinstance(line, ast.If):
        return next(filter(None, (_changes(each) for each in line.body if not _remembers(each))), "")
    target = (
        line.targets[0]
        if isinstance(line, ast.Assign)
        else line.target
        if isinstance(line, ast.AugAssign)
        else line.value.func.value
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and isinstance(line.value.func, ast.Attribute)
        else None
    )
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""
