"""Recipes of lesson 08: data structures learned from the answers to queries.

Published setting (Salemohamed et al. 2024, arXiv:2411.03253): 8 layers of width 64, query networks of width 1,024, batches of 1,024, up to
500,000 steps, up to 100 points; the loss of the last lookup alone. Ours is what a CPU affords: 2 layers of width 32, query networks of
width 128 or 256, batches of 128 or 256, and up to 64 points. Earlier lookups count in the loss too, each ``earlier`` times as much as the
next: with nothing but the last lookup, a minute finds less.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from companion.models.structures import Sketch, SketchConfig, Structure, StructureConfig
from companion.recipes import Recipe
from companion.samplers.structures import Search, counts, hard, numbers, pictures, sphere, uniform, zipf_streams
from companion.training import Schedule

Kind = Literal["line", "hard-line", "plane", "hard-plane", "sphere", "pictures"]
DIM = 30  # of the sphere
SCALES_OF = {"hard-line": 400.0, "hard-plane": 400.0, "sphere": DIM**-0.5, "pictures": 0.4}  # the size of a coordinate, where it is not 1


def problems(kind: Kind, n: int, dim: int = DIM) -> Callable[[int, torch.Generator], Search]:
    """A sampler ``draw(batch, generator)`` of ``n`` points; ``dim`` is the sphere's.

    Raises ValueError for another kind, or an n that no tree has.
    """
    if kind.startswith("hard-"):
        levels = n.bit_length()
        if n != 2**levels - 1:
            raise ValueError(f"n = {n!r}: a balanced tree has 1, 3, 7, 15, .. nodes")
    draws = {
        "line": lambda batch, generator: uniform(batch, n, generator=generator),
        "hard-line": lambda batch, generator: hard(batch, n.bit_length(), generator=generator),
        "plane": lambda batch, generator: uniform(batch, n, 2, generator=generator),
        "hard-plane": lambda batch, generator: hard(batch, n.bit_length(), 2, generator=generator),
        "sphere": lambda batch, generator: sphere(batch, n, dim, generator=generator),
        "pictures": lambda batch, generator: pictures(*numbers(batch, n, generator=generator), generator=generator),
    }
    if kind not in draws:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(draws)}")
    return draws[kind]


def gumbel(*shape: int, generator: torch.Generator) -> Tensor:
    """Noise -log(-log U): the argmax of logits + noise is a draw from their softmax."""
    u = torch.rand(shape, generator=generator, device=generator.device)
    return -(-u.clamp(1e-9, 1 - 1e-7).log()).log()


def cross_entropies(model: Structure, points, query, nearest, noise, *, earlier: float):
    """Sum over lookups of earlier^(how many come after it) x cross-entropy of the place where the nearest point is stored."""
    stored = model.store(points)
    logits = model.lookups(stored.values, query, noise)
    target = stored.order[torch.arange(len(nearest)), :, nearest]
    each = -(target[:, None] * logits.log_softmax(-1)[..., : target.shape[-1]]).sum(-1).mean(0)
    after = torch.arange(len(each) - 1, -1, -1, device=each.device)
    return (each * earlier**after).sum()


def _recipe(name: str, scale: str, kind: Kind, config: StructureConfig, schedule: Schedule, about: str) -> Recipe:
    sample = problems(kind, config.n, config.dim)

    def draw(batch, generator):
        points, query, distances = sample(batch, generator)
        noise = gumbel(batch, config.lookups, config.n + config.extra, generator=generator)
        return points, query, distances.argmin(-1), noise

    # What a first lookup should find is the nearest point, unless there are slots that only tell where to look next.
    loss = partial(cross_entropies, earlier=0.0 if config.extra else 0.3)
    return Recipe(name, scale, partial(Structure, config), draw, loss, schedule, about)


def _scales(
    name: str,
    kind: Kind,
    about: str,
    config: StructureConfig,
    steps: int,
    *,
    batch: int = 256,
    warmup: int = 100,
    published: tuple[int, int] = (100, 7),
) -> dict[str, Recipe]:
    """``published``: the paper's number of points and of lookups."""
    tiny = 2 if kind == "sphere" else config.dim
    smoke = replace(
        config, n=3, dim=tiny, lookups=3, hidden=64, extra=min(config.extra, 4)
    )  # few points: every kind gets somewhere in seconds
    n, lookups = published
    paper = replace(config, n=n, lookups=lookups, width=64, layers=8, hidden=1024)
    return {
        "smoke": _recipe(name, "smoke", kind, smoke, Schedule(300, 64, 1e-2, warmup=10), about),
        "course": _recipe(name, "course", kind, config, Schedule(steps, batch, 3e-3, warmup=warmup), about),
        "paper": _recipe(name, "paper", kind, paper, Schedule(500_000, 1024, 1e-3, warmup=1000), about),
    }


def _structure(n: int, kind: Kind, lookups: int, dim: int = 1, **switches) -> StructureConfig:
    return StructureConfig(n, dim, lookups, scale=SCALES_OF.get(kind, 1.0), **switches)


def error_per_arrival(model: Sketch, stream: Tensor, true: Tensor) -> Tensor:
    """Mean over the arrivals of |estimate - count| of the item that arrives: an item counts as often as it comes, as when those who ask
    for counts are those who write them. (Over items alone, a sketch that says 0 of each is hard to beat: most hardly come.)
    """
    return ((model(stream) - true).abs() * true).sum() / true.sum()


def _stream(name: str, scale: str, config: SketchConfig, length: int, schedule: Schedule, about: str) -> Recipe:
    def draw(batch, generator):
        stream = zipf_streams(batch, length, config.items, generator=generator)
        return stream, counts(stream, config.items)

    return Recipe(name, scale, partial(Sketch, config), draw, error_per_arrival, schedule, about)


def _streams(name: str, about: str, config: SketchConfig) -> dict[str, Recipe]:
    """Streams as long as there are items. The memory of 32 cells is the paper's, the rest of the sizes ours at every scale."""
    smoke, paper = replace(config, items=12, memory=6), replace(config, items=1000, hidden=1024)
    return {
        "smoke": _stream(name, "smoke", smoke, 12, Schedule(80, 32, 1e-2, warmup=10), about),
        "course": _stream(name, "course", config, 100, Schedule(1000, 64, 6e-3, warmup=50), about),
        "paper": _stream(name, "paper", paper, 1000, Schedule(100_000, 256, 1e-3, warmup=1000), about),
    }


ABLATIONS = {"frozen": {"frozen": True}, "unordered": {"permute": False}, "blind": {"adaptive": False}}
EXTRA = (0, 8, 32)
LIVE = {"steps": 600, "warmup": 30}  # a short warm-up: some seeds fold the line in two while steps are small, and never unfold it

RECIPES = (
    {
        "structures": _scales("structures", "line", "16 numbers, 3 lookups (lesson 08)", _structure(16, "line", 3), **LIVE),
        "structures-line": _scales(
            "structures-line", "line", "64 numbers, 6 lookups (lesson 08)", _structure(64, "line", 6), 6000, batch=128
        ),
        "structures-hard-line": _scales(
            "structures-hard-line",
            "hard-line",
            "15 numbers whose quantiles tell nothing (lesson 08)",
            _structure(15, "hard-line", 3),
            4000,
            published=(15, 3),
        ),
        "structures-plane": _scales(
            "structures-plane",
            "plane",
            "32 points of a square (lesson 08)",
            _structure(32, "plane", 4, 2, hidden=256),
            5000,
            published=(100, 6),
        ),
        "structures-hard-plane": _scales(
            "structures-hard-plane",
            "hard-plane",
            "15 points at the nodes of a k-d tree (lesson 08)",
            _structure(15, "hard-plane", 3, 2, width=64, hidden=256),
            5000,
            published=(15, 3),
        ),
        "structures-sphere-one": _scales(
            "structures-sphere-one",
            "sphere",
            "8 points on a sphere in 30 dimensions, one lookup (lesson 08)",
            _structure(8, "sphere", 1, DIM),
            6000,
            published=(8, 1),
        ),
        "structures-pictures": _scales(
            "structures-pictures",
            "pictures",
            "pictures of 32 numbers from 0 to 199 (lesson 08)",
            _structure(32, "pictures", 5, 192, width=64, hidden=256),
            8000,
            batch=128,
            published=(50, 7),
        ),
    }
    | {
        f"structures-extra-{slots}": _scales(
            f"structures-extra-{slots}",
            "line",
            f"32 numbers, 2 lookups, {slots} extra slots (lesson 08)",
            _structure(32, "line", 2, extra=slots),
            2000,
            published=(50, 2),
        )
        for slots in EXTRA
    }
    | {
        f"structures-{name}": _scales(
            f"structures-{name}", "line", f"16 numbers, ablated: {name} (lesson 08)", _structure(16, "line", 3, **switch), **LIVE
        )
        for name, switch in ABLATIONS.items()
    }
    # Counts of the items in a stream.
    | {
        "structures-stream": _streams("structures-stream", "counts of 100 items in 32 cells (lesson 08)", SketchConfig(100, 32, 2)),
        "structures-stream-frozen": _streams(
            "structures-stream-frozen", "the same with cells at random (lesson 08)", SketchConfig(100, 32, 2, frozen=True)
        ),
    }
)
