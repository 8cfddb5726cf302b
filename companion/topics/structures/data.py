"""Problems of nearest-neighbour search: a set of points, a query, and how far each point is from it.

Uniform, 'hard' and spherical points follow Salemohamed et al. (2024), arXiv:2411.03253, section 2; the pictures of
numbers stand in for their three-digit MNIST. Streams of items are for lesson 08's sketches.

Every sampler draws ``batch`` sets of ``n`` points and, for each set, ``queries`` to ask it: with k of them, queries i k
to i k + k - 1 belong to set i. ``generator`` is a generator, on whose device the draw is made, or its seed.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range
from companion.core.extras import Extra

Kind = Literal["line", "power-law", "hard-line", "plane", "hard-plane", "sphere", "pictures"]
SPHERE_DIM = 30
NUMBERS = 200  # pictures show 0 to 199
HELD_OUT = 1400  # scikit-learn's digits from here on are kept for testing


class Search(NamedTuple):
    """``distances`` are those of the metric that counts, which the points need not show: between pictures of numbers,
    the numbers'. There are as many sets as queries, or a part as many, and then each serves several queries in a row.
    """

    points: Float[Tensor, "sets n dim"]
    query: Float[Tensor, "batch dim"]
    distances: Float[Tensor, "batch n"]


def _between(points: Tensor, query: Tensor) -> Search:
    each = points.repeat_interleave(len(query) // len(points), 0)
    return Search(points, query, (each - query[:, None]).norm(dim=-1))


def _one_of(points: Tensor, queries: int, generator: torch.Generator) -> Tensor:
    """A point of its set for every query; not a fixed one: its place would give the answer away."""
    device = generator.device
    sets = torch.arange(len(points), device=device).repeat_interleave(queries)
    return points[sets, torch.randint(points.shape[1], (len(sets),), generator=generator, device=device)]


def uniform(batch: int, n: int, dim: int = 1, *, queries: int = 1, generator: torch.Generator | int) -> Search:
    """Points and query uniform on [-1, 1]^``dim``; ``batch``, ``n``, ``queries`` and ``generator`` as everywhere here.

    Raises ValueError for a number below 1.
    """
    at_least(batch=(batch, 1), n=(n, 1), dim=(dim, 1), queries=(queries, 1))
    generator = as_generator(generator)
    drawn = 2 * torch.rand(batch, n + queries, dim, generator=generator, device=generator.device) - 1
    return _between(drawn[:, :n], drawn[:, n:].flatten(0, 1))


def zipf_queries(
    batch: int, n: int, *, exponent: float = 1.2, queries: int = 1, generator: torch.Generator | int
) -> Search:
    """Points uniform among 1, .., 200, some of them more than once, and a query that is i with probability ~
    i^-exponent: small numbers are asked for most (appendix B.7: 1.2).

    ``batch``, ``n``, ``queries``, ``generator``: as everywhere here. ``exponent``: 0 for equal queries.

    Raises ValueError for a number below 1, or a negative exponent.
    """
    at_least(batch=(batch, 1), n=(n, 1), queries=(queries, 1), exponent=(exponent, 0))
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    points = torch.randint(1, NUMBERS + 1, (batch, n, 1), **where).float()
    popularity = torch.arange(1, NUMBERS + 1, device=generator.device, dtype=torch.float32) ** -exponent
    asked = 1 + torch.multinomial(popularity, batch * queries, replacement=True, generator=generator)
    return _between(points, asked[:, None].float())


def sphere(
    batch: int, n: int, dim: int, *, rho: float = 0.8, queries: int = 1, generator: torch.Generator | int
) -> Search:
    """Points uniform on the unit sphere in ``dim`` dimensions, and a query whose inner product with one of them is
    ``rho``: q = rho x + sqrt(1 - rho^2) u, for u uniform among the unit vectors orthogonal to x (section 2.4: .8).

    ``batch``, ``n``, ``queries``, ``generator``: as everywhere here. ``dim``, ``rho``: of the sphere, and as above.

    Raises ValueError for a number below 1, dim < 2, or a rho that is not in [0, 1].
    """
    at_least(batch=(batch, 1), n=(n, 1), dim=(dim, 2), queries=(queries, 1))
    if not 0 <= rho <= 1:
        raise ValueError(f"rho = {rho!r}: must be 0 to 1")
    generator = as_generator(generator)
    drawn = torch.randn(batch, n + queries, dim, generator=generator, device=generator.device)
    drawn = F.normalize(drawn, dim=-1)
    points, aside = drawn[:, :n], drawn[:, n:].flatten(0, 1)
    near = _one_of(points, queries, generator)
    aside = F.normalize(aside - (aside * near).sum(-1, keepdim=True) * near, dim=-1)
    return _between(points, rho * near + (1 - rho**2) ** 0.5 * aside)


def hard(batch: int, levels: int, *, queries: int = 1, generator: torch.Generator | int) -> Search:
    """2^``levels`` - 1 numbers at the nodes of a balanced tree; the query is one of them, plus N(0, 1).

    The root is uniform on +-7^levels; the children of a node at level k = 0, 1, .. lie d ~ U(0, 7^(levels - k - 1)) to
    its left and to its right. Quantiles say little about where a query lies: the spread is 7 times smaller at every
    level. As published (appendix B.6, a = 7), but for the root, which lies on both sides of 0 here. Numbers come in
    random order; ``batch``, ``queries`` and ``generator`` as everywhere here.

    Raises ValueError for a number below 1.
    """
    at_least(batch=(batch, 1), levels=(levels, 1), queries=(queries, 1))
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    level = 7.0**levels * (2 * torch.rand(batch, 1, 1, **where) - 1)
    tree = [level]
    for k in range(levels - 1):
        apart = (2 * torch.rand(batch, 2**k, 2, 1, **where) - 1).abs()
        sides = torch.tensor([[-1.0], [1.0]], device=generator.device)
        level = (level[:, :, None] + 7.0 ** (levels - k - 1) * sides * apart).flatten(1, 2)
        tree.append(level)
    points = torch.cat(tree, 1)
    rows = torch.arange(batch, device=generator.device)[:, None]
    points = points[rows, torch.rand(batch, points.shape[1], **where).argsort(1)]
    near = _one_of(points, queries, generator)
    return _between(points, near + torch.randn(near.shape, **where))


def hard_coordinates(
    batch: int, levels: int, dim: int = 2, *, queries: int = 1, generator: torch.Generator | int
) -> Search:
    """2^levels - 1 points whose coordinates come from `hard` sets of their own, independent of each other (section 2.3,
    hard distribution), ``dim`` in all; the query is one of them, plus N(0, 1) in every coordinate.

    ``batch``, ``levels``, ``queries``, ``generator``: as in `hard`.

    Raises ValueError for a number below 1.
    """
    at_least(dim=(dim, 1), queries=(queries, 1))
    generator = as_generator(generator)
    points = torch.cat([hard(batch, levels, generator=generator).points for _ in range(dim)], -1)
    near = _one_of(points, queries, generator)
    return _between(points, near + torch.randn(near.shape, generator=generator, device=generator.device))


@cache
def _digits() -> tuple[Tensor, Tensor]:
    """The 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn, in [0, 1], and what they say."""
    with Extra("lessons"):
        from sklearn.datasets import load_digits  # noqa: PLC0415 (SciPy's address space is more than a sandbox has left)

    bundle = load_digits()
    return torch.tensor(bundle.images / 16, dtype=torch.float32).flatten(1), torch.tensor(bundle.target)


def redrawn(digits: Float[Tensor, "*many 64"], generator: torch.Generator) -> Float[Tensor, "*many 64"]:
    """Draw the digits anew, each turned by up to .25 radians, sized and slanted by up to 15 and 20 %, moved by up to .6
    pixels, and with N(0, .01) added to every pixel.
    """
    where = {"generator": generator, "device": digits.device}
    images = digits.reshape(-1, 1, 8, 8)
    turn, size, slant, right, down = (2 * torch.rand(5, len(images), **where) - 1).unbind()
    turn, size, slant, right, down = 0.25 * turn, 1 + 0.15 * size, 0.2 * slant, 0.15 * right, 0.15 * down
    first_row = torch.stack([size * turn.cos(), slant - size * turn.sin(), right], -1)
    second_row = torch.stack([size * turn.sin(), size * turn.cos(), down], -1)
    grid = F.affine_grid(torch.stack([first_row, second_row], 1), list(images.shape), align_corners=False)
    images = F.grid_sample(images, grid, align_corners=False)
    return (images + 0.1 * torch.randn(images.shape, **where)).reshape(digits.shape)


def numbers(
    batch: int, n: int, *, queries: int = 1, generator: torch.Generator | int
) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "asked"]]:
    """``n`` different numbers from 0 to 199 in each of ``batch`` sets, and any to ask for, ``queries`` for each, by
    ``generator``.

    Raises ValueError for a number below 1, or n > 200.
    """
    at_least(batch=(batch, 1), n=(n, 1), queries=(queries, 1))
    if n > NUMBERS:
        raise ValueError(f"n = {n!r}: must be at most {NUMBERS}")
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    return torch.rand(batch, NUMBERS, **where).argsort(1)[:, :n], torch.randint(NUMBERS, (batch * queries,), **where)


def pictures(
    shown: Int[Tensor, "batch n"],
    asked: Int[Tensor, "asked"],
    *,
    held_out: bool = False,
    changed: bool = False,
    generator: torch.Generator | int,
) -> Search:
    """Pictures of numbers from 0 to 199, each three handwritten digits side by side; the distance is that between the
    numbers, which is not among what the pictures say.

    A picture is 192 numbers: three digits of 64 pixels. The first 1,400 digits are for training, the last 397
    (``held_out``) for testing.

    ``shown``, ``asked``: the numbers whose pictures are stored, and those whose are the queries, as many for each set.
    ``changed``: whether every digit is `redrawn`, as in training: 1,400 digits are soon known by heart.
    ``generator``: for which digits are shown, or its seed.

    Raises ValueError for a number that is not 0 to 199.
    """
    check_range(shown=(shown, NUMBERS), asked=(asked, NUMBERS))
    (batch, n), queries = shown.shape, len(asked) // len(shown)
    numbers = torch.cat([shown, asked.view(batch, queries)], 1)
    generator = as_generator(generator)
    images, labels = (tensor[HELD_OUT:] if held_out else tensor[:HELD_OUT] for tensor in _digits())
    by_digit = [images[labels == digit].to(generator.device) for digit in range(10)]
    most = max(map(len, by_digit))
    # the rare ones go round again
    drawers = torch.stack([each[torch.arange(most, device=each.device) % len(each)] for each in by_digit])
    digits = torch.stack([numbers // 100, numbers // 10 % 10, numbers % 10], -1)
    drawn = drawers[digits, torch.randint(most, digits.shape, generator=generator, device=generator.device)]
    drawn = (redrawn(drawn, generator) if changed else drawn).flatten(2)
    apart = (shown.repeat_interleave(queries, 0) - asked[:, None]).abs().float()
    return Search(drawn[:, :n], drawn[:, n:].flatten(0, 1), apart)


def problems(
    kind: Kind, n: int, dim: int = SPHERE_DIM, *, queries: int = 1
) -> Callable[[int, torch.Generator], Search]:
    """Return a sampler ``draw(batch, generator)`` of sets of ``n`` points of a ``kind``, with ``queries`` for each set;
    ``dim`` is the sphere's.

    Raises ValueError for another kind, or an n that no tree has.
    """
    if kind.startswith("hard-"):
        levels = n.bit_length()
        if n != 2**levels - 1:
            raise ValueError(
                f"n = {n!r}: must be 1, 3, 7, 15, .., the numbers of nodes of balanced trees, for kind = {kind!r}"
            )
    draws = {
        "line": partial(uniform, n=n),
        "power-law": partial(zipf_queries, n=n),
        "hard-line": partial(hard, levels=n.bit_length()),
        "plane": partial(uniform, n=n, dim=2),
        "hard-plane": partial(hard_coordinates, levels=n.bit_length()),
        "sphere": partial(sphere, n=n, dim=dim),
        "pictures": lambda batch, *, queries, generator: pictures(
            *numbers(batch, n, queries=queries, generator=generator), changed=True, generator=generator
        ),
    }
    if kind not in draws:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(draws)}")
    return lambda batch, generator: draws[kind](batch, queries=queries, generator=generator)


def gumbel(*shape: int, generator: torch.Generator) -> Tensor:
    """Gumbel noise -log(-log U) of this ``shape``: the argmax of logits + noise is a draw from their softmax.

    Source: Jang, Gu, Poole (2017), arXiv:1611.01144; U is kept off 0 and 1.
    """
    u = torch.rand(shape, generator=generator, device=generator.device)
    return -(-u.clamp(1e-9, 1 - 1e-7).log()).log()


def with_copies(
    points: Float[Tensor, "sets few dim"], nearest: Int[Tensor, "sets queries"], n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "sets n dim"], Int[Tensor, "sets queries"]]:
    """Sets of ``n`` points in which each of few ``points`` is about equally often, and one copy, by ``generator``, of
    the one that is ``nearest`` to each query.
    """
    which = torch.arange(n, device=points.device) * points.shape[1] // n
    copies = which.bincount(minlength=points.shape[1])
    first = copies.cumsum(0) - copies
    turn = torch.rand(nearest.shape, generator=generator, device=nearest.device)
    return points[:, which], first[nearest] + (turn * copies[nearest]).long()


def zipf_streams(
    batch: int, length: int, items: int, *, exponent: float = 1.0, generator: torch.Generator | int
) -> Int[Tensor, "batch length"]:
    """Streams of items 0 .. items - 1; in each stream the r-th most popular item has probability ~ r^-exponent, and
    which item that is is random.

    ``batch``, ``length``, ``items``: how many streams, arrivals in each, and different items. ``exponent``: 0 for equal
    ones. ``generator``: as everywhere here.

    Raises ValueError for a number below 1, or a negative exponent.
    """
    at_least(batch=(batch, 1), length=(length, 1), items=(items, 1), exponent=(exponent, 0))
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    popularity = torch.arange(1, items + 1, device=generator.device, dtype=torch.float32) ** -exponent
    ranks = torch.multinomial(popularity.expand(batch, -1), length, replacement=True, generator=generator)
    return torch.rand(batch, items, **where).argsort(1).gather(1, ranks)


def item_counts(stream: Int[Tensor, "batch length"], items: int) -> Float[Tensor, "batch items"]:
    """Count how often every item occurs in each stream: entry (b, i) is sum_t 1{stream_bt = i}, in float32."""
    return torch.zeros(len(stream), items, device=stream.device).scatter_add(
        1, stream, torch.ones_like(stream, dtype=torch.float32)
    )
