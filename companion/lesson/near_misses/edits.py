"""Every step away from an answer: the rows of the table of near misses, `table.txt`, whose head says what they mean, each
where it applies, with its sentence.

A place in an answer (`sites`) has headings of the table, by what stands there and what it was on a drawn input; or it
has the form of one (`match`). A block applies at a place in certain ways (`ways`), each of which says what the letters
of its rows stand for; what a row asks for by a name in braces, as {S}, a size, is everything that can stand there
(`fillings`).
"""

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path as File
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.matching import axis, call, match
from companion.lesson.near_misses.trees import (
    BEFORE,
    FUNCTION_LETTERS,
    SLOT,
    Edit,
    Path,
    all_statements,
    answer_path,
    expressions,
    from_module,
    made,
    remembers,
    root,
    template,
)
from companion.lesson.near_misses.words import COMPARISONS, OPERATIONS, RELATIONS, VAGUE, Words, operation, size_of
from companion.lesson.seen import ORDINALS

STATEMENTS, ARGUMENTS = ("do", "loop"), ("argument", "arguments", "tensors", "shared")
KINDS = (
    *("call", "axis", "all", "compare", "name", "slice", "list", "value", "size", "number", "constant", "index"),
    *("answer", "start", *STATEMENTS, *ARGUMENTS),
)
INNER = 0.8  # how much less likely a change is to a tensor on its way than to the answer
SMALL = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # sizes that people type in
FAR, FARTHER = 0.12, 0.2  # how much less likely a variable is for another: one on the way, one of another shape
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
PARTS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip
Parts = Callable[[Any], dict[str, Any]]  # from a node, which may have been edited below, to what a row's letters are


@dataclass(frozen=True)
class Row:
    """What stands in the place of a part, at which cost, and the mistake in words.

    ``of_values``: whether that may be said of values alone, too, whatever program gives them.
    """

    text: str
    cost: float
    says: str
    line: int
    of_values: bool


@dataclass(frozen=True)
class Rows:
    """Rows for one form: ``kind`` is one of KINDS, or "" for a pattern."""

    kind: str
    words: tuple[str, ...]
    patterns: tuple[Any, ...] = ()
    rows: list[Row] = field(default_factory=list)


@cache
def near_miss_table() -> list[Rows]:
    """Read the table."""
    blocks: list[Rows] = []
    for number, raw in enumerate(File(__file__).with_name("table.txt").read_text(encoding="utf-8").splitlines(), 1):
        line = raw.rstrip()
        if line.startswith("@ "):
            first, _, rest = line[2:].partition(" ")
            if first in KINDS:
                patterns = (ast.parse(rest).body[0],) if first == "do" else ()
                blocks.append(Rows(first, tuple(rest.split()), patterns))
            else:
                forms, _, kinds = line[2:].partition(" where ")
                patterns = tuple(template(each) for each in forms.split(" || "))
                blocks.append(Rows("", tuple(kinds.split(", ")) if kinds else (), patterns))
        elif line and not line.startswith("#"):
            parts = re.fullmatch(r"(.*?)\s*\|\s*([\d.]+)(!?)\s*\|\s?(.*)", line)
            text, cost, of_program, says = parts.groups()  # type: ignore[union-attr]
            blocks[-1].rows.append(Row(text.replace("\\n", "\n"), float(cost), says, number, not of_program))
    return blocks


@dataclass(frozen=True)
class Site:
    """A place in an answer: an expression, a statement, or an argument before the first step.

    ``value``: what it was on a drawn input.
    ``kinds``, ``tags``: which headings it has, and their words.
    """

    path: Path
    node: Any
    value: Any
    kinds: set[str]
    tags: set[str]


@dataclass(frozen=True)
class Scene:
    """What an edit may know about the answer.

    ``inputs``: a drawn input, by name.
    ``variables``: what each was on it, the arguments and what is made on the way.
    ``sizes``: of the arguments, as code and in words.
    ``tied``: the axes of arguments that have one size in every draw.
    ``values``: what each expression was, by its path.
    """

    tree: ast.FunctionDef
    words: Words
    inputs: dict[str, Any]
    variables: dict[str, Any]
    sizes: list[tuple[str, str]]
    tied: list[list[tuple[str, int]]]
    values: dict[Path, Any]


def sites(scene: Scene) -> Iterator[Site]:
    last = answer_path(scene.tree)
    for path, node, above in expressions(scene.tree):
        if not any(remembers(each) for each in above):
            value = scene.values.get(path)
            kinds = _kinds(node, above, value, scene.words) | ({"answer"} if path == last else set())
            turned = {"matrix"} if operation(node)[0] in ("mT", "T") else set()  # to turn it back is a row of its own
            tags = tags_of(value) - turned | _standing(node, above, path == last)
            yield Site(path, node, value, kinds, tags)
    for path, line in all_statements(scene.tree):
        if not remembers(line):
            yield Site(path, line, None, {"loop"} if isinstance(line, ast.For) else set(), set())
    for name, value in scene.inputs.items():
        yield Site(SLOT, ast.Name(name, ast.Load()), value, {"argument"}, tags_of(value))
    yield Site(SLOT, None, None, set(ARGUMENTS) - {"argument"}, set())


def tags_of(value: Any) -> set[str]:
    """Return what kind of thing a value is, in the words that headings use."""
    if isinstance(value, Tensor):
        kind = "float" if value.is_floating_point() else "bool" if value.dtype == torch.bool else "whole"
        found = {kind, "tensor", f"{value.ndim}d"}
        if value.ndim >= 2:
            found |= {"matrix"} | ({"square"} if value.shape[-1] == value.shape[-2] > 1 else set())
        if kind != "bool" and value.numel() and not value.is_complex():
            if not (value % 1).any() and value.min() >= 0:
                found |= {"bits"} if value.max() <= 1 else {"counts"}
            if kind == "whole" and value.ndim and value.max() < value.shape[-1] and value.min() >= 0:
                found |= {"places"}
        return found
    if isinstance(value, bool) or not isinstance(value, int | float):
        return set()
    return {"number", "fraction" if isinstance(value, float) else "integer"}


def _standing(node: ast.expr, above: tuple[ast.AST, ...], returned: bool) -> set[str]:
    """Return the tags of where an expression stands, and of what makes it."""
    over = above[-1]
    term = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Add | ast.Sub)
    held = isinstance(over, ast.Call | ast.Attribute | ast.Assign | ast.keyword)
    found = {"step"} if returned or term or held or isinstance(node, ast.Call) else set()
    found |= {"name"} if isinstance(node, ast.Name) else set()
    return found | ({"share"} if operation(node)[0] in ("sigmoid", "softmax") else set())


def _kinds(node: ast.expr, above: tuple[ast.AST, ...], value: Any, words: Words) -> set[str]:
    """Return the headings that an expression has, but for those that state a form."""
    size = words.size(node) is not None
    found = {"size"} if size else set()
    if isinstance(value, Tensor) and not size:
        found.add("value")
    written = isinstance(getattr(node, "operand", node), ast.Constant | ast.Name)
    if isinstance(value, int | float) and not isinstance(value, bool) and not (size or written):
        found.add("number")
    found |= _written_as(node, above)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        found.add("compare")
    if isinstance(node, ast.List | ast.Tuple) and 1 < len(node.elts) < 6 and not isinstance(above[-1], ast.Subscript):
        found.add("list")
    found |= {"name"} if isinstance(node, ast.Name) else {"slice"} if isinstance(node, ast.Subscript) else set()
    return found | ({"start"} if any(words.defined.get(name) is node for name in words.changing) else set())


def _written_as(node: ast.AST, above: tuple[ast.AST, ...]) -> set[str]:
    """Return whether a number that is written out, its sign with it, is a "constant" or an "index", or nothing: an axis,
    a size, a root.
    """
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if negative else node
    if not isinstance(number, ast.Constant) or type(number.value) not in (int, float):
        return set()
    over = above[-1]
    if isinstance(over, ast.UnaryOp) and isinstance(over.op, ast.USub):
        return set()  # the number with its sign is the place
    root_ = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Pow) and number.value == 0.5
    axis_ = isinstance(over, ast.keyword) or (type(number.value) is int and isinstance(over, ast.Call | ast.keyword))
    if root_ or axis_ or any(map(size_of, above[-2:])):
        return set()
    return {"index"} if any(isinstance(each, ast.Subscript) for each in above[-3:]) else {"constant"}


def value_of(node: ast.AST, scene: Scene) -> Any:
    return next((scene.values.get(path) for path, each, _ in expressions(scene.tree) if each is node), None)


def indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def edits(scene: Scene) -> Iterator[Edit]:
    """Yield every step away from an answer."""
    for site in sites(scene):
        name = (call(site.node) or ("", {}))[0] if site.node else ""
        now_is = COMPARISONS[type(site.node.ops[0])] if "compare" in site.kinds else ""
        for block in near_miss_table():
            base = INNER if block.kind == "value" and "answer" not in site.kinds else 0
            for parts in ways(block, site, scene):
                held = parts(site.node)
                for row in block.rows:
                    text = row.text.replace("{name}", name).replace("{now}", now_is)
                    says = row.says.replace("{now}", RELATIONS.get(now_is, ""))
                    for new, said, hole, nouns, more in filled(text, says, site, held, scene):
                        sentence = partial(_in_words, said, held | nouns, site, name=name)
                        try:
                            plain = sentence(scene.words)
                        except KeyError:
                            continue

                        def change(now: Any, new=new, parts=parts, hole=hole) -> Any:
                            return made(new, **parts(now), **hole)

                        filled_in = "".join(map(ast.unparse, nouns.values()))
                        same = row.says if block.kind == "list" else said + filled_in  # for a mistake in several forms
                        kind = f"{site.kinds & {'argument'}} {same} {name if 'is missing' in same else ''}"
                        number = (float(new), float(ast.literal_eval(site.node))) if "{new}" in says else None
                        if number and number[0] == 0 and block.kind == "index":
                            number = None  # it may go without saying, as in [0:]
                        cost = base + row.cost + more
                        of_values = row.of_values or (block.kind == "value" and "answer" in site.kinds)
                        yield Edit(site.path, change, plain, kind, cost, row.line, sentence, number, of_values)


def together(edits: list[Edit]) -> Iterator[tuple[tuple[Edit, ...], float]]:
    """Yield edits of one kind, to be made together everywhere, or everywhere but once, and what this costs."""
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


def _in_words(says: str, parts: dict[str, Any], site: Site, words: Words, *, name: str) -> str:
    """Put the parts that a sentence names into words; if two parts have the same, say what the row says without them,
    or nothing. Raises KeyError for a part that is not there.
    """
    says, _, nameless = says.partition(" || ")
    nouns: dict[str, str] = {}

    def noun(found: re.Match) -> str:
        part = parts[found[1]]
        if found[1] in FUNCTION_LETTERS:
            return OPERATIONS[operation(part)[0]]
        if site.path == SLOT:
            said = part.id  # an argument, before anything has changed it
        else:
            said = "the answer" if part is site.node and "answer" in site.kinds else words.noun(part)
        nouns[found[1]] = said
        return said

    for text in (says, nameless):
        nouns.clear()
        said = re.sub(r"\{([A-Zfg]|one|two|other|whose)\}", noun, text).replace("{word}", OPERATIONS.get(name) or name)
        said = said.replace("1 minus minus ", "1 plus ")
        if VAGUE not in said and _told_apart(list(nouns.values())):
            return said
    return ""


def _told_apart(nouns: list[str]) -> bool:
    """Return whether no two parts have one name, nor one a vague name that is part of another's."""
    vague = [noun[noun.find("what is computed from") :] if "what is computed from" in noun else "" for noun in nouns]
    alike = any(one and two.startswith(one) for one, two in itertools.permutations(vague, 2))
    return len(set(nouns)) == len(nouns) and not alike


def ways(block: Rows, site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield a function that gives the parts of a node, for each way in which a block applies to it."""
    node = site.node  # None where an argument is changed before anything is computed
    if node and block.patterns:
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return  # -1 is a number, and mostly an axis
        for pattern in block.patterns:
            held = match(pattern, node, scene.words)
            kinds = [each.split() for each in block.words if block.kind != "do"]
            if held is not None and all(kind in tags_of(value_of(held[part], scene)) for part, kind in kinds):
                yield lambda now, pattern=pattern: (match(pattern, now, scene.words) or {}) | {"Y": now}
                return
    elif node and block.kind in ("call", "axis", "all"):
        of_all = axis(node) is None and isinstance(node, ast.Call)
        if (call(node) or ("", {}))[0] in block.words and (block.kind == "call" or of_all == (block.kind == "all")):
            yield _of_call
    elif block.kind in site.kinds and set(block.words) <= site.tags:
        yield from _of_kind(block.kind, site, scene)


def _of_call(now: Any) -> dict[str, Any]:
    return (call(now) or ("", {}))[1] | {"along": partial(_along, now), "other": partial(_other, now)}


def _of_kind(kind: str, site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield the ways of a heading that states no form."""
    match kind:
        case "compare":
            yield lambda now: {"A": now.left, "B": now.comparators[0]}
        case "name":
            yield lambda now: {"A": now}
        case "list":
            yield lambda now: {"picked": partial(_picked, now)}
        case "argument":
            yield lambda _: {"X": site.node}
        case "slice":
            for at, each in enumerate(indices(site.node)):
                if isinstance(each, ast.Slice) and (each.lower or each.upper):
                    yield lambda now, at=at: {"X": now.value, "R": indices(now)[at], "part": partial(_part, now, at)}
        case "loop":  # for each variable that it carries from round to round
            nodes = [node for node in ast.walk(site.node) if isinstance(node, ast.Name)]
            read, stored = ({each.id for each in nodes if isinstance(each.ctx, ctx)} for ctx in (ast.Load, ast.Store))
            for name in sorted(stored & read & scene.words.defined.keys()):
                if not name.startswith(BEFORE):
                    held = {"N": template(name), "S": scene.words.defined[name]}
                    yield lambda now, held=held: held | {"I": now.target, "R": now.iter, "BODY": now.body}
        case "arguments" | "tensors":
            for (first, a), (second, b) in itertools.combinations(scene.inputs.items(), 2):
                both = isinstance(a, Tensor) and isinstance(b, Tensor)
                alike = both and a.ndim == b.ndim
                if alike or (kind == "arguments" and isinstance(a, Tensor) == isinstance(b, Tensor)):
                    yield lambda _, first=first, second=second: {"A": template(first), "B": template(second)}
        case "shared":  # each axis that arguments share
            for places in scene.tied:
                yield lambda _, places=places: {"places": places, "cut": partial(_cut, places)}
        case _:
            yield lambda now: {"X": now}


def _along(now: ast.expr, dim: ast.expr, keepdim: ast.expr | None = None) -> ast.expr:
    """Make the same call along another axis or, for None, of all entries."""
    if isinstance(now, ast.Attribute):  # the values of cummin or cummax
        return ast.Attribute(_along(now.value, dim, keepdim), now.attr, ast.Load())
    own, to = axis(now), ast.literal_eval(dim)
    args = [each for each in now.args if own is None or ast.unparse(each) != str(own)]
    dropped = {"dim", "dims"} | ({"keepdim"} if own is not None and to is None else set())
    kept = [each for each in now.keywords if each.arg not in dropped]
    if to is not None:
        kept.append(ast.keyword("dims" if operation(now)[0] in ("flip", "roll") else "dim", dim))
    if keepdim is not None:
        kept.append(ast.keyword("keepdim", keepdim))
    return ast.Call(now.func, args, kept)


def _other(now: ast.Call, name: ast.Constant) -> ast.expr:
    """Make a call of another function of the same tensor, along the same axis."""
    inner, dim, other = call(now)[1]["X"], axis(now), name.value  # type: ignore[index]  # it is a call: the site's
    if root(now.func) == "math":
        return made(f"math.{other}(X)", X=inner)
    args = now.args[from_module(now) :] if dim is None else []
    options = [each for each in now.keywords if each.arg in ("keepdim", "descending")]
    along = [] if dim is None else [ast.keyword("dim", ast.Constant(dim))]
    new = ast.Call(ast.Attribute(inner, other, ast.Load()), args, along + options)
    return ast.Attribute(new, "values", ast.Load()) if other == "median" and along else new


def _part(now: ast.Subscript, at: int, text: ast.Constant) -> ast.Subscript:
    parts = indices(now)
    parts[at] = template(f"x[{text.value}]").slice
    return ast.Subscript(now.value, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())


def _picked(now: ast.List | ast.Tuple, *order: ast.Constant) -> ast.expr:
    return type(now)([now.elts[each.value] for each in order], ast.Load())


def _cut(places: list[tuple[str, int]], part: ast.Constant) -> Any:
    return made("\n".join(f"{name} = {name}[{':, ' * dim}{part.value}]" for name, dim in places))


def fillings(asked: str, site: Site, held: dict[str, Any], scene: Scene) -> Iterator[tuple[Any, dict[str, Any], float]]:
    """Yield all that can stand where a row asks for it by a letter, with the words for it, or the nodes that are to be
    put into words, and its further cost.

    ``asked``: the letter, or "op".
    ``site``: the place in the answer.
    ``held``: what the row's letters stand for there.
    ``scene``: the answer.
    """
    node, value, words, variables = site.node, site.value, scene.words, scene.variables
    match asked:
        case "D":  # a call's own axis
            if (own := axis(node)) is not None:
                yield ast.Constant(own), {}, 0
        case "E":  # each axis of what is there
            for dim in range(getattr(value, "ndim", 0)):
                yield ast.Constant(dim), {"along": f" along its {ORDINALS[dim]} axis" if value.ndim > 1 else ""}, 0
        case "K":  # each axis but a call's own
            for dim, where in AXES.items():
                if dim != axis(node):
                    yield ast.Constant(dim), {"axis": where, "own": AXES.get(axis(node), "other")}, 0.05 * (dim < 0)
        case "S":  # each size
            for size, said in scene.sizes:
                if node is None or ast.unparse(node) != size:
                    yield template(size), {"size": said}, 0
        case "P":  # each argument of the same dtype
            for name in words.parameters:
                if getattr(variables.get(name), "dtype", None) == getattr(value, "dtype", torch.float64):
                    yield template(BEFORE + name if BEFORE + name in variables else name), {"P": name}, 0
        case "C":  # numbers that people type in
            for number in SMALL:
                yield ast.Constant(number), {"C": str(number)}, 0
        case "op":  # each other comparison
            for kind, operator in COMPARISONS.items():
                if not isinstance(node.ops[0], kind):
                    yield operator, {"op": RELATIONS[operator]}, 0
        case "V":  # each variable of the same kind
            own = variables.get(node.id)
            for other, there in variables.items():
                both = isinstance(own, Tensor) and isinstance(there, Tensor)
                alike = both and (own.ndim, own.dtype) == (there.ndim, there.dtype)
                numbers = isinstance(own, int | float) and type(there) in (int, float)
                if other != node.id and (alike or numbers):
                    old, alike = other.startswith(BEFORE), alike and own.shape == there.shape
                    more = 0 if old else FARTHER if not alike else FAR if other not in words.parameters else 0
                    yield template(other), {"other": template(other), "whose": node}, more
        case "R":  # each other part
            text = ast.unparse(held["R"])
            for other, taken in PARTS.items():
                if other != text:
                    said = {"taken": taken, "due": PARTS.get(text, "another part")}
                    yield ast.Constant(other), said, 0 if other == ":" else FARTHER
        case "X":  # the entries of a list, two of them exchanged
            for i, j in itertools.combinations(range(len(node.elts)), 2):
                order = [{i: j, j: i}.get(k, k) for k in range(len(node.elts))]
                yield str(order)[1:-1], {"one": node.elts[i], "two": node.elts[j]}, 0
        case "M":  # the entries of a list, one of them moved past several others
            for i, j in itertools.permutations(range(n := len(node.elts)), 2):
                if abs(i - j) > 1:
                    order = [k for k in range(n) if k != i]
                    order.insert(j, i)
                    yield str(order)[1:-1], {"one": node.elts[i], "there": _place(j, n), "here": _place(i, n)}, 0
        case "L":  # all entries of a list but one
            for i, one in enumerate(node.elts):
                yield str([k for k in range(len(node.elts)) if k != i])[1:-1], {"one": one}, 0


def _place(at: int, n: int) -> str:
    return "last" if at == n - 1 else ORDINALS[at]


def filled(
    text: str, says: str, site: Site, held: dict[str, Any], scene: Scene
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any], float]]:
    """Yield a row's text, sentence, node, what its sentence names and further cost, for each that it asks for: of its ``text`` and of what it
    ``says``, at a ``site`` of the answer, with what its pattern ``held`` there, in the ``scene`` of the exercise.
    """
    text = f"X = {text}" if "argument" in site.kinds else text
    if "{new}" in says:
        own = ast.literal_eval(site.node)
        try:
            number = eval(text, {"X": own})  # a row's own text, of a number
        except ZeroDivisionError:
            return
        number = int(number) if type(own) is int and number == int(number) else float(f"{number:.12g}")  # 10 * 1e-6
        if number != own:
            yield repr(number), says.replace("{new}", f"{number:g}"), {}, {}, 0
    elif "places" in held:
        yield f"cut({text!r})", _of_places(says, held["places"], scene.inputs), {}, {}, 0
    elif asked := re.search(r"\{(\w+)\}", text):
        parts = _joined(site.node) and (".flip(" in text or ".roll(" in text)
        for new, words, more in fillings(asked[1], site, held, scene):
            if parts and asked[1] == "E" and new.value == 0:
                continue  # what a list puts together is no row of places
            said = says
            nouns = {name: word for name, word in words.items() if isinstance(word, ast.AST)}
            for name in words.keys() - nouns.keys():
                said = said.replace(f"{{{name}}}", words[name])
            hole = "HOLE" if isinstance(new, ast.AST) else new
            yield text.replace(asked[0], hole), said, {"HOLE": new} if hole == "HOLE" else {}, nouns, more
    else:
        yield text, says, {}, {}, 0


def _joined(node: Any) -> bool:
    return (
        node is not None and operation(node)[0] in ("stack", "cat") and isinstance(node.args[0], ast.List | ast.Tuple)
    )


def _of_places(says: str, places: list[tuple[str, int]], inputs: dict[str, Any]) -> str:
    """Say what is cut: entries, rows or columns of all arguments that share an axis."""
    (name, dim), *_ = places
    last = inputs[name].ndim - 1
    shared = " and ".join(dict.fromkeys(name for name, _ in places))
    kinds = ("entry", "entries") if not last else ("row", "rows") if not dim else ("column", "columns")
    if dim not in (0, last):
        kinds, shared = ("place", "places"), f"{shared} along the {ORDINALS[dim]} axis"
    return says.format(one=f"{kinds[0]} of {shared}", many=f"{kinds[1]} of {shared}")
