"""Near misses of tables and bits: which of two is looked up in the other, an inverse, a shift that wraps round or looks
ahead, OR and XOR for AND.
"""

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.call_parts import axis_of, inner
from companion.lesson.near_misses.words import Words


def _whole(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.int64 and value.ndim > 0


def lookups(node: ast.Subscript, values: dict[str, Any], words: Words) -> Iterator[tuple]:
    """Of table[index], both of whole numbers."""
    table, index = node.value, node.slice
    if not (isinstance(table, ast.Name) and isinstance(index, ast.Name)):
        return
    if not all(_whole(values.get(each.id)) for each in (table, index)):
        return
    said, at = words.noun(table), words.noun(index)

    def sides(now: ast.Subscript) -> dict[str, ast.expr]:
        return {"V": now.value, "I": now.slice}

    if table.id != index.id:
        yield (
            "I[V]",
            f"the order is reversed: {at} is read at {said}; {said} is to be read at {at}",
            "order",
            0.95,
            sides,
        )
        yield "V[V]", f"{said} is read at itself; it is to be read at {at}", "read at itself", 1.1, sides
        yield "I[I]", f"{at} is read at itself; {said} is to be read at {at}", "read at itself", 1.1, sides
    yield "V.argsort()[I]", f"the inverse of {said} is applied, which leads back", "inverse", 1, sides
    yield "V[I.argsort()]", f"{said} is read at the inverse of {at}", "inverse", 1.1, sides
    yield "I", f"{said} is not applied: {at} stays as it is", "not applied", 1.1, sides


def shifts(node: ast.Subscript, words: Words) -> Iterator[tuple]:
    """Of cat([start, x])[:n], which is x some places later, with ``start`` in front."""
    joined, part = node.value, node.slice
    if not (isinstance(joined, ast.Call) and words.operation(joined)[0] == "cat" and len(joined.args) == 1):
        return
    parts = joined.args[0]
    if not (isinstance(parts, ast.List) and len(parts.elts) == 2 and isinstance(part, ast.Slice) and not part.lower):
        return
    said = words.noun(parts.elts[1])

    def sides(now: ast.Subscript) -> dict[str, ast.expr]:
        return dict(zip("SX", inner(now.value).elts, strict=True))

    yield (
        "X.roll(len(S), 0)",
        f"the shift of {said} goes round: what leaves at the end comes in at the start",
        "shift",
        0.95,
        sides,
    )
    yield (
        "torch.cat([X[len(S):], S])[:len(X)]",
        f"the shift of {said} goes the wrong way: it looks ahead",
        "shift",
        1,
        sides,
    )
    yield "X", f"{said} is not shifted: each place meets itself", "shift", 1, sides
    for text, what in (("zeros", "0"), ("ones", "1")):
        says = f"{what} stands in front of {said}, where something else belongs"
        yield f"torch.cat([torch.{text}_like(S), X])[:len(X)]", says, "put in front", 1.1, sides


def joined_shifts(node: ast.Call, words: Words) -> Iterator[tuple]:
    """Of cat([start, x[:, :-1]], dim=1), which is x one place later along an axis, with ``start`` in front."""
    found = _joined(node, words)
    if found is None:
        return
    base, axis = found
    said = words.noun(base)

    def cut(part: str, along: int = axis) -> str:
        return f"B[{', '.join([':'] * along + [part])}]"

    def sides(now: ast.Call) -> dict[str, ast.expr]:
        start, late = inner(now).elts
        return {"S": start, "B": late.value}

    wrong = [
        (f"B.roll(1, {axis})", f"the shift of {said} goes round: what leaves at the end comes in at the start", 0.95),
        (f"torch.cat([{cut('1:')}, S], {axis})", f"the shift of {said} goes the wrong way: it looks ahead", 0.95),
        ("B", f"{said} is not shifted: each place meets itself", 1),
        (f"torch.cat([S, S, {cut(':-2')}], {axis})", f"the shift of {said} is two places; it is one", 1),
        (f"torch.cat([{cut(':1')}, {cut(':-1')}], {axis})", f"the first place of {said} stays as it is in front", 1.1),
    ]
    if axis:
        other = f"torch.cat([torch.zeros_like({cut(':1', axis - 1)}), {cut(':-1', axis - 1)}], {axis - 1})"
        wrong.append((other, f"{said} is shifted along the wrong axis", 1.05))
    for text, says, cost in wrong:
        yield text, says, "shift", cost, sides


def _joined(node: ast.Call, words: Words) -> tuple[ast.expr, int] | None:
    """What is shifted, and along which axis."""
    at = axis_of(node) if words.operation(node)[0] == "cat" else None
    parts = inner(node) if at else None
    if not (isinstance(parts, ast.List) and len(parts.elts) == 2 and isinstance(parts.elts[1], ast.Subscript)):
        return None
    index = parts.elts[1].slice
    cuts = [ast.unparse(each) for each in (index.elts if isinstance(index, ast.Tuple) else [index])]
    return (parts.elts[1].value, at[1]) if cuts == [":"] * at[1] + [":-1"] else None


def of_bits(node: ast.BinOp, value: Any, words: Words) -> Iterator[tuple]:
    """Of a * b, the AND of bits, and of a + b - c, which is their XOR if c is twice the AND."""
    if not (_whole(value) and ((value == 0) | (value == 1)).all()):
        return
    within = node.left if isinstance(node.op, ast.Sub) else node
    if not (isinstance(within, ast.BinOp) and isinstance(within.op, ast.Mult | ast.Add)):
        return
    both = f"{words.noun(within.left)} and {words.noun(within.right)}"
    due = "AND" if isinstance(node.op, ast.Mult) else "XOR"

    def sides(now: ast.BinOp) -> dict[str, ast.expr]:
        held = now.left if isinstance(now.op, ast.Sub) else now
        return {"L": held.left, "R": held.right}

    for mark, name in (("&", "AND"), ("|", "OR"), ("^", "XOR")):
        if name != due:
            yield f"(L {mark} R)", f"the {name} of {both} is taken; their {due} is due", f"{name} for {due}", 1, sides
