"""Source text of notebooks, understood without running it: which names a piece of code defines, changes and uses."""

import ast
import bisect
import functools
import re
import symtable
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
LIKE_NONE = {"time", "capture", "prun"}  # magics that run the rest of the cell as it stands
INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
IMPORTS = ast.Import | ast.ImportFrom
PARTS = ast.Attribute | ast.Subscript
KEPT = 4096  # sources of which it is remembered what was found: a notebook has far fewer
HARMLESS = {"print", "display", "repr", "len", "help"}  # calls of these change nothing
CHECKS = {"check", "grade"}
AT_ONCE = {"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"}  # scopes, as symtable calls them
STATEMENTS = ast.stmt | ast.excepthandler | ast.match_case  # what may stand inside a statement
UNCERTAIN = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match | ast.AugAssign  # may bind, or may not


@dataclass(frozen=True)
class Piece:
    """One statement from the top level of a cell. It ``binds`` names for certain, and ``changes`` these and perhaps
    others; it ``reads`` names where it stands, and ``calls_for`` others when its functions are called. A star import
    may define ``anything``.
    """

    source: str = ""
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    calls_for: frozenset[str] = frozenset()
    anything: bool = False


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree; None if there is none."""
    try:
        return ast.parse(source)
    except UNPARSABLE:
        return None


# -- what only a notebook understands


@functools.lru_cache(KEPT)
def plain(source: str) -> str:
    """Python alone: line magics, ``!`` and ``?`` do nothing, ``%%time`` and its like let the cell be what it is, and a
    cell of another language is empty. Line numbers stay.
    """
    if parse(source) is not None:
        return source
    blank = len(source) - len(source.lstrip("\n"))
    head, _, body = source[blank:].partition("\n")
    if head.startswith("%%"):
        word = head[2:].split(maxsplit=1)[:1]
        return "\n" * (blank + 1) + plain(body) if word and word[0] in LIKE_NONE else ""
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415 (slow, and seldom needed)

    try:
        text = TransformerManager().transform_cell(source[blank:])
        return "\n" * blank + _without_magics(text if source.endswith("\n") else text.removesuffix("\n"))
    except (*UNPARSABLE, RuntimeError):  # after some hundreds of magics IPython gives up
        return source


def _without_magics(source: str) -> str:
    tree = parse(source)
    if tree is None:
        return source
    lines = _lines(source)
    magics = []  # what IPython makes of a magic: get_ipython().run_line_magic(...)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython"))))):
                magics.append(node.value)
    for node in sorted(magics, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        words = [word.value for word in node.args if isinstance(word, ast.Constant)]
        run = words[1] if words[:1] == ["time"] and len(words) > 1 and parse(words[1]) else "pass"
        first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
        new = first[: node.col_offset] + run.encode() + last[node.end_col_offset :]
        lines[node.lineno - 1 : node.end_lineno] = [new]
    return b"".join(lines).decode()


def _lines(source: str) -> list[bytes]:
    """The lines as Python counts them (`str.splitlines` knows further ends of lines), in the bytes in which it counts
    columns.
    """
    return [line.encode() for line in re.findall(r"[^\n]*\n|[^\n]+", source)]


# -- which names


@functools.lru_cache(KEPT)
def defined(source: str) -> frozenset[str]:
    """Return the names that a cell defines or changes by assignment at its top level."""
    tree = parse(source)
    if tree is None:
        return frozenset(re.findall(r"^(?:async )?def (\w+)", source, re.MULTILINE))
    return frozenset().union(*(_defines(_top(statement)) for statement in tree.body))


def _top(node: ast.AST) -> list[ast.AST]:
    """The nodes below ``node`` that run where it does: not those inside functions and classes."""
    found, todo = [], [node]
    while todo:
        part = todo.pop()
        found.append(part)
        if not isinstance(part, INNER):
            todo += ast.iter_child_nodes(part)
    return found


def _defines(top: list[ast.AST]) -> set[str]:
    names, loops = set(), [node.target for node in top if isinstance(node, ast.comprehension)]
    own = {id(part) for target in loops for part in ast.walk(target)}
    for node in top:
        if id(node) in own:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, IMPORTS):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name | PARTS) and isinstance(node.ctx, ast.Store):
            names |= _root(node)
    return names - {"*"}


def _root(node: ast.AST) -> set[str]:
    while isinstance(node, PARTS | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


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
            sets = node is top[0] and _loads([node]) <= modules
            names |= _root(call.func) - (set() if sets else modules)
            names |= _loads(call.args) - modules if call.func.attr.endswith("_") else set()  # as in torch.nn.init
        elif isinstance(call.func, ast.Name) and call.func.id not in HARMLESS:
            names |= {word.id for word in call.args if isinstance(word, ast.Name)}
    return names


def _loads(nodes: list[ast.AST]) -> set[str]:
    """The names that expressions read, but for those that belong to a comprehension or a lambda."""
    parts = [part for node in nodes for part in ast.walk(node)]
    own = {part.arg for part in parts if isinstance(part, ast.arg)}
    for target in (part.target for part in parts if isinstance(part, ast.comprehension)):
        own |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)} - own


def _reads(node: ast.AST) -> set[str]:
    """The names that a statement reads before it writes them, as it runs from top to bottom: those in the bodies of
    functions are read later.
    """
    parts = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        notes = [part.annotation for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        parts = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, *notes, node.returns]
    heads = [part for part in parts if part and not isinstance(part, STATEMENTS)]
    reads, written = _loads(heads), _defines([part for head in heads for part in ast.walk(head)])
    if isinstance(node, ast.AugAssign):
        reads |= _root(node.target)
    for part in parts:
        if isinstance(part, STATEMENTS):
            reads |= _reads(part) - written
            written |= _defines(_top(part))
    return reads


@functools.lru_cache(KEPT)
def used(source: str, *, later: bool = False) -> frozenset[str]:
    """Return the global names that a piece of code may read or change, in functions too; those in functions alone, if
    what they read ``later`` is asked for.
    """
    try:
        tables, names = [(symtable.symtable(source, "cell", "exec"), not later)], set()
    except UNPARSABLE:
        return frozenset(re.findall(r"\w+", source))
    while tables:
        table, counts = tables.pop()
        counts = counts or (table.get_type() == "function" and table.get_name() not in AT_ONCE)
        tables += [(inner, counts) for inner in table.get_children()]
        top = table.get_type() == "module"
        names |= {
            symbol.get_name()
            for symbol in (table.get_symbols() if counts else ())
            if (symbol.is_referenced() and (top or symbol.is_global())) or symbol.is_declared_global()
        }
    return frozenset(names)


def aliases(sources: list[str]) -> dict[str, str]:
    """Name -> module of the companion that it stands for (or ``module.name`` of a thing in one)."""
    return {name: what for source in sources for name, what, _ in _aliases(plain(source))}


def inner_imports(source: str) -> set[str]:
    """Return what of the companion is imported elsewhere than at the top level: in a function, in a class."""
    return {what for _, what, inner in _aliases(plain(source)) if inner}


@functools.lru_cache(KEPT)
def _aliases(source: str) -> tuple[tuple[str, str, bool], ...]:
    found = []
    tree = parse(source) if "companion" in unicodedata.normalize("NFKC", source) else None  # as Python reads names
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "companion":
            found += [(alias.asname or alias.name, f"{node.module}.{alias.name}", node) for alias in node.names]
        elif isinstance(node, ast.Import):
            course = [alias for alias in node.names if alias.name.split(".")[0] == "companion"]
            found += [(alias.asname or "companion", alias.name, node) for alias in course]
    return tuple((name, what, node not in tree.body) for name, what, node in found)


# -- what an answer needs


@functools.lru_cache(KEPT)
def pieces(source: str, modules: frozenset[str]) -> tuple[Piece, ...]:
    """Return the statements at the top level of a cell, each with its own text; a line that imports several names is
    several, since an answer that needs one of them does not reach for the others.
    """
    tree = parse(source)
    lines = _lines(source)
    found = []
    for node in tree.body if tree else []:
        if isinstance(node, ast.ImportFrom) and len(node.names) > 1:
            for alias in node.names:
                text = ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
                name = frozenset({alias.asname or alias.name})
                found.append(Piece(text, name, name))
            continue
        text, top = _text(lines, node), _top(node)
        stars = [part for part in top if isinstance(part, ast.ImportFrom) and part.names[0].name == "*"]
        names = frozenset(_defines(top)).union(*(_public(part.module or "") for part in stars))
        parts = [part for part in top if isinstance(part, PARTS) and isinstance(part.ctx, ast.Store)]
        binds = names.difference(*map(_root, parts)) if not isinstance(node, UNCERTAIN) else frozenset()
        changes = names | _changes(top, modules)
        later = used(text, later=True) if any(isinstance(part, INNER) for part in ast.walk(node)) else ()
        found.append(Piece(text, binds, changes, frozenset(_reads(node)), frozenset(later), bool(stars)))
    return tuple(found)


def _public(module: str) -> set[str]:
    """The names that a star import gives, of a module that is loaded here; none of another."""
    found = vars(sys.modules[module]) if module in sys.modules else {}
    return set(found.get("__all__", [name for name in found if not name.startswith("_")]))


@functools.lru_cache(KEPT)
def likeness(source: str) -> str:
    """Return a statement without its numbers and texts: the same for a line of the lesson and for one tried with
    others.
    """
    tree = parse(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Constant):
            node.value = None
    try:
        return ast.dump(tree) if tree else source
    except RecursionError:
        return source


@functools.lru_cache(KEPT)
def shape(source: str) -> str:
    """Return what a cell says in Python, whatever its comments and spaces; empty if it is none."""
    tree = parse(plain(source))
    try:
        return ast.dump(tree) if tree else ""
    except (RecursionError, MemoryError):
        return ""


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
    taken: set[int] = set()
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


@functools.lru_cache(KEPT)
def imported(source: str) -> frozenset[str]:
    """Return the names that a piece of code imports at its top level."""
    tree = parse(source)
    return frozenset(_defines([node for node in tree.body if isinstance(node, IMPORTS)] if tree else []))
