"""Recipes of lesson 08: data structures learned from the answers to queries.

Published setting (Salemohamed et al. 2024, arXiv:2411.03253): 8 layers of width 64, query networks of width 1,024,
batches of 1,024, up to 500,000 steps, up to 100 points; the loss of the last lookup alone. Ours is what a CPU affords:
2 layers of width 32, query networks of width 128 or 256, batches of 128 or 256, and up to 64 points. Earlier lookups
count in the loss too, each ``earlier`` times as much as the next: with nothing but the last lookup, a minute finds
less.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from companion.models.structures import Sketch, SketchConfig, Structure, StructureConfig
from companion.recipes import register
from companion.samplers.structures import (
    Search,
    hard,
    hard_coordinates,
    item_counts,
    numbers,
    pictures,
    sphere,
    uniform,
    zipf_streams,
)
from companion.training import Schedule

Kind = Literal["line", "hard-line", "plane", "hard-plane", "tree-plane", "sphere", "pictures"]
DIM = 30  # of the sphere
# the size of a coordinate, where it is not 1
SCALES_OF = {"hard-line": 400.0, "hard-plane": 400.0, "tree-plane": 400.0, "sphere": DIM**-0.5, "pictures": 0.4}


def problems(kind: Kind, n: int, dim: int = DIM) -> Callable[[int, torch.Generator], Search]:
    """A sampler ``draw(batch, generator)`` of ``n`` points; ``dim`` is the sphere's.

    Raises ValueError for another kind, or an n that no tree has.
    """
    if kind.startswith(("hard-", "tree-")):
        levels = n.bit_length()
        if n != 2**levels - 1:
            raise ValueError(f"n = {n!r}: a balanced tree has 1, 3, 7, 15, .. nodes")
    draws = {
        "line": lambda batch, generator: uniform(batch, n, generator=generator),
        "hard-line": lambda batch, generator: hard(batch, n.bit_length(), generator=generator),
        "plane": lambda batch, generator: uniform(batch, n, 2, generator=generator),
        "hard-plane": lambda batch, generator: hard_coordinates(batch, n.bit_length(), generator=generator),
        "tree-plane": lambda batch, generator: hard(batch, n.bit_length(), 2, generator=generator),
        "sphere": lambda batch, generator: sphere(batch, n, dim, generator=generator),
        "pictures": lambda batch, generator: pictures(*numbers(batch, n, generator=generator), generator=generator),
    }
    if kind not in draws:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(draws)}")
    return draws[kind]


def gumbel(*shape: int, generator: torch.Generator) -> Tensor:
    """Gumbel noise -log(-log U) of this ``shape``: the argmax of logits + noise is a draw from their softmax.

    Source: Jang, Gu, Poole (2017), arXiv:1611.01144; U is kept off 0 and 1.
    """
    u = torch.rand(shape, generator=generator, device=generator.device)
    return -(-u.clamp(1e-9, 1 - 1e-7).log()).log()


def cross_entropies(model: Structure, points, query, nearest, noise, *, earlier: float):
    """Sum over lookups of earlier^(how many come after it) x cross-entropy of the place where the nearest point is
    stored.

    ``model``: what stores the points and looks them up.
    ``points``, ``query``: what is stored, and what is asked for.
    ``nearest``: which point is the answer.
    ``noise``: Gumbel noise, for the lookups.
    ``earlier``: what a lookup counts for, against the one after it.
    """
    stored = model.store(points)
    logits = model.lookups(stored.values, query, noise)
    target = stored.order[torch.arange(len(nearest)), :, nearest]
    each = -(target[:, None] * logits.log_softmax(-1)[..., : target.shape[-1]]).sum(-1).mean(0)
    after = torch.arange(len(each) - 1, -1, -1, device=each.device)
    return (each * earlier**after).sum()


def queries(kind: Kind):
    """Points, queries, the nearest point's number, and noise for the lookups."""

    def sampler(config: StructureConfig):
        sample = problems(kind, config.n, config.dim)

        def draw(batch, generator):
            points, query, distances = sample(batch, generator)
            noise = gumbel(batch, config.lookups, config.n + config.extra, generator=generator)
            return points, query, distances.argmin(-1), noise

        return draw

    return sampler


def _searches(
    name: str,
    kind: Kind,
    about: str,
    config: StructureConfig,
    steps: int,
    *,
    batch: int = 256,
    warmup: int = 100,
    published: tuple[int, int] = (100, 7),
) -> None:
    """Register a search among points. ``config``, ``steps``, ``batch``, ``warmup``: at the scale ``course``;
    ``published``: the paper's number of points and of lookups.
    """
    # Few points: every kind gets somewhere in seconds.
    tiny = 2 if kind == "sphere" else config.dim
    smoke = replace(config, n=3, dim=tiny, lookups=3, hidden=64, extra=min(config.extra, 4))
    n, lookups = published
    register(
        name,
        about,
        model=Structure,
        sampler=queries(kind),
        # A first lookup should find the nearest point, unless there are slots that only tell where to look next.
        loss=partial(cross_entropies, earlier=0.0 if config.extra else 0.3),
        smoke=(smoke, Schedule(300, 64, 1e-2, warmup=10)),
        course=(config, Schedule(steps, batch, 3e-3, warmup=warmup)),
        paper=(
            replace(config, n=n, lookups=lookups, width=64, layers=8, hidden=1024),
            Schedule(500_000, 1024, 1e-3, warmup=1000),
        ),
    )


def _structure(n: int, kind: Kind, lookups: int, dim: int = 1, **switches) -> StructureConfig:
    return StructureConfig(n, dim, lookups, scale=SCALES_OF.get(kind, 1.0), **switches)


def error_per_arrival(model: Sketch, stream: Tensor, true: Tensor) -> Tensor:
    """Mean over the arrivals of |estimate - count| of the item that arrives: an item counts as often as it comes, as
    when those who ask for counts are those who write them. (Over items alone, a sketch that says 0 of each is hard to
    beat: most hardly come.)
    """
    return ((model(stream) - true).abs() * true).sum() / true.sum()


def popular_items(config: SketchConfig):
    """Streams as long as there are items, and how often each item comes."""

    def draw(batch, generator):
        stream = zipf_streams(batch, config.items, config.items, generator=generator)
        return stream, item_counts(stream, config.items)

    return draw


def _sketches(name: str, about: str, config: SketchConfig) -> None:
    """Register a sketch. The memory of 32 cells is the paper's, the rest of the sizes ours at every scale."""
    register(
        name,
        about,
        model=Sketch,
        sampler=popular_items,
        loss=error_per_arrival,
        smoke=(replace(config, items=12, memory=6), Schedule(80, 32, 1e-2, warmup=10)),
        course=(config, Schedule(1000, 64, 6e-3, warmup=50)),
        paper=(replace(config, items=1000, hidden=1024), Schedule(100_000, 256, 1e-3, warmup=1000)),
    )


ABLATIONS = {"frozen": {"frozen": True}, "unordered": {"permute": False}, "blind": {"adaptive": False}}
EXTRA = (0, 8, 32)
# A short warm-up: some seeds fold the line in two while steps are small, and never unfold it.
LIVE = {"steps": 600, "warmup": 30}

_searches("structures", "line", "16 numbers, 3 lookups (lesson 08)", _structure(16, "line", 3), **LIVE)
_searches("structures-line", "line", "64 numbers, 6 lookups (lesson 08)", _structure(64, "line", 6), 6000, batch=128)
_searches(
    "structures-hard-line",
    "hard-line",
    "15 numbers whose quantiles tell nothing (lesson 08)",
    _structure(15, "hard-line", 3),
    4000,
    published=(15, 3),
)
_searches(
    "structures-plane",
    "plane",
    "32 points of a square (lesson 08)",
    _structure(32, "plane", 4, 2, hidden=256),
    5000,
    published=(100, 6),
)
_searches(
    "structures-tree-plane",
    "tree-plane",
    "15 points at the nodes of a k-d tree (lesson 08)",
    _structure(15, "tree-plane", 3, 2, width=64, hidden=256),
    5000,
    published=(15, 3),
)
_searches(
    "structures-sphere-one",
    "sphere",
    "8 points on a sphere in 30 dimensions, one lookup (lesson 08)",
    _structure(8, "sphere", 1, DIM),
    1500,
    published=(8, 1),
)
_searches(
    "structures-pictures",
    "pictures",
    "pictures of 32 numbers from 0 to 199 (lesson 08)",
    _structure(32, "pictures", 5, 192, width=64, hidden=256),
    8000,
    batch=128,
    published=(50, 7),
)
for _slots in EXTRA:
    _searches(
        f"structures-extra-{_slots}",
        "line",
        f"32 numbers, 2 lookups, {_slots} extra slots (lesson 08)",
        _structure(32, "line", 2, extra=_slots),
        2000,
        published=(50, 2),
    )
for _name, _switch in ABLATIONS.items():
    _searches(
        f"structures-{_name}",
        "line",
        f"16 numbers, ablated: {_name} (lesson 08)",
        _structure(16, "line", 3, **_switch),
        **LIVE,
    )
_sketches("structures-stream", "counts of 100 items in 32 cells (lesson 08)", SketchConfig(100, 32, 2))
_sketches(
    "structures-stream-frozen", "the same with cells at random (lesson 08)", SketchConfig(100, 32, 2, frozen=True)
)
