"""What a claim rests on: the shipped checkpoints and measured tables that its figures come from, and how each is made
again. It is read off the notebook's code, in which what is said in one statement flows to others by the names it binds.
"""

import ast
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from companion.core.checkpoints import read_header
from companion.core.measuring import look_up

MEASURES = re.compile(r'claims\.(?:saw|record)\(\s*"([\w-]+)"')
MEASURES_EVIDENCE = re.compile(r'claims\.(?:saw|record|evidence)\(\s*"([\w-]+)"')
SHEETS = {"claims", "predictions"}  # they hold every figure, and no figure comes from them


def commands(companion: Path) -> dict[str, list[str]]:
    """Return, by name, the command that makes each shipped checkpoint again; of each measured table, those of the
    checkpoints and models that it is measured on, and its own.
    """
    seeds: dict[str, list[int]] = defaultdict(list)
    trained = {}
    for header in map(read_header, (companion / "weights").glob("*.safetensors")):
        trained[header.recipe] = f"train {header.recipe}" + f" --scale {header.scale}" * (header.scale != "course")
        seeds[header.recipe].append(header.seed)
    for name, numbers in seeds.items():
        if any(numbers):
            trained[name] += f" --seed {min(numbers)}" + f" (to {max(numbers)})" * (len(numbers) > 1)
    found = {name: [command] for name, command in trained.items()}
    for path in (companion / "measured").glob("*.csv"):
        chosen = look_up(path.stem)
        loads = "shipped" in inspect.unwrap(getattr(chosen.one, "func", chosen.one)).__code__.co_names
        needed = [trained[each.name] for each in chosen.recipes("course") if loads and each.name in trained]
        fetched = (f"fetch {model}" for model in chosen.models)
        found[path.stem] = [*fetched, *dict.fromkeys(needed), f"measure {path.stem}"]
    return found


def rests_on(notebook: NotebookNode, names: set[str]) -> dict[str, list[str]]:
    """Return, for each claim that the ``notebook`` measures, those of ``names`` that its figures come from: where they
    stand in its code, or an f-string is filled in to one.
    """
    code = [each for cell in notebook.cells if cell.cell_type == "code" for each in steps(_parsed(cell.source))]
    texts = [set(_patterns(statement)) for statement in code]
    filled = {
        pattern: {name: set(found.groups()) for name in names if (found := re.fullmatch(pattern, name))}
        for pattern in set().union(*texts)
    }
    words = names.union(filled, *(parts for fits in filled.values() for parts in fits.values()))
    imported = {name: set(found) & words for statement in code for name, found in _imported(statement)}
    flows, rests = defaultdict(set, imported), defaultdict(set)
    for statement, patterns in zip(code, texts, strict=True):
        reads, writes = reads_and_writes(statement)
        constants = {str(node.value) for node in ast.walk(statement) if isinstance(node, ast.Constant)}
        said = (constants & words).union(patterns, *(flows[name] for name in reads - SHEETS))
        flows |= dict.fromkeys(writes - SHEETS - imported.keys(), said)
        fits = {name for pattern in said & filled.keys() for name, parts in filled[pattern].items() if parts <= said}
        for id in MEASURES_EVIDENCE.findall(ast.unparse(statement).replace("'", '"')):
            rests[id] |= said & names | fits
    return {id: sorted(found) for id, found in rests.items()}


def _parsed(source: str) -> list[ast.stmt]:
    """The statements of a cell; none where Python cannot parse it, because of a magic."""
    try:
        return ast.parse(source).body
    except SyntaxError:
        return []


def steps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements in the order in which they run, those of a loop and of a `with` one by one."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield ast.Assign([statement.target], statement.iter, lineno=0)
            yield from steps(statement.body)
            yield ast.Assign([statement.target], ast.Constant(None), lineno=0)  # below, nobody reads it
        elif isinstance(statement, ast.With):
            heads = [(each.optional_vars, each.context_expr) for each in statement.items]
            yield from (ast.Assign([name], value, lineno=0) if name else ast.Expr(value) for name, value in heads)
            yield from steps(statement.body)
        else:
            yield statement


def _imported(statement: ast.stmt) -> Iterator[tuple[str, list[str]]]:
    """The names that a statement imports, and the texts in those that are constants of the course."""
    module = getattr(statement, "module", "")
    for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
        constant = module.startswith("companion.") and alias.name.isupper()
        value = pkgutil.resolve_name(f"{module}.{alias.name}") if constant else ()
        yield alias.asname or alias.name, [str(each) for each in value] if isinstance(value, tuple | dict) else []


def _patterns(statement: ast.stmt) -> Iterator[str]:
    """The f-strings of a statement that begin with a text, as regular expressions."""
    for node in ast.walk(statement):
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            yield "".join(re.escape(part.value) if isinstance(part, ast.Constant) else "(.+)" for part in node.values)


def reads_and_writes(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names through which something flows into a statement, and those through which it flows out: what it
    binds, and what it changes, as ``kept`` in ``kept[name].append(1)``.
    """
    nodes = list(ast.walk(statement))
    reads = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    loops = (node.target for node in nodes if isinstance(node, ast.comprehension | ast.For))
    own |= {node.id for target in loops for node in ast.walk(target) if isinstance(node, ast.Name)}
    writes = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    reads |= {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    writes |= {statement.name} if isinstance(statement, ast.FunctionDef | ast.ClassDef) else set()
    for node in nodes:
        changed = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else node
        if changed is not node or isinstance(getattr(node, "ctx", None), ast.Store):
            while isinstance(changed, ast.Attribute | ast.Subscript | ast.Call):
                changed = changed.func if isinstance(changed, ast.Call) else changed.value
                writes |= {changed.id} if isinstance(changed, ast.Name) else set()
    return reads - own, writes - own
