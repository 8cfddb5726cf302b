"""Source text of notebooks, understood without running it: which names a piece of code defines, changes and uses."""

import ast
import functools
import re
import symtable
import unicodedata

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
MODULE = re.compile(r"(?:\./)?(\w+)\.py")
WRITES = re.compile(r"%%(?:writefile|file)\s+(?:\./)?(\w+\.py)")
LIKE_NONE = {"time", "capture", "prun"}  # magics that run the rest of the cell as it stands
INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
IMPORTS = ast.Import | ast.ImportFrom
PARTS = ast.Attribute | ast.Subscript
KEPT = 4096  # sources of which it is remembered what was found: a notebook has far fewer
AT_ONCE = {"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"}  # scopes, as symtable calls them


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree; None if there is none."""
    try:
        return ast.parse(source)
    except UNPARSABLE:
        return None


def top_level(source: str) -> list[ast.stmt]:
    """Return the statements at the top level; none of what cannot be parsed."""
    tree = parse(source)
    return tree.body if tree else []


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


def file_of(source: str) -> dict[str, str]:
    """Return the module that a cell writes by ``%%writefile``, by its name; nothing if it writes none."""
    head, _, body = source.lstrip("\n").partition("\n")
    found = WRITES.fullmatch(head.strip())
    return {found[1]: body} if found else {}


def _without_magics(source: str) -> str:
    tree = parse(source)
    if tree is None:
        return source
    lines = lines_of(source)
    magics = []  # what IPython makes of a magic: get_ipython().run_line_magic(...)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython"))))):
                magics.append(node.value)
    for node in sorted(magics, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        words = [word.value for word in node.args if isinstance(word, ast.Constant)]
        run = _run_by(*words[:2]) if len(words) > 1 else "pass"
        first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
        new = first[: node.col_offset] + run.encode() + last[node.end_col_offset :]
        lines[node.lineno - 1 : node.end_lineno] = [new]
    return b"".join(lines).decode()


def _run_by(magic: str, words: str) -> str:
    """What a line magic runs: ``%time`` what stands behind it, ``%run`` a module beside the notebook."""
    if magic == "run" and (module := MODULE.fullmatch(words.strip())):
        return f"from {module[1]} import *"
    return words if magic == "time" and parse(words) else "pass"


def lines_of(source: str) -> list[bytes]:
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
    return frozenset().union(*(bound(outer(statement)) for statement in tree.body))


def outer(node: ast.AST) -> list[ast.AST]:
    """Return the nodes below ``node`` that run where it does: not those inside functions and classes."""
    found, todo = [], [node]
    while todo:
        part = todo.pop()
        found.append(part)
        if not isinstance(part, INNER):
            todo += ast.iter_child_nodes(part)
    return found


def bound(top: list[ast.AST]) -> set[str]:
    """Return the names to which these nodes give a value, or a part of one."""
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
            names |= base_name(node)
    return names - {"*"}


def base_name(node: ast.AST) -> set[str]:
    """Return the name at the beginning of ``name.part[0].other()``; nothing where none is there."""
    while isinstance(node, PARTS | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def loads(nodes: list[ast.AST]) -> set[str]:
    """Return the names that expressions read, but for those that belong to a comprehension or a lambda."""
    parts = [part for node in nodes for part in ast.walk(node)]
    own = {part.arg for part in parts if isinstance(part, ast.arg)}
    for target in (part.target for part in parts if isinstance(part, ast.comprehension)):
        own |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)} - own


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


@functools.lru_cache(KEPT)
def imported(source: str, own: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names that a piece of code imports at its top level, but not from its ``own`` files."""
    imports = [node for node in top_level(source) if isinstance(node, IMPORTS)]
    return frozenset(bound([node for node in imports if own.isdisjoint(modules_of(node))]))


def modules_of(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return the modules, or the packages of those, from which a statement imports."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return {name.split(".")[0] for name in names}


@functools.lru_cache(KEPT)
def words_of(source: str) -> frozenset[str]:
    """Return all words of a text, in the form in which Python reads a name, however it is written."""
    return frozenset(re.findall(r"\w+", unicodedata.normalize("NFKC", source)))
