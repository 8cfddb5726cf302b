"""What sensitivity is by formula, and what noise on bits makes the best answer."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.arguments import at_least

FORMULAS = ("constant", "first", "parity", "majority")


def sensitivity_of(kind: str, k: int, n: int) -> float:
    """Compute the sensitivity of a function of k bits among n: (1/n) sum_i P(f changes when bit i flips).

    Each of k bits that matters has the same influence: 1 for parity; C(k-1, (k-1)/2) / 2^(k-1) for the majority of an
    odd k, since the others must be tied. The ``first`` bit alone has 1/n, a constant 0 (one of `FORMULAS`).

    Raises ValueError for another kind, k < 1, n < k, or the majority of an even k.
    """
    at_least(k=(k, 1), n=(n, k))
    if kind not in FORMULAS:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(FORMULAS)}")
    if kind == "majority" and k % 2 == 0:
        raise ValueError(f"k = {k!r}: must be odd for a majority")
    each = {"constant": 0.0, "first": 1 / k, "parity": 1.0, "majority": math.comb(k - 1, k // 2) / 2 ** (k - 1)}
    return k * each[kind] / n


def best_under_noise(table: Int[Tensor, "values"], p: float) -> Int[Tensor, "values"]:
    """Return the likelier value of a function of k bits when one sees its bits each flipped with probability p, by
    number; 0 where both are equally likely.

    P(f = 1 | seen y) = sum_x f(x) (1-p)^(k - d) p^d with d the distance of x and y (cf. 2602.08695: training on noisy
    bits aims at this function, not at f).
    """
    number = torch.arange(len(table), device=table.device)
    k = len(table).bit_length() - 1
    apart = (number[:, None] ^ number)[..., None] >> torch.arange(k, device=table.device) & 1
    likely = torch.where(apart == 1, p, 1 - p).double().prod(-1)
    return (likely @ table.double() > 0.5).long()
