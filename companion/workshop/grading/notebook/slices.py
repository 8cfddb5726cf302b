"""What an answer rests on: the statements of a notebook that it needs, found without running any."""

import ast
import bisect
import functools
import sys
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

from companion.workshop.grading.notebook import syntax
from companion.workshop.grading.notebook.syntax import INNER, KEPT, PARTS, base_name, bound, loads, outer, used

HARMLESS = {"print", "display", "repr", "len", "help", "range", "str", "int", "float"}  # calls of these change nothing
CHECKS = {"check", "grade"}
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
STATEMENTS = ast.stmt | ast.excepthandler | ast.match_case  # what may stand inside a statement
UNCERTAIN = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match | ast.AugAssign  # may bind, or may not


@dataclass(frozen=True)
class Piece:
    """One statement from the top level of a cell. It ``binds`` names for certain, and ``changes`` these and perhaps
    others; it ``reads`` names where it stands, and ``calls_for`` others when its functions are called. A star import
    may define ``anything``. It ``acts``, unless it surely does nothing but give names their values; what it says may
    hold for the ``future``, which is all code that comes after it.
    """

    source: str = ""
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    calls_for: frozenset[str] = frozenset()
    anything: bool = False
    acts: bool = False
    future: bool = False


@functools.lru_cache(KEPT)
def pieces(source: str, modules: frozenset[str]) -> tuple[Piece, ...]:
    """Return the statements at the top level of a cell, each with its own text; a line that imports several names is
    several, since an answer that needs one of them does not reach for the others.
    """
    lines, found = syntax.lines_of(source), []
    for node in syntax.top_level(source):
        if isinstance(node, ast.ImportFrom) and len(node.names) > 1:
            for alias in node.names:
                text = ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
                name = frozenset({alias.asname or alias.name})
                found.append(Piece(text, name, name, acts=not name <= modules, future=node.module == "__future__"))
            continue
        text, top = _text(lines, node), outer(node)
        stars = [part for part in top if isinstance(part, ast.ImportFrom) and part.names[0].name == "*"]
        names = frozenset(bound(top)).union(*(_public(part.module or "") for part in stars))
        parts = [part for part in top if isinstance(part, PARTS) and isinstance(part.ctx, ast.Store)]
        binds = names.difference(*map(base_name, parts)) if not isinstance(node, UNCERTAIN) else frozenset()
        changes = names | _changes(top, modules)
        later = used(text, later=True) if any(isinstance(part, INNER) for part in ast.walk(node)) else ()
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        acts = not future and _acts(node, modules)
        found.append(Piece(text, binds, changes, frozenset(_reads(node)), frozenset(later), bool(stars), acts, future))
    return tuple(found)


def _public(module: str) -> set[str]:
    """The names that a star import gives, of a module that is loaded here; none of another."""
    found = vars(sys.modules[module]) if module in sys.modules else {}
    return set(found.get("__all__", [name for name in found if not name.startswith("_")]))


def _changes(top: list[ast.AST], modules: Set[str]) -> set[str]:
    """The names whose values a bare call may change: ``x`` in ``x.append(2)`` and in ``fill(x)``; a module where a call
    sets something in it, which needs nothing of the notebook, and is no check.
    """
    names = set()
    for node in top:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr not in CHECKS:
            sets = node is top[0] and loads([node]) <= modules
            names |= base_name(call.func) - (set() if sets else modules)
            names |= loads(call.args) - modules if call.func.attr.endswith("_") else set()  # as in torch.nn.init
        elif isinstance(call.func, ast.Name) and call.func.id not in HARMLESS:
            names |= {word.id for word in call.args if isinstance(word, ast.Name)}
    return names


def _reads(node: ast.AST) -> set[str]:
    """The names that a statement reads before it writes them, as it runs from top to bottom: those in the bodies of
    functions are read later.
    """
    parts = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        notes = [part.annotation for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        parts = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, *notes, node.returns]
    heads = [part for part in parts if part and not isinstance(part, STATEMENTS)]
    reads, written = loads(heads), bound([part for head in heads for part in ast.walk(head)])
    if isinstance(node, ast.AugAssign):
        reads |= base_name(node.target)
    for part in parts:
        if isinstance(part, STATEMENTS):
            reads |= _reads(part) - written
            written |= bound(outer(part))
    return reads


# -- what leaves no trace but names

CALM = ast.Assign | ast.AnnAssign | ast.If | ast.Pass  # statements that are no more than their parts
SHIFTS = ast.LShift | ast.RShift | ast.BitOr  # of these, classes of one's own make calls
WAITING = ast.comprehension | ast.Await | ast.Yield | ast.YieldFrom  # what takes from an iterator, or from a loop


def _acts(statement: ast.stmt, modules: Set[str]) -> bool:
    """Whether a statement may do anything but give names their values: change an object, a class or a module."""
    todo: list[ast.AST] = [statement]
    while todo:  # of a function its decorators and defaults, of a class all of it
        node = todo.pop()
        if _may_act(node, modules):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", ())]
        else:
            todo += ast.iter_child_nodes(node)
    return False


def _may_act(node: ast.AST, modules: Set[str]) -> bool:
    match node:
        case ast.Attribute() | ast.Subscript():
            found = not isinstance(node.ctx, ast.Load)
        case ast.Call():
            found = not _is_calm(node, modules)
        case ast.BinOp():
            found = isinstance(node.op, SHIFTS)
        case ast.Expr(value):
            found = not isinstance(value, ast.Name | ast.Constant | ast.Call)
        case ast.Import(names) | ast.ImportFrom(names=names):
            found = not {(alias.asname or alias.name).split(".")[0] for alias in names} <= modules
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            found = not loads(node.decorator_list) <= modules
        case ast.ClassDef():
            found = bool(node.keywords) or not loads([*node.decorator_list, *node.bases]) <= modules
        case _:
            found = isinstance(node, WAITING) or (isinstance(node, ast.stmt) and not isinstance(node, CALM))
    return found


def _is_calm(call: ast.Call, modules: Set[str]) -> bool:
    """Whether a call changes nothing: of a check, or of a module's function with values that are nobody's."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if isinstance(call.func, ast.Name):
        return name in HARMLESS
    values = [call.func, *call.args, *(word.value for word in call.keywords)]
    return name in CHECKS or (loads(values) <= modules and not name.endswith("_"))


def defines(source: str) -> bool:
    """Return whether a statement is a definition or an import, whose names stand for no values that change."""
    return all(isinstance(node, DEFINITIONS) for node in syntax.top_level(source))


def _text(lines: list[bytes], node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first, column = (decorators[0].lineno, 0) if decorators else (node.lineno, node.col_offset)
    chosen = lines[first - 1 : node.end_lineno]
    chosen[-1] = chosen[-1][: node.end_col_offset]
    chosen[0] = chosen[0][column:]
    return b"".join(chosen).decode()


def needed(function: str, at: int, every: list[Piece], end: int) -> list[int]:
    """Return the numbers of the statements, of ``every`` in order, on which a ``function`` rests that is defined above
    ``at`` and called when ``end`` of them have run.

    A name means what was bound to it last, above where it is read; what a function reads, above ``end``. Where nothing
    above gives it a value, what stands below does, as in a notebook whose cells were run in another order. Whatever
    else stands there, drawing and training, is not run.
    """
    changing = defaultdict(list)
    for number, piece in enumerate(every):
        for name in piece.changes:
            changing[name].append(number)
    taken = {number for number, piece in enumerate(every[:at]) if piece.future}
    seen: set[tuple[str, int]] = set()
    todo = [(function, at)]
    stars = [number for number, piece in enumerate(every) if piece.anything]
    taken.update(stars)
    todo += [(name, number) for number in stars for name in every[number].reads]
    while todo:
        name, at = todo.pop()
        numbers = changing.get(name, [])
        above = bisect.bisect_left(numbers, at)
        for number in numbers[above - 1 :: -1] if above else numbers:
            if (name, number) in seen:
                break
            seen.add((name, number))
            piece = every[number]
            if number not in taken:
                taken.add(number)
                todo += [(other, number) for other in piece.reads]
                todo += [(other, max(end, number)) for other in piece.calls_for]
            if name in piece.binds:
                break
    return sorted(taken)
