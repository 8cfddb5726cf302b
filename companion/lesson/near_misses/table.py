"""The table of near misses, `table.txt`: a pattern of the answer, what people write in its place, and the mistake in words.

    @ A / (B * C)
    A / B * C                     | 1.2 | {C} multiplies; it belongs below the line

A row applies wherever the answer has the form of its block's heading. Capital letters stand for parts of the answer; in
the sentence they are put into words. A heading is one of

    @ PATTERN || PATTERN            an expression of one of these forms, through the answer's own variables
    @ PATTERN where M bool, V whole the same where these parts were of these kinds
    @ do STATEMENT                  a statement of this form
    @ loop                          for I in R: BODY, which carries N from round to round; N begins as S
    @ start                         what a variable is before it changes
    @ call NAME NAME                a call: X its tensor, A B C its other arguments, Y the whole
    @ compare                       A compared with B, by {now}; {op} is each other comparison
    @ value KIND ..., @ size, @ number    a tensor on its way; a size of one; a number that is computed
    @ constant, @ index             a number that is written out, by itself or to pick something
    @ f(A)                          a function of one tensor; f and g stand for two of them
    @ argument KIND ...             an argument, before the first step
    @ answer KIND ...               what is returned
    @ instead                       one function for another

and rows may ask for {D}, a call's own axis, {E}, each axis, {S}, a size of the arguments, {P}, an argument of the
same dtype, {C}, a small whole number.
"""

import ast
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.trees import (
    BEFORE,
    FUNCTION_LETTERS,
    SLOT,
    Edit,
    Path,
    from_module,
    made,
    remembers,
    template,
)
from companion.lesson.near_misses.words import COMPARISONS, OPERATIONS, RELATIONS, Words, along, operation, size_of

REDUCTIONS = {"sum", "mean", "amin", "amax", "norm", "std", "var", "prod", "any", "all", "logsumexp"}
FUNCTIONS = REDUCTIONS | {
    "softmax", "log_softmax", "exp", "log", "sqrt", "square", "abs", "relu", "tanh", "sigmoid", "cumsum", "clamp_min",
    "clamp_max", "clamp", "sign", "normalize", "round", "cos", "sin", "log2", "entr",
}  # fmt: skip
KINDS = (
    "call",
    "compare",
    "value",
    "size",
    "number",
    "argument",
    "answer",
    "instead",
    "loop",
    "do",
    "start",
    "constant",
    "index",
)
SMALL = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # sizes that people type in
INNER = 0.8  # how much less likely a change is to a tensor on its way than to the answer
Parts = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """What stands in the place of a part, at which cost, and the mistake in words."""

    text: str
    cost: float
    says: str
    line: int


@dataclass(frozen=True)
class Rows:
    """Rows for one form."""

    kind: str  # of KINDS, or "" for a pattern
    words: tuple[str, ...]
    patterns: tuple[Any, ...]
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Site:
    """An expression of the answer: where it is, what is above it, and what it was on a drawn input."""

    path: Path
    node: ast.expr
    above: tuple[ast.AST, ...]
    value: Any
    returned: bool


@dataclass(frozen=True)
class Scene:
    """What an edit may know about the answer.

    ``variables``: what each was on a drawn input.
    ``sizes``: of the arguments, and of what is made on the way, as code and in words.
    ``tied``: the axes of arguments that have one size in every draw.
    ``values``: what each expression was, by its node's id.
    """

    words: Words
    variables: dict[str, Any]
    sizes: list[tuple[str, str]]
    tied: list[list[tuple[str, int]]]
    values: dict[int, Any]


@functools.cache
def near_miss_table() -> list[Rows]:
    """Read the table."""
    blocks: list[Rows] = []
    for number, raw in enumerate(File(__file__).with_name("table.txt").read_text(encoding="utf-8").splitlines(), 1):
        line = raw.rstrip()
        if line.startswith("@ "):
            first, _, rest = line[2:].partition(" ")
            if first in KINDS:
                blocks.append(Rows(first, tuple(rest.split()), (ast.parse(rest).body[0],) if first == "do" else ()))
            else:
                forms, _, kinds = line[2:].partition(" where ")
                patterns = tuple(template(each) for each in forms.split(" || "))
                blocks.append(Rows("", tuple(kinds.split(", ")) if kinds else (), patterns))
        elif line and not line.startswith("#"):
            text, cost, says = re.fullmatch(r"(.*?)\s*\|\s*([\d.]+)\s*\|\s?(.*)", line).groups()  # type: ignore[union-attr]
            blocks[-1].rows.append(Row(text.replace("\\n", "\n"), float(cost), says, number))
    return blocks


def _plain(node: ast.AST) -> Any:
    """Return torch.f(x, ..) and F.f(x, ..) as x.f(..), where the first argument is a tensor, and x.f(dim=1) as x.f(1)."""
    if isinstance(node, ast.Call):
        dim = [each.value for each in node.keywords if each.arg == "dim"]
        node = ast.Call(node.func, [*node.args, *dim], node.keywords) if dim else node
    if isinstance(node, ast.Call) and from_module(node) and node.args and not isinstance(node.args[0], ast.List):
        name = node.func.attr
        if name not in ("arange", "where", "eye", "zeros", "ones", "full", "linspace", "outer", "solve", "lstsq"):
            return ast.Call(ast.Attribute(node.args[0], name, ast.Load()), node.args[1:], node.keywords)
    return node


def _match(pattern: Any, node: Any, found: dict[str, Any], words: Words) -> bool:
    """Return whether a node has a pattern's form; what its letters stand for goes into ``found``."""
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1 and pattern.id.isupper():
        if not isinstance(node, ast.expr) or isinstance(node, ast.Slice):
            return False
        held = found.setdefault(pattern.id, node)
        return held is node or ast.unparse(held) == ast.unparse(node)
    if isinstance(node, ast.Name) and not isinstance(pattern, ast.Name) and node.id in words.defined:
        if node.id in words.changing | words.unpacked:
            return False
        node = words.defined[node.id]
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Name) and pattern.func.id in FUNCTION_LETTERS:
        name, parts = (call(node) if isinstance(node, ast.Call) else None) or ("", {})
        others = {letter: operation(found[letter])[0] for letter in FUNCTION_LETTERS if letter in found}
        if name not in FUNCTIONS or others.pop(pattern.func.id, name) != name or name in others.values():
            return False
        found.setdefault(pattern.func.id, node)
        return _match(pattern.args[0], parts["X"], found, words)
    pattern, node = _plain(pattern), _plain(node)
    if type(pattern) is not type(node):
        return False
    for name, one in ast.iter_fields(pattern):
        other = getattr(node, name)
        if name in ("ctx", "keywords", "kind", "type_comment"):
            continue
        if isinstance(one, list):
            other = [each for each in other if not remembers(each)]
            if name == "args" and one and isinstance(one[-1], ast.Constant) and one[-1].value is ...:
                one, other = one[:-1], other[: len(one) - 1]  # noqa: PLW2901  # the rest may be anything
            if len(one) != len(other) or not all(_match(a, b, found, words) for a, b in zip(one, other, strict=True)):
                return False
        elif isinstance(one, ast.AST):
            if not _match(one, other, found, words):
                return False
        elif one != other:
            return False
    return True


def call(node: ast.AST) -> tuple[str, dict[str, Any]] | None:
    """Return a call's name and parts: X its tensor, A B C its other arguments, Y the whole; or None if it is none."""
    if isinstance(node, ast.Attribute) and node.attr == "values":
        inner = call(node.value)
        return (inner[0], inner[1] | {"Y": node}) if inner and inner[0] in ("cummin", "cummax") else None
    name, inside = operation(node)
    if not isinstance(node, ast.Call) or name is None or inside is None:
        return None
    rest = node.args[1:] if from_module(node) or isinstance(node.func, ast.Name) else node.args
    return name, {"X": inside, "Y": node, **dict(zip("ABC", rest, strict=False))}


def axis(node: ast.AST) -> int | None:
    """Return the axis that a call names, or None."""
    if isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    at = {"roll": 1, "flip": 0}.get(operation(node)[0] or "", 0) + (1 if from_module(node) else 0)
    for value in [each.value for each in node.keywords if each.arg in ("dim", "dims")] + node.args[at : at + 1]:
        try:
            number = ast.literal_eval(value)
        except ValueError:
            continue
        if type(number) is int:
            return number
    return None


def _tags(value: Any) -> set[str]:
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


def _site_tags(site: Site, words: Words) -> set[str]:
    """Return the tags of an expression: of its value, and of where it stands."""
    node, over = site.node, site.above[-1] if site.above else None
    term = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Add | ast.Sub)
    held = isinstance(over, ast.Call | ast.Attribute | ast.Assign | ast.keyword)
    found = _tags(site.value)
    if site.returned or term or held or isinstance(node, ast.Call):
        found.add("step")
    if isinstance(node, ast.Name):
        found.add("name")
    if operation(node)[0] in ("sigmoid", "softmax"):
        found.add("share")
    return found - ({"matrix"} if isinstance(node, ast.Attribute) and node.attr in ("mT", "T") else set())


def _applied(block: Rows, site: Site, scene: Scene, known: set[str]) -> Parts | None:
    """Return a function that gives the parts of a node to which a block applies, or None if it does not."""
    node = site.node
    if block.patterns:
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return None  # -1 is a number, and mostly an axis
        for pattern in block.patterns:
            if block.kind != "do" and _match(pattern, node, held := {}, scene.words):
                kinds = [each.split() for each in block.words]
                if any(kind not in _tags(scene.values.get(id(held[part]))) for part, kind in kinds):
                    continue

                def parts(now: Any, pattern=pattern) -> dict[str, Any]:
                    found: dict[str, Any] = {}
                    _match(pattern, now, found, scene.words)
                    return found | {"Y": now}

                return parts
        return None
    if block.kind == "call":
        now = call(node)
        return (lambda now: (call(now) or ("", {}))[1]) if now and now[0] in block.words else None
    if block.kind == "compare":
        simple = isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS
        return (lambda now: {"A": now.left, "B": now.comparators[0]}) if simple else None
    size = scene.words.size(node) is not None
    constant = isinstance(getattr(node, "operand", node), ast.Constant | ast.Name)
    fits = {
        "size": size,
        "number": isinstance(site.value, int | float) and not isinstance(site.value, bool) and not (size or constant),
        "value": isinstance(site.value, Tensor) and not size and set(block.words) <= known,
        "answer": site.returned and set(block.words) <= known,
        block.kind if block.kind in ("constant", "index") else "": _written(site) == block.kind,
        "start": any(scene.words.defined.get(name) is node for name in scene.words.changing),
    }
    return (lambda now: {"X": now}) if fits.get(block.kind) else None


def _written(site: Site) -> str:
    """Return whether a number that is written out is a "constant" or an "index", or nothing: an axis, a size, a root."""
    value, above = getattr(site.node, "value", None), [*site.above]
    if not isinstance(site.node, ast.Constant) or type(value) not in (int, float):
        return ""
    over = above[-2] if isinstance(above[-1], ast.UnaryOp) else above[-1]
    root = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Pow) and value == 0.5
    axis_ = isinstance(above[-1], ast.keyword) or (type(value) is int and isinstance(over, ast.Call | ast.keyword))
    if root or axis_ or any(map(size_of, above[-2:])):
        return ""
    return "index" if any(isinstance(each, ast.Subscript) for each in above[-3:]) else "constant"


def _spread(text: str, says: str, node: Any, value: Any, scene: Scene) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a row for every axis {D} or {E}, size {S}, argument {P} or small number {C} that it asks for."""
    if "{D}" in text:
        own = axis(node)
        if own is not None:
            yield text.replace("{D}", str(own)), says, {}
    elif "{E}" in text:
        for dim in range(value.ndim if isinstance(value, Tensor) else 0):
            yield text.replace("{E}", str(dim)), says.replace("{along}", along("its", dim, value.ndim)), {}
    elif "{S}" in text:
        for size, said in scene.sizes:
            if not (isinstance(node, ast.AST) and ast.unparse(node) == size):
                yield text.replace("{S}", "SIZE"), says.replace("{size}", said), {"SIZE": template(size)}
    elif "{P}" in text:
        for name in scene.words.parameters:
            given = scene.variables.get(name)
            dtype = value.dtype if isinstance(value, Tensor) else torch.float64
            if isinstance(given, Tensor) and given.dtype == dtype:
                old = BEFORE + name if BEFORE + name in scene.variables else name
                yield text.replace("{P}", "ARGUMENT"), says.replace("{P}", name), {"ARGUMENT": ast.Name(old)}
    elif "{C}" in text:
        for number in SMALL:
            yield text.replace("{C}", str(number)), says.replace("{C}", str(number)), {}
    elif "{new}" in says:
        try:
            number = eval(text, {"X": node.value})  # a row's own text, of a number
        except ZeroDivisionError:
            return
        number = int(number) if type(node.value) is int and number == int(number) else number
        if number != node.value:
            yield repr(number), says.replace("{new}", f"{number:g}"), {}
    elif "{op}" in text:
        for operator in COMPARISONS.values():
            if operator != COMPARISONS[type(node.ops[0])]:
                yield text.replace("{op}", operator), says.replace("{op}", RELATIONS[operator]), {}
    else:
        yield text, says, {}


def _in_words(says: str, parts: dict[str, Any], words: Words, name: str, *, whole: bool) -> str:
    """Put the parts that a sentence names into words. Raises KeyError for a part that is not there."""

    def noun(found: re.Match) -> str:
        if found[1] in FUNCTION_LETTERS:
            return OPERATIONS[operation(parts[found[1]])[0] or ""]
        return "the answer" if whole and found[1] == "X" else words.noun(parts[found[1]])

    return re.sub(r"\{([A-Zfg])\}", noun, says).replace("{word}", OPERATIONS.get(name, name))


def at_expression(site: Site, scene: Scene) -> Iterator[Edit]:
    """Yield every row that applies at one expression."""
    node, known = site.node, _site_tags(site, scene.words)
    name = (call(node) or ("", {}))[0]
    now_is = COMPARISONS.get(type(node.ops[0]), "") if isinstance(node, ast.Compare) else ""
    for block in near_miss_table():
        parts = _applied(block, site, scene, known)
        if parts is None:
            continue
        base = INNER if block.kind == "value" and not site.returned else 0
        for row in block.rows:
            text = row.text.replace("{name}", name).replace("{now}", now_is)
            says = row.says.replace("{now}", RELATIONS.get(now_is, ""))
            for new, said, nodes in _spread(text, says, node, site.value, scene):
                try:
                    sentence = _in_words(said, parts(node), scene.words, name, whole=site.returned)
                except KeyError:
                    continue
                kind = said  # the same for a mistake in several forms
                yield Edit(
                    site.path,
                    lambda now, new=new, nodes=nodes, parts=parts: made(new, **parts(now), **nodes),
                    sentence,
                    kind,
                    base + row.cost,
                    row.line,
                )


def at_statement(path: Path, line: ast.stmt, starts: dict[str, ast.expr], scene: Scene) -> Iterator[Edit]:
    """Yield every row that applies to a statement.

    ``path``: where it stands.
    ``line``: the statement.
    ``starts``: what each variable is when it begins.
    ``scene``: of the answer.
    """
    for block in near_miss_table():
        held: list[dict[str, Any]] = []
        if block.kind == "do" and _match(block.patterns[0], line, found := {}, scene.words):
            held = [found]
        elif block.kind == "loop" and isinstance(line, ast.For):
            held = [*_carried(line, starts)]
        for parts in held:
            for row in block.rows:
                sentence = _in_words(row.says, parts, scene.words, "", whole=False)
                change = lambda now, row=row, parts=parts: made(row.text, **parts)  # noqa: E731
                yield Edit(path, change, sentence, f"{row.line} {sentence}", row.cost, row.line)


def _carried(loop: ast.For, starts: dict[str, ast.expr]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a loop for each variable that it carries from round to round."""
    nodes = [node for node in ast.walk(loop) if isinstance(node, ast.Name)]
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    for name in sorted({node.id for node in nodes if isinstance(node.ctx, ast.Store)} & read & starts.keys()):
        if not name.startswith(BEFORE):
            yield {
                "I": loop.target, "R": loop.iter, "N": ast.Name(name, ast.Load()), "S": starts[name], "BODY": loop.body,
            }  # fmt: skip


def at_arguments(inputs: dict[str, Any], scene: Scene) -> Iterator[Edit]:
    """Yield what may be done to an argument before the first step."""
    for name, value in inputs.items():
        known = _tags(value)
        for block in near_miss_table():
            if block.kind == "argument" and set(block.words) <= known:
                for row in block.rows:
                    for new, said, nodes in _spread(row.text, row.says, None, value, scene):
                        yield before([(name, new)], said.replace("{X}", name), row.cost, row.line, nodes)


def before(
    changes: Sequence[tuple[str, str]], says: str, cost: float, row: int = 0, nodes: dict[str, Any] | None = None
) -> Edit:
    """Make an edit that gives arguments other values before the first step.

    ``changes``: names and expressions, in which X stands for the argument's own value.
    ``says``: the mistake in words.
    ``cost``: how unlikely it is.
    ``row``: the line of the table that it comes from, if any.
    ``nodes``: further parts of the expressions.
    """

    def change(_: Any) -> ast.stmt:
        targets = [ast.Name(name, ast.Store()) for name, _ in changes]
        values = [made(text, X=ast.Name(name, ast.Load()), **(nodes or {})) for name, text in changes]
        return ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))

    return Edit(SLOT, change, says, f"argument {row} {changes[0][1]}", cost, row)
