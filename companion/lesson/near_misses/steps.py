"""Near misses that no row of the table can say: another axis, another variable, another part, another order of steps."""

import ast
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.table import REDUCTIONS, Scene, Site, axis, before, call, near_miss_table
from companion.lesson.near_misses.trees import (
    BEFORE,
    Edit,
    Path,
    all_statements,
    edited,
    expressions,
    from_module,
    made,
    remembers,
    root,
)
from companion.lesson.near_misses.words import OPERATIONS, ORDINALS

Group = tuple[tuple[Edit, ...], float]
KEEPING = {"softmax", "log_softmax", "cumsum", "cummin", "cummax", "cumprod", "sort", "argsort", "flip", "normalize",
           "stack", "cat", "gather", "scatter", "roll", "unsqueeze"}  # fmt: skip
ALONG = KEEPING | REDUCTIONS | {"argmin", "argmax", "diff", "min", "max", "median"}
VERBS = {"stack": "stacked", "cat": "joined", "gather": "picked"}
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
PARTS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip
LIKELY, MANY = 1.1, 200  # edits that are tried in one place of several
SETTLED = 30  # steps, after which little changes
OTHER = "another_"  # a variable made in another form


def expression_edits(site: Site, scene: Scene) -> Iterator[Edit]:
    """Yield what no row says of one expression."""
    for steps in (axes, instead, others, another_mean, slices, lists):
        for change, says, kind, cost in steps(site, scene):
            yield Edit(site.path, change, says, kind, cost)


def instead(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield one function for another, by the table's block of that name: ``sum: mean amax`` is a row for each."""
    name, parts = call(site.node) or ("", {})
    if not isinstance(site.node, ast.Call) or not isinstance(site.node.func, ast.Attribute):
        return
    said, word = scene.words.noun(parts["X"]) if parts else "", OPERATIONS.get(name, name)
    for row in next(block for block in near_miss_table() if block.kind == "instead").rows:
        old, new = row.text.split(" for ")[::-1]
        if old == name:
            says = f"the {OPERATIONS.get(new, new)} of {said} is taken where its {word} belongs"
            yield _renamed(new), row.says.replace("{X}", said) or says, row.text, row.cost


def _renamed(other: str) -> Callable[[ast.Call], ast.AST]:
    def change(now: ast.Call) -> ast.AST:
        inner, dim = call(now)[1]["X"], axis(now)  # type: ignore[index]  # it is a call: the site's
        if root(now.func) == "math":
            return made(f"math.{other}(X)", X=inner)
        options = [each for each in now.keywords if each.arg in ("keepdim", "descending")]
        if other in ("exp", "sigmoid", "erf", "relu", "square", "abs", "neg", "expm1"):
            return made(f"X.{other}()", X=inner)
        if dim is None:
            rest = now.args[1:] if from_module(now) else now.args
            return ast.Call(ast.Attribute(inner, other, ast.Load()), rest, options)
        new = ast.Call(ast.Attribute(inner, other, ast.Load()), [], [ast.keyword("dim", ast.Constant(dim)), *options])
        return ast.Attribute(new, "values", ast.Load()) if other in ("median", "cummax", "cummin") else new

    return change


def axes(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield another axis for that of a call, all axes, or one where all are due."""
    node = site.node
    name, parts = call(node) or ("", {})
    if not isinstance(node, ast.Call) or name not in ALONG or not isinstance(node.func, ast.Attribute):
        return
    said, word, own = scene.words.noun(parts["X"]), OPERATIONS.get(name, name), axis(node)

    def along(now: ast.Call, dim: int | None, *, keepdim: bool = False) -> ast.Call:
        args = [each for each in now.args if own is None or ast.unparse(each) != str(own)]
        kept = [
            each
            for each in now.keywords
            if each.arg not in ("dim", "dims") and (own is None or dim is not None or each.arg != "keepdim")
        ]
        axis_ = [] if dim is None else [ast.keyword("dims" if name in ("flip", "roll") else "dim", ast.Constant(dim))]
        return ast.Call(
            now.func, args, [*kept, *axis_, *([ast.keyword("keepdim", ast.Constant(True))] if keepdim else [])]
        )

    if own is None:
        if name in REDUCTIONS | {"argmax", "argmin"}:
            for dim, keepdim in itertools.product((0, 1), (False, True)):
                change = lambda now, dim=dim, keepdim=keepdim: along(now, dim, keepdim=keepdim)  # noqa: E731
                yield change, f"the {word} of {said} is taken along one axis, not of all entries", "axis", 1.1
        return
    for dim, where in AXES.items():
        if dim != own:
            if name in VERBS:
                says = f"{said} is {VERBS[name]} along the wrong axis, the {where}"
            else:
                says = (
                    f"the {word} of {said} runs along the {where} axis; it belongs along the {AXES.get(own, 'other')}"
                )
            yield lambda now, dim=dim: along(now, dim), says, f"axis of {name}", 1 if dim >= 0 else 1.05
    if name not in KEEPING:
        says = f"the {word} of {said} runs over all entries, not along one axis"
        yield lambda now: along(now, None), says, f"axis of {name}", 1.05


def others(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield another variable of the same kind, the same before it was changed, a step before what it is made of."""
    node, words = site.node, scene.words
    if not isinstance(node, ast.Name):
        return
    own, said = scene.variables.get(node.id), words.noun(node)
    for part in words.inside(node.id):
        says = f"{words.noun(part)} is used where {said} belongs"
        yield lambda _, part=part: part, says, f"inside of {type(part).__name__}", 1.2
    made_of = words.made_of_what_changes(node.id)
    if made_of is not None:
        says = f"{said} is computed anew after what it is made of has changed; it is the one from before"
        yield lambda _: made_of, says, "computed anew", 1
    for other, value in scene.variables.items():
        if other == node.id or isinstance(value, bool):
            continue
        alike = (
            isinstance(own, Tensor)
            and isinstance(value, Tensor)
            and own.ndim == value.ndim
            and own.dtype == value.dtype
        )
        if alike or (isinstance(own, int | float) and isinstance(value, int | float)):
            old = other.startswith(BEFORE)
            near = old or (alike and own.shape == value.shape)
            far = 0.12 * (other not in words.parameters and not old)
            noun = words.noun(ast.Name(other))
            says = f"{noun if noun != said else 'another value'} is used where {said} belongs"
            yield (
                lambda _, other=other: ast.Name(other, ast.Load()),
                says,
                f"{other} for {node.id}",
                1 + far if near else 1.2,
            )


def another_mean(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield the mean, sum, variance or length of another variable, of all of it or row by row; a mean of chosen ones over
    the number of all.
    """
    name, parts = call(site.node) or ("", {})
    if name == "mean":
        for mask in _masks(parts["X"], scene):
            change = lambda now, mask=mask: made("X * M.double().mean()", X=now, M=mask)  # noqa: E731
            yield (
                change,
                "the mean divides by the number of all, not by the number of those that are chosen",
                "over all",
                0.95,
            )
    if name not in ("mean", "sum", "var", "std", "norm") or not isinstance(parts["X"], ast.Name):
        return
    own, word = parts["X"], OPERATIONS.get(name, name)
    options = "".join(
        f", {each.arg}={ast.unparse(each.value)}"
        for each in site.node.keywords
        if each.arg in ("unbiased", "correction")
    )
    for other, value in scene.variables.items():
        if other != own.id and isinstance(value, Tensor) and value.is_floating_point():
            noun, said = scene.words.noun(ast.Name(other)), scene.words.noun(own)
            for text, of in (
                (f"{other}.{name}({options[2:]})", ""),
                (f"{other}.{name}(dim=-1, keepdim=True{options})", "each row of "),
            ):
                says = f"the {word} of {of}{noun} is taken where that of {said} belongs"
                yield lambda _, text=text: made(text), says, "another's", 1.2


def _masks(node: ast.AST, scene: Scene) -> Iterator[ast.expr]:
    """Yield the conditions that chose what a value is made of, looking one variable back."""
    for each in ast.walk(node):
        made_of = scene.words.defined.get(each.id, each) if isinstance(each, ast.Name) else each
        for part in _parts(made_of.slice) if isinstance(made_of, ast.Subscript) else ():
            value = scene.values.get(id(part))
            if isinstance(value, Tensor) and value.dtype == torch.bool:
                yield part


def slices(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield another part for a part."""
    node = site.node
    for at, part in enumerate(_parts(node.slice)) if isinstance(node, ast.Subscript) else ():
        text = ast.unparse(part)
        for other, taken in PARTS.items() if isinstance(part, ast.Slice) and (part.lower or part.upper) else ():
            if other != text:
                says = (
                    f"{taken} of {scene.words.noun(node.value)} is used where {PARTS.get(text, 'another part')} is due"
                )
                change = lambda now, at=at, other=other: _with_part(now, at, other)  # noqa: E731
                yield change, says, f"[{text}] for [{other}]", 1 if other == ":" else 1.2


def _parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _with_part(now: ast.Subscript, at: int, text: str) -> ast.Subscript:
    parts = _parts(now.slice)
    parts[at] = ast.parse(f"x[{text}]", mode="eval").body.slice  # type: ignore[attr-defined]
    return ast.Subscript(now.value, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())


def lists(site: Site, scene: Scene) -> Iterator[tuple]:
    """Yield the parts of a list exchanged, left out, there twice."""
    node, n = site.node, len(getattr(site.node, "elts", ()))
    if not isinstance(node, ast.List | ast.Tuple) or not 1 < n < 6 or isinstance(site.above[-1], ast.Subscript):
        return
    said = [scene.words.noun(each) for each in node.elts]

    def picked(order: list[int]) -> Callable[[Any], ast.AST]:
        return lambda now: type(now)([now.elts[i] for i in order], ast.Load())

    for i, j in itertools.combinations(range(n), 2):
        order = list(range(n))
        order[i], order[j] = j, i
        yield picked(order), f"the order is wrong: {said[i]} and {said[j]} are exchanged", "order", 0.95
        for a, b in ((i, j), (j, i)):
            yield (
                picked([a if k == b else k for k in range(n)]),
                f"{said[a]} stands where {said[b]} belongs",
                "order",
                1.2,
            )
    for order in ([1, 2, 0], [2, 0, 1]) if n == 3 else ():
        yield picked(order), "the parts are put together in the wrong order", "order", 0.95
    for i in range(n):
        yield (
            picked([k for k in range(n) if k != i]),
            f"{said[i]} is missing from what is put together",
            "part left out",
            1.2,
        )


def argument_steps(inputs: dict[str, Any], scene: Scene) -> Iterator[Edit]:
    """Yield two arguments exchanged, one used for another, and a part of what several share."""
    names = list(inputs)
    for first, second in itertools.permutations(names, 2):
        a, b = inputs[first], inputs[second]
        if names.index(first) < names.index(second) and isinstance(a, Tensor) == isinstance(b, Tensor):
            yield before([(first, second), (second, first)], f"{first} and {second} are exchanged", 0.9)
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim == b.ndim:
            yield before([(first, second)], f"{second} is used in place of {first}", 1.15)
    for places in scene.tied:
        (name, dim), last = places[0], inputs[places[0][0]].ndim - 1
        kinds = (
            ("entry", "entries")
            if not last
            else ("row", "rows")
            if not dim
            else ("column", "columns")
            if dim == last
            else ("", "")
        )
        shared = " and ".join(dict.fromkeys(name for name, _ in places))
        one, many = (
            f"{kind} of {shared}" if kind else f"place of {shared} along the {ORDINALS[dim]} axis" for kind in kinds
        )
        for part, says, cost in (
            (":1", f"only the first {one} counts", 1.1), ("-1:", f"only the last {one} counts", 1.1),
            (":-1", f"the last {one} is left out", 1.35), ("1:", f"the first {one} is left out", 1.35),
            (":2", f"only two of the {many} count", 1.8), ("::2", f"only every other {one} counts", 1.8),
        ):  # fmt: skip
            cuts: dict[str, str] = {}
            for name, dim in places:
                cuts[name] = f"{cuts.get(name, 'X')}[{':, ' * dim}{part}]"
            yield before(list(cuts.items()), says, cost)


def statement_edits(tree: ast.FunctionDef, scene: Scene) -> Iterator[Edit]:
    """Yield steps left out, done twice, exchanged, and steps that see each other's results."""
    words = scene.words
    noun = lambda name: words.noun(ast.Name(name, ast.Load()))  # noqa: E731
    for path, line, body in all_statements(tree):
        changed = _changes(line)
        after = [other for other in body[body.index(line) + 1 :] if not remembers(other)][:1]
        if after and not remembers(line) and changed and (later := _changes(after[0])):
            here, there = body.index(line), body.index(after[0])

            def swapped(now: Any, here=here, there=there) -> Any:
                new = list(now.body)
                new[here], new[there] = new[there], new[here]
                return _with_body(now, new)

            says = f"{noun(later)} is changed too early, before {noun(changed)}"
            yield Edit(
                path[:-1],
                swapped,
                says if noun(later) != noun(changed) else "two steps are in the wrong order",
                "exchanged",
                1.05,
            )
        if isinstance(line, ast.For) and isinstance(line.target, ast.Name):
            for index in {
                ast.unparse(n.value)
                for n in ast.walk(line)
                if isinstance(n, ast.Subscript) and ast.unparse(n.slice) == line.target.id
            }:
                for name in sorted({_changes(each) for each in line.body} & words.changing):
                    led = lambda now, name=name, index=index: _with_body(  # noqa: E731
                        now, [*ast.parse(f"{name} = {index}[{now.target.id} - 1]").body, *now.body]
                    )
                    yield Edit(
                        path,
                        led,
                        f"every round begins from what stands before it in {index}, not from {noun(name)}",
                        "led",
                        1,
                    )
        if isinstance(line, ast.For) and (twice_ := _first_twice(tree, path, line, scene)):
            yield twice_
        if isinstance(line, ast.For):
            changing = sorted({_changes(each) for each in line.body} & words.changing)
            for old, new in itertools.permutations(changing, 2):
                for at, each in enumerate(line.body):
                    if _changes(each) == old and isinstance(each, ast.Assign):

                        def renamed(now, old=old, new=new):
                            return _Renamed(old, new).visit(ast.parse(ast.unparse(now)).body[0])

                        yield Edit(
                            (*path, ("body", at)),
                            renamed,
                            f"{noun(new)} is changed where {noun(old)} belongs",
                            "another changed",
                            1,
                        )
        if isinstance(line, ast.Assign | ast.Return) and line.value is not None:
            yield from _lagged(path, line, scene)
    last: Path = (("body", len(tree.body) - 1), ("value", None))
    for name in words.defined:
        if not name.startswith(BEFORE):
            change = lambda _, name=name: ast.Name(name, ast.Load())  # noqa: E731
            yield Edit(last, change, f"a step on the way is returned: {noun(name)}", "step returned", 1.2)


def _first_twice(tree: ast.FunctionDef, path: Path, loop: ast.For, scene: Scene) -> Edit | None:
    """Return a loop that starts with the first, which is in the list already that the loop extends."""
    over = loop.iter
    lists = [name for name, start in scene.words.defined.items() if isinstance(start, ast.List) and start.elts]
    if not (isinstance(over, ast.Subscript) and ast.unparse(over.slice) == "1:" and lists):
        return None
    says = f"the first of {scene.words.noun(over.value)} comes in twice: as the start, and in the loop"
    empty = [*ast.parse("; ".join(f"{name}.clear()" for name in lists)).body]
    again = lambda now: ast.If(ast.Constant(True), [*empty, ast.For(now.target, now.iter.value, now.body, [])], [])  # noqa: E731
    return Edit(path, again, says, "first twice", 1)


def _with_body(now: Any, body: list[ast.stmt]) -> Any:
    return type(now)(**{field: getattr(now, field, None) for field in now._fields} | {"body": body})


class _Renamed(ast.NodeTransformer):
    """A variable by another name."""

    def __init__(self, old: str, new: str):
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.new, node.ctx), node) if node.id == self.old else node


def _changes(line: ast.stmt) -> str:
    """Return the variable that a statement changes: what it assigns to, adds to, calls a method of, or does so if."""
    if isinstance(line, ast.If):
        return next(filter(None, (_changes(each) for each in line.body if not remembers(each))), "")
    target: Any = None
    if isinstance(line, ast.Assign):
        target = line.targets[0]
    elif isinstance(line, ast.AugAssign):
        target = line.target
    elif isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and isinstance(line.value.func, ast.Attribute):
        target = line.value.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _lagged(path: Path, line: Any, scene: Scene) -> Iterator[Edit]:
    """Yield, of two parts that lie one place apart, another distance, the other way, round the end, all before."""
    found = [node for node in ast.walk(line) if isinstance(node, ast.Subscript)]
    for late, early in itertools.permutations(found, 2):
        one, other = ([ast.unparse(part) for part in _parts(each.slice)] for each in (late, early))
        at = next((at for at, part in enumerate(one) if part == "1:"), None)
        if at is None or other != [":-1" if k == at else part for k, part in enumerate(one)]:
            continue

        def cut(base: ast.Subscript, part: str, one=one, at=at, then: str = "") -> str:
            return f"{ast.unparse(base.value)}{then}[{', '.join([*one[:at], part, *one[at + 1 :]])}]"

        said = scene.words.noun(early.value)
        for new, old, says, cost in (
            (cut(late, "2:"), cut(early, ":-2"), f"{said} is shifted by two places, not by one", 0.9),
            (cut(late, ":-1"), cut(early, "1:"), f"{said} is shifted the wrong way", 0.9),
            (cut(late, ":"), cut(early, ":"), f"{said} is not shifted: each place meets itself, not its neighbour", 0.9),
            (cut(late, ":"), cut(early, ":", then=f".roll(1, {at})"), f"{said} is shifted round the end: what leaves there comes in at the start", 0.9),
            (cut(late, "1:"), cut(early, ":-1", then=f".cumsum({at})"), f"all that comes before is taken of {said}, not one place alone", 1),
        ):  # fmt: skip
            if "cumsum" in old and isinstance(early.ctx, ast.Store):
                continue
            text = ast.unparse(line).replace(ast.unparse(late), "\0late").replace(ast.unparse(early), "\0early")
            text = text.replace("\0late", new).replace("\0early", old)
            yield Edit(path, lambda _, text=text: ast.parse(text).body[0], says, "shift", cost)


def groups(tree: ast.FunctionDef, edits: list[Edit], scene: Scene) -> Iterator[Group]:
    """Yield edits to be made together, and what this costs: of one kind everywhere, or everywhere but once; two numbers
    exchanged; and likely ones in one place of several.
    """
    kinds: dict[str, dict[Path, Edit]] = {}
    for edit in edits:
        other_axis = edit.says.partition(" runs along ")[2]  # is one mistake, whatever runs along it
        for kind in (edit.kind, *([other_axis] if other_axis else [])):
            kinds.setdefault(kind, {}).setdefault(edit.path, edit)
    for _, by_path in sorted(kinds.items()):
        every = tuple(by_path.values())
        if 2 <= len(every) <= 5:
            cost = max(edit.cost for edit in every) + 0.1
            yield every, cost
            if len(every) > 2:
                yield every[1:], cost + 0.1
    yield from _constants(tree)
    yield from _in_one_place(tree, edits, scene)


def _together(texts: list[tuple[Path, str]], says: str) -> Group:
    return tuple(Edit(path, lambda _, text=text: made(text), says, "together") for path, text in texts), 1.0


def _constants(tree: ast.FunctionDef) -> Iterator[Group]:
    places: dict[int | float, list[Path]] = {}
    for path, node, above in expressions(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1, -1):
            held = [type(each) for each in above[-2:]]
            if ast.keyword not in held and ast.Call not in held[-1:] and ast.Subscript not in held:
                places.setdefault(node.value, []).append(path)
    for one, other in itertools.combinations(places, 2):
        if type(one) is type(other):
            both = [(path, repr(other)) for path in places[one]] + [(path, repr(one)) for path in places[other]]
            yield _together(both, f"{one:g} and {other:g} are exchanged")
    shares = {value: paths for value, paths in places.items() if type(value) is float and 0.01 < value < 1}
    for chosen in [[value] for value in shares] + ([[*shares]] if len(shares) > 1 else []):
        turned = [(path, f"(1 - {value})") for value in chosen for path in shares[value]]
        names = " and ".join(f"{value:g}" for value in chosen)
        yield _together(turned, f"1 minus the number stands where {names} belongs, and the other way round")


def _in_one_place(tree: ast.FunctionDef, edits: list[Edit], scene: Scene) -> Iterator[Group]:
    """Yield likely edits of what a variable is, made in one alone of the places where it is used; in a loop, where it may
    change before it is used, it is made in both forms at once.
    """
    places = [(path, node.id) for path, node, _ in expressions(tree) if isinstance(node, ast.Name)]
    for path, line, _ in all_statements(tree):
        if not (isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)) or remembers(line):
            continue
        name, loop = line.targets[0].id, len(path) > 1
        own = {node.id for node in ast.walk(line.value) if isinstance(node, ast.Name)}
        uses = [use for use, used in places if used == name and use[: len(path)] != path]
        inside = [
            edit
            for edit in edits
            if edit.path[: len(path)] == path and len(edit.path) > len(path) and edit.cost <= LIKELY
        ]
        if len(uses) < 2 or len(uses) * len(inside) > MANY or name in own | scene.words.changing:
            continue
        if not loop and scene.words.changing & own:
            continue  # it may be something else by the time it is used
        for use, edit in itertools.product(uses, inside):
            here = dataclasses.replace(edit, path=edit.path[len(path) :])
            says = f"in one of the places where it is used, {edit.says}"
            if loop:

                def twice(now: ast.Assign, here=here) -> ast.If:
                    aside = ast.Assign([ast.Name(OTHER, ast.Store())], edited(now, (here,)).value)
                    return ast.If(ast.Constant(True), [aside, now], [])

                both = (
                    Edit(path, twice, says, "in one place"),
                    Edit(use, lambda _: ast.Name(OTHER, ast.Load()), says, "in one place"),
                )
                yield both, 1.2
            else:
                other = edited(line, (here,)).value
                yield (Edit(use, lambda _, other=other: other, says, "in one place"),), 1.2


def of_the_whole(
    answer: Callable[..., Tensor], draws: list[dict[str, Any]]
) -> Iterator[tuple[Callable[..., Tensor], str, float]]:
    """Yield what is made of the whole answer: the parts of an argument replaced in turn, the step done twice."""
    names = list(draws[0])
    with torch.no_grad():
        shapes = [tuple(answer(**draw).shape) for draw in draws]
    long = [
        all(
            isinstance(draw[name], Tensor) and draw[name].shape[:1] == shape[:1] != ()
            for draw, shape in zip(draws, shapes, strict=True)
        )
        for name in names
    ]

    def from_the_end(*given: Any) -> Tensor:
        return answer(*(each.flip(0) if turned else each for each, turned in zip(given, long, strict=True))).flip(0)

    if any(long):
        yield from_the_end, "all runs from the end to the start", 1.1
    for at, name in enumerate(names):
        alike = [
            isinstance(draw[name], Tensor) and tuple(draw[name].shape) == shape != ()
            for draw, shape in zip(draws, shapes, strict=True)
        ]
        if not all(alike):
            continue

        def again(*given: Any, at=at) -> Tensor:
            return answer(*given[:at], answer(*given), *given[at + 1 :])

        def to_the_end(*given: Any, at=at) -> Tensor:
            for _ in range(SETTLED):
                given = (*given[:at], answer(*given), *given[at + 1 :])
            return given[at]

        yield again, "this is the answer after two steps, not after one", 1
        yield to_the_end, "the step is done until nothing changes, not once", 1.1
        for dim in range(draws[0][name].ndim):

            def in_turn(*given: Any, at=at, dim=dim) -> Tensor:
                new = given[at].clone()
                for i in range(new.shape[dim]):
                    new.select(dim, i).copy_(answer(*given[:at], new.clone(), *given[at + 1 :]).select(dim, i))
                return new

            parts = "rows" if dim == 0 else f"parts along the {ORDINALS[dim]} axis"
            yield (
                in_turn,
                f"the {parts} of {name} are replaced one after the other, so that later ones see the new ones",
                1,
            )
