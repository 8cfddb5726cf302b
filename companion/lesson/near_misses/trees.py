"""Syntax trees that are never changed: an edit makes a new one, which shares all else with the old."""

import ast
import copy
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[tuple[str, int | None], ...]
SLOT: Path = (("body", 0),)  # an empty statement at the head of every tree, where an edit may put one of its own
ROUNDS = 1000  # after so many a near miss is taken for one whose `while` never ends
BEFORE = "before_"  # of a variable that is assigned again, its former value has a name, too


@dataclass(frozen=True)
class Edit:
    """One step away: at ``path`` stands ``change(node)``. ``says`` is the mistake in words; ``kind`` is the same for
    edits that a learner makes in all places at once. The lower ``cost``, the likelier.
    """

    path: Path
    change: Callable[[Any], ast.AST]
    says: str
    kind: str
    cost: float = 1


def definition(answer: Callable[..., Any]) -> ast.FunctionDef | None:
    """An answer's definition, or None if it is none, or has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(answer))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or answer.__closure__ or answer.__name__ != tree.name:
        return None
    body = tree.body[1:] if isinstance(tree.body[0], ast.Expr) else tree.body  # without a docstring
    known = {argument.arg for argument in tree.args.args}
    tree.body = [ast.Pass(), *_remembering(body, known)]
    tree.decorator_list, tree.returns = [], None
    for argument in tree.args.args:
        argument.annotation = None
    return ast.fix_missing_locations(tree)


def _remembering(body: list[ast.stmt], known: set[str]) -> list[ast.stmt]:
    """The statements, with the former value kept of whatever is assigned again."""
    longer: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.For):
            known |= {BEFORE + name for name in known}  # defined only once the loop has run; a crash is no near miss
            statement.body = _remembering(statement.body, known)
        elif isinstance(statement, ast.Assign):
            names = {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            longer += ast.parse("\n".join(f"{BEFORE}{name} = {name}" for name in sorted(names & known))).body
            known |= names
        longer.append(statement)
    return longer


def compiled(tree: ast.FunctionDef, home: dict[str, Any]) -> Callable[..., Any]:
    """The function that a tree defines, among the names of ``home``. A ``while`` that goes on for 1,000 rounds raises."""
    if any(isinstance(node, ast.While) for node in ast.walk(tree)):
        tree = ast.fix_missing_locations(_Ending().visit(copy.deepcopy(tree)))
    module = ast.Module(body=[tree], type_ignores=[])
    code = next(
        const for const in compile(module, "<near miss>", "exec").co_consts if isinstance(const, types.CodeType)
    )
    return types.FunctionType(code, home)


class _Ending(ast.NodeTransformer):
    """``while C: ...`` becomes ``for turn in range(ROUNDS): if not C: break; ...``, and raises if it was not left."""

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        turns = ast.parse(f"for _turn in range({ROUNDS}):\n    if not 0: break\nelse: raise RecursionError").body[0]
        turns.body[0].test.operand = node.test
        turns.body += node.body
        return turns


def edited(tree: Any, edits: tuple[Edit, ...]) -> Any:
    """The tree after all edits; the deepest first, for one above may move what it holds."""
    for edit in sorted(edits, key=lambda edit: -len(edit.path)):
        tree = _put(tree, edit.path, edit.change)
    return tree


def _put(node: Any, path: Path, change: Callable[[Any], ast.AST]) -> Any:
    if not path:
        return _located(change(node))
    (field, index), *rest = path
    new = copy.copy(node)
    if index is None:
        setattr(new, field, _put(getattr(node, field), tuple(rest), change))
    else:
        items = list(getattr(node, field))
        items[index] = _put(items[index], tuple(rest), change)
        setattr(new, field, items)
    return new


def _located(node: Any) -> Any:
    """A new node, and what is new below it, with a place in the source; what is old has one."""
    if isinstance(node, ast.AST) and not hasattr(node, "lineno"):
        node.lineno = node.end_lineno = 1
        node.col_offset = node.end_col_offset = 0
        for _, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                _located(child)
    return node


def expressions(tree: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.expr, tuple[ast.AST, ...]]]:
    """Every expression that is read, with its path, and the nodes above it."""
    yield from _below(tree, path, ())


def _below(node: ast.AST, path: Path, above: tuple[ast.AST, ...]) -> Iterator[tuple[Path, ast.expr, tuple]]:
    if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
        yield path, node, above
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "ctx", "op", "ops", "targets", "target"):
            continue
        if isinstance(node, ast.Call) and field == "func" and isinstance(value, ast.Name):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield from _below(child, (*path, (field, index)), (*above, node))


@functools.cache
def _template(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def made(text: str, **nodes: Any) -> Any:
    """An expression from its text, in which capital names stand for ``nodes``."""
    return _filled(_template(text), nodes)


def _filled(node: Any, nodes: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return _located(nodes[node.id]) if node.id in nodes else node
    if isinstance(node, list):
        return [_filled(item, nodes) for item in node]
    if not isinstance(node, ast.AST):
        return node
    new = copy.copy(node)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST | list):
            setattr(new, field, _filled(value, nodes))
    return new


def statement(text: str) -> ast.stmt:
    """A statement from its text."""
    return ast.parse(text).body[0]
