"""Near misses of a loop that counts while a condition holds and keeps the best count: begun again too late or never,
left too early, kept at the wrong moment.
"""

import ast
from collections.abc import Iterator

from companion.lesson.near_misses.trees import BEFORE, Edit, Path
from companion.lesson.near_misses.words import Words


def loops(tree: ast.FunctionDef, words: Words) -> Iterator[Edit]:
    """Edits of the statements of all loops."""
    for path, loop in _loops(tree, ()):
        counts = {
            line.targets[0].id: line.value
            for line in loop.body
            if isinstance(line, ast.Assign)
            and isinstance(line.targets[0], ast.Name)
            and isinstance(line.value, ast.IfExp)
            and line.targets[0].id in _names(line.value.body)
        }
        for index, line in enumerate(loop.body):
            if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
                continue
            name, here = line.targets[0].id, (*path, ("body", index))
            if name in counts:
                yield from _counting(name, counts[name], here)
            elif isinstance(line.value, ast.Call) and words.operation(line.value)[0] in ("max", "min"):
                others = [each for each in line.value.args if not isinstance(each, ast.Name) or each.id != name]
                if len(others) == 1 < len(line.value.args):
                    yield from _keeping(name, others[0], counts, here, words)


def _loops(node: ast.AST, path: Path) -> Iterator[tuple[Path, ast.For]]:
    for index, line in enumerate(node.body):
        if isinstance(line, ast.For):
            here = (*path, ("body", index))
            yield here, line
            yield from _loops(line, here)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _counting(name: str, value: ast.IfExp, here: Path) -> Iterator[Edit]:
    """Of ``count = count + 1 if test else 0``."""
    old = ast.Name(name, ast.Load())
    yield Edit(
        here,
        lambda line: ast.Assign(line.targets, ast.IfExp(value.test, value.body, old)),
        f"{name} is never begun again: where the condition fails it stays as it is",
        "never begun again",
        0.95,
    )
    ends = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), value.test), old])
    yield Edit(
        here,
        lambda line: ast.If(ast.Constant(True), [ast.If(ends, [ast.Break()], []), line], []),
        "only the first stretch is looked at: the loop ends with it, and later ones count, too",
        "left after the first",
        1,
    )
    yield Edit(
        here,
        lambda line: ast.Assign(
            line.targets, ast.IfExp(ast.BoolOp(ast.Or(), [value.test, old]), value.body, value.orelse)
        ),
        f"once begun, {name} goes on where the condition fails",
        "goes on",
        1,
    )


def _keeping(name: str, other: ast.expr, counts: dict[str, ast.IfExp], here: Path, words: Words) -> Iterator[Edit]:
    """Of ``best = max(best, count)``."""
    best = ast.Name(name, ast.Load())
    yield Edit(
        here,
        lambda line: ast.Assign(line.targets, ast.BoolOp(ast.Or(), [other, best])),
        f"the last {words.noun(other)} is kept in {name}; the best of all is due",
        "the last kept",
        0.95,
    )
    if not isinstance(other, ast.Name) or other.id not in counts:
        return
    count = counts[other.id]
    over = ast.Call(ast.Name("max", ast.Load()), [best, ast.Name(BEFORE + other.id, ast.Load())], [])
    yield Edit(
        here,
        lambda line: ast.Assign(line.targets, ast.IfExp(count.test, best, over)),
        f"{name} is set only where a stretch has ended: one that lasts to the end of the loop is left out",
        "set at the end",
        1,
    )
    yield Edit(
        here[:-1],
        lambda loop: _spanning(loop, name, other.id),
        "what lies between the first stretch and the last is counted, too",
        "span",
        1.1,
    )


def _spanning(loop: ast.For, name: str, count: str) -> ast.For:
    """The loop with a count that never stops, kept wherever the condition holds."""
    body = list(loop.body)
    for index, line in enumerate(body):
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            if line.targets[0].id == count and isinstance(line.value, ast.IfExp):
                test, more = line.value.test, line.value.body
                goes_on = ast.BoolOp(ast.Or(), [test, ast.Name(count, ast.Load())])
                body[index] = ast.Assign(line.targets, ast.IfExp(goes_on, more, line.value.orelse))
            elif line.targets[0].id == name:
                kept = ast.IfExp(test, ast.Name(count, ast.Load()), ast.Name(name, ast.Load()))
                body[index] = ast.Assign(line.targets, kept)
    return ast.For(loop.target, loop.iter, body, loop.orelse)
