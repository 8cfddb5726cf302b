"""Syntax trees that are never changed: an edit makes a new one, which shares all else with the old."""

import ast
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from companion.lesson.attempts import source_of
from companion.lesson.near_misses.syntax import from_module

Path = tuple[tuple[str, int | None], ...]
SLOT: Path = (("body", 0),)  # an empty statement at the head of every tree, where an edit may put one of its own
ROUNDS = range(1000)  # after so many a `while` is left
FUNCTION_LETTERS = ("f", "g")  # in a row: a function of one tensor
BEFORE = "before_"  # of a variable that is assigned again, its former value has a name, too


@dataclass(frozen=True)
class Edit:
    """One step away from an answer: at ``path`` stands ``change(node)``.

    ``mistake``: what it gets wrong, in words.
    ``group``: the same for edits that a learner makes in all places at once.
    ``cost``: the lower, the likelier.
    ``row``: the line of the table that it comes from, if any.
    ``sentence``: the mistake in the words of a learner who has names for parts of the answer; nothing where words fail.
    ``number``: one that this edit writes out, and the one that it replaces.
    ``of_values``: whether the mistake, but for what follows a colon, is one in the values, whatever the program.
    """

    path: Path
    change: Callable[[Any], ast.AST]
    mistake: str = ""
    group: str = ""
    cost: float = 0
    row: int = 0
    sentence: Callable[[Any], str] = lambda words: ""
    number: tuple[float, float] | None = None
    of_values: bool = True


def definition(answer: Callable[..., Any]) -> ast.FunctionDef | None:
    """Return an answer's definition, or None if it is none, or has no source."""
    tree = getattr(source_of(answer), "tree", None)
    if not isinstance(tree, ast.FunctionDef) or answer.__closure__ or answer.__name__ != tree.name:
        return None
    tree = _Ending().visit(tree)
    known = {argument.arg for argument in tree.args.args}
    tree.body = [ast.Pass(), *_remembering(tree.body, known)]
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    return ast.fix_missing_locations(tree)


def _remembering(body: list[ast.stmt], known: set[str]) -> list[ast.stmt]:
    """Return the statements, with the former value kept of whatever is assigned again."""
    longer: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):  # some are defined only once the loop has run; a crash is no near miss
            statement.body = _remembering(statement.body, known)
        elif isinstance(statement, ast.Assign):
            names = {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            longer += ast.parse("\n".join(f"{BEFORE}{name} = {name}" for name in sorted(names & known))).body
            known |= names
        longer.append(statement)
    return longer


def remembers(line: ast.AST) -> bool:
    """Return whether a statement is none of the answer's, but keeps a former value."""
    target = line.targets[0] if isinstance(line, ast.Assign) else None
    return isinstance(target, ast.Name) and target.id.startswith(BEFORE)


class _Ending(ast.NodeTransformer):
    """``while C: ...`` becomes ``for turn in ROUNDS: if not C: break; ...``, so that every near miss comes to an end."""

    def visit_While(self, node: ast.While) -> ast.For:
        turns = ast.parse("for turn_ in ROUNDS:\n    if not 0: break").body[0]
        turns.body[0].test.operand = node.test
        turns.body += self.generic_visit(node).body
        return turns


def compiled(tree: ast.FunctionDef, home: dict[str, Any]) -> Callable[..., Any]:
    """Make the function that a tree defines, among the names of ``home``."""
    module = ast.Module(body=[tree], type_ignores=[])
    code = next(
        const for const in compile(module, "<near miss>", "exec").co_consts if isinstance(const, types.CodeType)
    )
    return types.FunctionType(code, home)


def edited(tree: Any, edits: tuple[Edit, ...]) -> Any:
    """Make the tree after all edits; the deepest first, for one above may move what it holds."""
    for edit in sorted(edits, key=lambda edit: -len(edit.path)):
        tree = _put(tree, edit.path, edit.change)
    return tree


def _copied(node: Any) -> Any:
    """Copy a node alone. `copy.copy` does the same in five times the time, and near misses are made by the thousand."""
    new = type(node).__new__(type(node))
    new.__dict__.update(node.__dict__)
    return new


def _put(node: Any, path: Path, change: Callable[[Any], ast.AST]) -> Any:
    if not path:
        return _located(change(node))
    (field, index), *rest = path
    new = _copied(node)
    if index is None:
        setattr(new, field, _put(getattr(node, field), tuple(rest), change))
    else:
        items = list(getattr(node, field))
        items[index] = _put(items[index], tuple(rest), change)
        setattr(new, field, items)
    return new


def _located(node: Any) -> Any:
    """Put a new node, and what is new below it, at a place in the source; what is old has one."""
    if isinstance(node, ast.AST) and not hasattr(node, "lineno"):
        node.lineno = node.end_lineno = 1
        node.col_offset = node.end_col_offset = 0
        for _, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                _located(child)
    return node


def expressions(
    node: ast.AST, path: Path = (), above: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[Path, ast.expr, tuple[ast.AST, ...]]]:
    """Yield every expression that is read, with its path and the nodes above it."""
    if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
        yield path, node, above
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "ctx", "op", "ops", "targets", "target"):
            continue
        if isinstance(node, ast.Call) and field == "func" and isinstance(value, ast.Name):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield from expressions(child, (*path, (field, index)), (*above, node))


def answer_path(tree: ast.FunctionDef) -> Path:
    """Return the path of what is returned."""
    return (("body", len(tree.body) - 1), ("value", None))


def all_statements(node: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.stmt]]:
    """Yield every statement of a body and of the loops in it, with its path."""
    for index, line in enumerate(node.body):
        here = (*path, ("body", index))
        yield here, line
        if isinstance(line, ast.For | ast.FunctionDef):
            yield from all_statements(line, here)


@functools.cache
def template(text: str) -> Any:
    """Parse an expression, or statements if it is none; several are one, under a condition that holds."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        lines = ast.parse(text).body
    return lines[0] if len(lines) == 1 else ast.If(ast.Constant(True), lines, [])


def made(text: str, **nodes: Any) -> Any:
    """Make an expression or a statement from its text, in which the names of ``nodes`` stand for these, a list of
    statements among them; what is called by such a name makes a node, or is a call to be made of another tensor.
    """
    return _filled(template(text), nodes)


def with_inner(now: ast.Call, new: ast.expr) -> ast.Call:
    """Make the same call of another tensor."""
    if from_module(now) or isinstance(now.func, ast.Name):
        return ast.Call(now.func, [new, *now.args[1:]], now.keywords)
    return ast.Call(ast.Attribute(new, now.func.attr, ast.Load()), now.args, now.keywords)


def _filled(node: Any, nodes: dict[str, Any]) -> Any:
    """Make a node in which the names of ``nodes`` are replaced."""
    if isinstance(node, list):
        return [new for child in node for new in _filled_all(child, nodes)]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in nodes:
        function, args = nodes[node.func.id], [_filled(arg, nodes) for arg in node.args]
        return _located(function(*args) if callable(function) else with_inner(function, *args))
    if isinstance(node, ast.Name):
        return _named(node, nodes)
    new = _copied(node)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST | list):
            setattr(new, field, _filled(value, nodes))
    return new


def _named(node: ast.Name, nodes: dict[str, Any]) -> Any:
    """Return what a name stands for, which is assigned to where the name is."""
    new = nodes.get(node.id, node)
    if isinstance(new, ast.Name | ast.Subscript | ast.Tuple) and type(new.ctx) is not type(node.ctx):
        new = _copied(new)
        new.ctx = node.ctx
    return _located(new)


def _filled_all(child: Any, nodes: dict[str, Any]) -> list[Any]:
    """Return the statements that BODY stands for, or the one node that a child of a list becomes."""
    is_body = isinstance(child, ast.Expr) and isinstance(child.value, ast.Name) and child.value.id == "BODY"
    return (nodes.get("BODY") if is_body else None) or [_filled(child, nodes)]
