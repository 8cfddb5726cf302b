"""Where in an answer the rows of the table apply, and the edits that they make there."""

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.table import ARGUMENTS, Rows, axis, call, match, near_miss_table
from companion.lesson.near_misses.trees import (
    BEFORE,
    FUNCTION_LETTERS,
    SLOT,
    Edit,
    Path,
    all_statements,
    expressions,
    from_module,
    made,
    remembers,
    root,
    template,
)
from companion.lesson.near_misses.words import (
    COMPARISONS,
    OPERATIONS,
    ORDINALS,
    RELATIONS,
    Words,
    along,
    operation,
    size_of,
)

SMALL = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # sizes that people type in
INNER = 0.8  # how much less likely a change is to a tensor on its way than to the answer
FAR, FARTHER = 0.12, 0.2  # how much less likely a variable is for another: one on the way, one of another shape
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
PARTS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip
Parts = Callable[[Any], dict[str, Any]]  # from a node, which may have been edited below, to what a row's letters are


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
    ``sizes``: of the arguments, and of what is made on the way, as code and in words.
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


def edits(scene: Scene) -> Iterator[Edit]:
    """Yield every step away from an answer."""
    for site in _sites(scene):
        yield from _edits_at(site, scene)


def _sites(scene: Scene) -> Iterator[Site]:
    last: Path = (("body", len(scene.tree.body) - 1), ("value", None))
    for path, node, above in expressions(scene.tree):
        if not any(remembers(each) for each in above):
            value = scene.values.get(path)
            kinds = _kinds(node, above, value, scene.words) | ({"answer"} if path == last else set())
            turned = {"matrix"} if operation(node)[0] in ("mT", "T") else set()  # to turn it back is a row of its own
            tags = _tags(value) - turned | _standing(node, above, path == last)
            yield Site(path, node, value, kinds, tags)
    for path, line, _ in all_statements(scene.tree):
        if not remembers(line):
            yield Site(path, line, None, {"loop"} if isinstance(line, ast.For) else {"shift"}, set())
    for name, value in scene.inputs.items():
        yield Site(SLOT, ast.Name(name, ast.Load()), value, {"argument"}, _tags(value))
    yield Site(SLOT, None, None, set(ARGUMENTS) - {"argument"}, set())


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
    found |= written_as(node, above)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        found.add("compare")
    if isinstance(node, ast.List | ast.Tuple) and 1 < len(node.elts) < 6 and not isinstance(above[-1], ast.Subscript):
        found.add("list")
    found |= {"name"} if isinstance(node, ast.Name) else {"slice"} if isinstance(node, ast.Subscript) else set()
    return found | ({"start"} if any(words.defined.get(name) is node for name in words.changing) else set())


def written_as(node: ast.AST, above: tuple[ast.AST, ...]) -> set[str]:
    """Return whether a number that is written out is a "constant" or an "index", or nothing: an axis, a size, a root."""
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return set()
    over = above[-2] if isinstance(above[-1], ast.UnaryOp) else above[-1]
    root_ = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Pow) and node.value == 0.5
    axis_ = isinstance(above[-1], ast.keyword) or (type(node.value) is int and isinstance(over, ast.Call | ast.keyword))
    if root_ or axis_ or any(map(size_of, above[-2:])):
        return set()
    return {"index"} if any(isinstance(each, ast.Subscript) for each in above[-3:]) else {"constant"}


def _edits_at(site: Site, scene: Scene) -> Iterator[Edit]:
    """Yield every row that applies at one site."""
    name = (call(site.node) or ("", {}))[0] if site.node else ""
    now_is = COMPARISONS[type(site.node.ops[0])] if "compare" in site.kinds else ""
    returned = "answer" in site.kinds
    for block in near_miss_table():
        base = INNER if block.kind == "value" and not returned else 0
        for parts in _ways(block, site, scene):
            held = parts(site.node)
            for row in block.rows:
                text = row.text.replace("{name}", name).replace("{now}", now_is)
                says = row.says.replace("{now}", RELATIONS.get(now_is, ""))
                for new, said, hole, more in _each(text, says, site, held, scene):
                    try:
                        same_call = text.startswith(("along", "other"))  # X is then what is inside, not the answer
                        sentence = _in_words(said, held, site, scene.words, name, whole=not same_call)
                    except KeyError:
                        continue

                    def change(now: Any, new=new, parts=parts, hole=hole) -> Any:
                        return made(new, **parts(now), **hole)

                    same = row.says if block.kind == "list" else said  # for a mistake in several forms
                    kind = f"{site.kinds & {'argument'}} {same}"
                    yield Edit(site.path, change, sentence, kind, base + row.cost + more, row.line)


def _ways(block: Rows, site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield a function that gives the parts of a node, for each way in which a block applies to it."""
    node = site.node  # None where an argument is changed before anything is computed
    if node and block.patterns:
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return  # -1 is a number, and mostly an axis
        for pattern in block.patterns:
            held = match(pattern, node, scene.words)
            kinds = [each.split() for each in block.words if block.kind != "do"]
            if held is not None and all(kind in _tags(_value(held[part], scene)) for part, kind in kinds):
                yield lambda now, pattern=pattern: (match(pattern, now, scene.words) or {}) | {"Y": now}
                return
    elif node and block.kind in ("call", "axis", "all"):
        of_all = axis(node) is None and isinstance(node, ast.Call)
        if (call(node) or ("", {}))[0] in block.words and (block.kind == "call" or of_all == (block.kind == "all")):
            yield _of_call
    elif block.kind in site.kinds and set(block.words) <= site.tags:
        yield from WAYS[block.kind](site, scene) if block.kind in WAYS else [lambda now: {"X": now}]


def _value(node: ast.AST, scene: Scene) -> Any:
    return next((scene.values.get(path) for path, each, _ in expressions(scene.tree) if each is node), None)


def _of_call(now: Any) -> dict[str, Any]:
    return (call(now) or ("", {}))[1] | {"along": partial(_along, now), "other": partial(_other, now)}


def _along(now: ast.Call, dim: ast.expr, keepdim: ast.expr | None = None, of: ast.expr | None = None) -> ast.Call:
    """Make the same call along another axis or, for None, of all entries, and maybe of another tensor."""
    own, to = axis(now), ast.literal_eval(dim)
    args = [each for each in now.args if own is None or ast.unparse(each) != str(own)]
    dropped = {"dim", "dims"} | ({"keepdim"} if own is not None and to is None else set())
    kept = [each for each in now.keywords if each.arg not in dropped]
    if to is not None:
        kept.append(ast.keyword("dims" if operation(now)[0] in ("flip", "roll") else "dim", dim))
    if keepdim is not None and ast.literal_eval(keepdim):
        kept.append(ast.keyword("keepdim", keepdim))
    if of is None:
        return ast.Call(now.func, args, kept)
    return ast.Call(ast.Attribute(of, operation(now)[0], ast.Load()), args[from_module(now) :], kept)


def _other(now: ast.Call, name: ast.Constant) -> ast.expr:
    """Make a call of another function of the same tensor, along the same axis."""
    inner, dim, other = call(now)[1]["X"], axis(now), name.value  # type: ignore[index]  # it is a call: the site's
    if root(now.func) == "math":
        return made(f"math.{other}(X)", X=inner)
    if other in ("exp", "sigmoid", "erf", "relu", "square", "abs", "neg", "expm1"):
        return made(f"X.{other}()", X=inner)
    options = [each for each in now.keywords if each.arg in ("keepdim", "descending")]
    if dim is None:
        rest = now.args[1:] if from_module(now) else now.args
        return ast.Call(ast.Attribute(inner, other, ast.Load()), rest, options)
    new = ast.Call(ast.Attribute(inner, other, ast.Load()), [], [ast.keyword("dim", ast.Constant(dim)), *options])
    return ast.Attribute(new, "values", ast.Load()) if other in ("median", "cummax", "cummin") else new


def _slices(site: Site, _: Scene) -> Iterator[Parts]:
    for at, each in enumerate(_indices(site.node)):
        if isinstance(each, ast.Slice) and (each.lower or each.upper):
            yield lambda now, at=at: {"X": now.value, "R": _indices(now)[at], "part": partial(_part, now, at)}


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _part(now: ast.Subscript, at: int, text: ast.Constant) -> ast.Subscript:
    parts = _indices(now)
    parts[at] = template(f"x[{text.value}]").slice
    return ast.Subscript(now.value, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())


def _picked(now: ast.List | ast.Tuple, *order: ast.Constant) -> ast.expr:
    return type(now)([now.elts[each.value] for each in order], ast.Load())


def _carried(site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield the parts of a loop for each variable that it carries from round to round."""
    nodes = [node for node in ast.walk(site.node) if isinstance(node, ast.Name)]
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    stored = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    for name in sorted(stored & read & scene.words.defined.keys()):
        if not name.startswith(BEFORE):
            held = {"N": ast.Name(name, ast.Load()), "S": scene.words.defined[name]}
            yield lambda now, held=held: held | {"I": now.target, "R": now.iter, "BODY": now.body}


def _shifts(site: Site, _: Scene) -> Iterator[Parts]:
    """Yield each two parts of a statement that lie one place apart along an axis."""
    found = [node for node in ast.walk(site.node) if isinstance(node, ast.Subscript)]
    for late, early in itertools.permutations(found, 2):
        one, other = ([ast.unparse(part) for part in _indices(each)] for each in (late, early))
        at = one.index("1:") if "1:" in one else None
        if at is not None and other == [":-1" if k == at else part for k, part in enumerate(one)]:
            yield lambda now, late=late, early=early, at=at: {
                "X": early.value,
                "shifted": partial(_shifted, now, late, early, at),
            }


def _shifted(now: ast.stmt, late: ast.Subscript, early: ast.Subscript, at: int, *parts: ast.Constant) -> ast.stmt:
    """Make a statement with two other parts, the second of what is done to it first."""
    new, old, *done = [each.value for each in parts]
    if done and isinstance(early.ctx, ast.Store):
        raise ValueError
    cuts = [ast.unparse(_part(each, at, ast.Constant(part))) for each, part in ((late, new), (early, old))]
    if done:
        whole = ast.unparse(early.value)
        cuts[1] = f"{whole}.{done[0].replace('AT', str(at))}{cuts[1].removeprefix(whole)}"
    text = ast.unparse(now).replace(ast.unparse(late), "\0late").replace(ast.unparse(early), "\0early")
    return ast.parse(text.replace("\0late", cuts[0]).replace("\0early", cuts[1])).body[0]


def _two(_: Site, scene: Scene, *, alike: bool = False) -> Iterator[Parts]:
    """Yield each two arguments that are both tensors or both none; if ``alike``, tensors of as many axes."""
    for (first, a), (second, b) in itertools.combinations(scene.inputs.items(), 2):
        kind = isinstance(a, Tensor)
        if kind == isinstance(b, Tensor) and (not alike or (kind and a.ndim == b.ndim)):
            yield lambda _, first=first, second=second: {
                "A": ast.Name(first, ast.Load()),
                "B": ast.Name(second, ast.Load()),
            }


def _shared(_: Site, scene: Scene) -> Iterator[Parts]:
    """Yield each axis that arguments share."""
    for places in scene.tied:
        yield lambda _, places=places: {"places": places, "cut": partial(_cut, places)}


def _cut(places: list[tuple[str, int]], part: ast.Constant) -> Any:
    return made("\n".join(f"{name} = {name}[{':, ' * dim}{part.value}]" for name, dim in places))


WAYS: dict[str, Callable[[Site, Scene], Iterator[Parts]]] = {
    "compare": lambda _, __: iter([lambda now: {"A": now.left, "B": now.comparators[0]}]),
    "name": lambda _, __: iter([lambda now: {"A": now}]),
    "list": lambda _, __: iter([lambda now: {"picked": partial(_picked, now)}]),
    "slice": _slices,
    "argument": lambda site, _: iter([lambda _: {"X": site.node}]),
    "loop": _carried,
    "shift": _shifts,
    "arguments": _two,
    "tensors": partial(_two, alike=True),
    "shared": _shared,
}


# -- what a row may ask for: what fills it, further words of the sentence, and how much it adds to the cost

Filling = tuple[Any, dict[str, str], float]


def _own_axis(site: Site, *_: Any) -> Iterator[Filling]:
    if (own := axis(site.node)) is not None:
        yield ast.Constant(own), {}, 0


def _each_axis(site: Site, *_: Any) -> Iterator[Filling]:
    for dim in range(site.value.ndim if isinstance(site.value, Tensor) else 0):
        yield ast.Constant(dim), {"along": along("its", dim, site.value.ndim)}, 0


def _other_axes(site: Site, *_: Any) -> Iterator[Filling]:
    own = axis(site.node)
    for dim, where in AXES.items():
        if dim != own:
            yield ast.Constant(dim), {"axis": where, "own": AXES.get(own, "other")}, 0 if dim >= 0 else 0.05


def _sizes(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    for size, said in scene.sizes:
        if site.node is None or ast.unparse(site.node) != size:
            yield template(size), {"size": said}, 0


def _arguments(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    dtype = site.value.dtype if isinstance(site.value, Tensor) else torch.float64
    for name in scene.words.parameters:
        if isinstance(given := scene.variables.get(name), Tensor) and given.dtype == dtype:
            yield ast.Name(BEFORE + name if BEFORE + name in scene.variables else name, ast.Load()), {"P": name}, 0


def _small_numbers(*_: Any) -> Iterator[Filling]:
    for number in SMALL:
        yield ast.Constant(number), {"C": str(number)}, 0


def _other_comparisons(site: Site, *_: Any) -> Iterator[Filling]:
    for kind, operator in COMPARISONS.items():
        if not isinstance(site.node.ops[0], kind):
            yield operator, {"op": RELATIONS[operator]}, 0


def _other_variables(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    """Yield each variable of the same kind."""
    name, words = site.node.id, scene.words
    own, said = scene.variables.get(name), words.noun(site.node)
    for other, value in scene.variables.items():
        tensors = isinstance(own, Tensor) and isinstance(value, Tensor)
        numbers = isinstance(own, int | float) and isinstance(value, int | float) and not isinstance(value, bool)
        alike = tensors and (own.ndim, own.dtype) == (value.ndim, value.dtype)
        if other == name or not (alike or numbers):
            continue
        old = other.startswith(BEFORE)
        near = old or (alike and own.shape == value.shape)
        more = FARTHER if not near else FAR if other not in words.parameters and not old else 0
        noun = words.noun(ast.Name(other))
        yield ast.Name(other, ast.Load()), {"other": noun if noun != said else "another value", "whose": said}, more


def _other_tensors(_: Site, held: dict[str, Any], scene: Scene) -> Iterator[Filling]:
    """Yield each tensor of real numbers, where a variable's mean, or the like, is taken."""
    for other, value in scene.variables.items() if isinstance(held["X"], ast.Name) else ():
        if other != held["X"].id and isinstance(value, Tensor) and value.is_floating_point():
            yield ast.Name(other, ast.Load()), {"other": scene.words.noun(ast.Name(other))}, 0


def _masks(_: Site, held: dict[str, Any], scene: Scene) -> Iterator[Filling]:
    """Yield the conditions that chose what a value is made of, looking one variable back."""
    for each in ast.walk(held["X"]):
        made_of = scene.words.defined.get(each.id, each) if isinstance(each, ast.Name) else each
        for part in _indices(made_of) if isinstance(made_of, ast.Subscript) else ():
            if "bool" in _tags(_value(part, scene)):
                yield part, {}, 0


def _other_parts(_: Site, held: dict[str, Any], __: Scene) -> Iterator[Filling]:
    text = ast.unparse(held["R"])
    for other, taken in PARTS.items():
        if other != text:
            words = {"taken": taken, "due": PARTS.get(text, "another part")}
            yield ast.Constant(other), words, 0 if other == ":" else FARTHER


def _steps(_: Site, __: Any, scene: Scene) -> Iterator[Filling]:
    for name in scene.words.defined:
        if not name.startswith(BEFORE):
            yield ast.Name(name, ast.Load()), {"step": scene.words.noun(ast.Name(name, ast.Load()))}, 0


def _order(letter: str) -> Callable[[Site, Any, Scene], Iterator[Filling]]:
    """Return what yields the entries of a list exchanged (X), one twice (Y), all turned on (Z), one left out (L)."""

    def orders(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
        said = [scene.words.noun(each) for each in site.node.elts]
        n = len(said)
        turned = [[1, 2, 0], [2, 0, 1]] if (letter, n) == ("Z", 3) else []
        found = [(order, 0, 0) for order in turned]
        for i, j in itertools.permutations(range(n), 2):
            if letter == "X" and i < j:
                found.append(([{i: j, j: i}.get(k, k) for k in range(n)], i, j))
            if letter == "Y":
                found.append(([i if k == j else k for k in range(n)], i, j))
        found += [([k for k in range(n) if k != i], i, i) for i in range(n) if letter == "L"]
        for order, i, j in found:
            yield ", ".join(map(str, order)), {"one": said[i], "two": said[j]}, 0

    return orders


EACH: dict[str, Callable[..., Iterator[Filling]]] = {
    "D": _own_axis,  # a call's own axis
    "E": _each_axis,  # each axis of what is there
    "K": _other_axes,  # each axis but a call's own
    "S": _sizes,  # each size
    "P": _arguments,  # each argument of the same dtype
    "C": _small_numbers,  # numbers that people type in
    "op": _other_comparisons,
    "V": _other_variables,
    "T": _other_tensors,
    "M": _masks,
    "R": _other_parts,
    "W": _steps,  # each variable on the way
    **{letter: _order(letter) for letter in "XYZL"},
}


def _each(
    text: str, says: str, site: Site, held: dict[str, Any], scene: Scene
) -> Iterator[tuple[str, str, dict[str, Any], float]]:
    """Yield a row's text, sentence, node and further cost, for each that it asks for."""
    text = f"X = {text}" if "argument" in site.kinds else text
    if "{new}" in says:
        try:
            number = eval(text, {"X": site.node.value})  # a row's own text, of a number
        except ZeroDivisionError:
            return
        number = int(number) if type(site.node.value) is int and number == int(number) else number
        if number != site.node.value:
            yield repr(number), says.replace("{new}", f"{number:g}"), {}, 0
    elif "places" in held:
        yield f"cut({text!r})", _of_places(says, held["places"], scene.inputs), {}, 0
    elif asked := re.search(r"\{(\w+)\}", text):
        for new, words, more in EACH[asked[1]](site, held, scene):
            said = says
            for name, word in words.items():
                said = said.replace(f"{{{name}}}", word)
            hole = "HOLE" if isinstance(new, ast.AST) else new
            yield text.replace(asked[0], hole), said, {"HOLE": new} if hole == "HOLE" else {}, more
    else:
        yield text, says, {}, 0


def _of_places(says: str, places: list[tuple[str, int]], inputs: dict[str, Any]) -> str:
    """Say what is cut: entries, rows or columns of all arguments that share an axis."""
    (name, dim), *_ = places
    last = inputs[name].ndim - 1
    shared = " and ".join(dict.fromkeys(name for name, _ in places))
    kinds = ("entry", "entries") if not last else ("row", "rows") if not dim else ("column", "columns")
    if dim not in (0, last):
        kinds, shared = ("place", "places"), f"{shared} along the {ORDINALS[dim]} axis"
    return says.format(one=f"{kinds[0]} of {shared}", many=f"{kinds[1]} of {shared}")


def _in_words(says: str, parts: dict[str, Any], site: Site, words: Words, name: str, *, whole: bool) -> str:
    """Put the parts that a sentence names into words. Raises KeyError for a part that is not there."""

    def noun(found: re.Match) -> str:
        part = parts[found[1]]
        if found[1] in FUNCTION_LETTERS:
            return OPERATIONS[operation(part)[0]]
        if site.path == SLOT:
            return part.id  # an argument, before anything has changed it
        return "the answer" if whole and found[1] == "X" and "answer" in site.kinds else words.noun(part)

    return re.sub(r"\{([A-Zfg])\}", noun, says).replace("{word}", OPERATIONS.get(name) or name)
