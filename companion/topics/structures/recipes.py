"""Recipes of lesson 08: data structures learned from the answers to queries.

Published setting (Salemohamed et al. 2024, arXiv:2411.03253): 8 layers of width 64, query networks of width 1,024,
batches of 1,024 sets with one query each, up to 500,000 steps, up to 100 points; the loss of the last lookup alone.
Ours is what a CPU affords: 2 layers of width 32 or 64, query networks of width 128 or 256, and either a batch of sets
with one query each (`ONE_EACH`) or 16 sets with 16 queries each, for which the data network runs once. Earlier lookups
count in the loss too, each ``earlier`` times as much as the next: with nothing but the last lookup, a minute finds
less. The longer runs take the lookups of training at a lower temperature than the paper's 2, and some begin with few
different points (`FEW_FIRST`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.structures.data import SPHERE_DIM, Kind, gumbel, item_counts, problems, with_copies, zipf_streams
from companion.topics.structures.model import Sketch, SketchConfig, Structure, StructureConfig

ASKED = 16  # queries for each set of points
# Pairs (until, share): up to so much of a run, so large a share of a set's points are different ones.
FEW_FIRST = ((0.12, 1 / 8), (0.25, 1 / 4), (0.4, 1 / 2))
# the size of a coordinate, where it is not 1
SCALES_OF = {"power-law": 100.0, "hard-line": 400.0, "hard-plane": 400.0, "sphere": SPHERE_DIM**-0.5}


def cross_entropies(model: Structure, points, query, nearest, noise, *, earlier: float, spread: float = 0.0):
    """Sum over lookups of earlier^(how many come after it) x cross-entropy of the place where the nearest point is
    stored; plus spread x KL(slots read first || all slots alike), where there are extra slots.

    ``model``: what stores ``points`` and looks up each ``query``, of which ``nearest`` is the answer.
    ``noise``: Gumbel noise, for the lookups.
    ``earlier``: what a lookup counts for, against the one after it.
    ``spread``: what it counts for that first lookups share themselves out among the slots, as experts in a mixture are
        kept in use (Shazeer et al. 2017, arXiv:1701.06538, section 4); not in the paper.
    """
    stored, logits = model(points, query.flatten(0, 1), noise.flatten(0, 1))
    target = stored.order.mT.gather(1, nearest[..., None].expand(-1, -1, stored.order.shape[1])).flatten(0, 1)
    each = -(target[:, None] * logits.log_softmax(-1)[..., : target.shape[-1]]).sum(-1).mean(0)
    after = torch.arange(len(each) - 1, -1, -1, device=each.device)
    total = (each * earlier**after).sum()
    if not spread:
        return total
    read_first = logits[:, 0].softmax(-1)[:, target.shape[-1] :].mean(0)
    shares = read_first / read_first.sum()
    return total + spread * (shares * (shares * len(shares)).log()).sum()


def squared_errors(model: Structure, points, query, nearest, noise):
    """Mean of |what the last lookup reads - nearest point|^2: the loss where the data network rewrites the points, and
    no place holds one; ``model``, ``points``, ``query``, ``nearest``, ``noise`` as in `cross_entropies`.
    """
    config = (model.module if hasattr(model, "module") else model).config
    stored, logits = model(points, query.flatten(0, 1), noise.flatten(0, 1))
    last = logits[:, -1].unflatten(0, nearest.shape) + noise[:, :, -1]
    answers = (last / config.temperature).softmax(-1) @ stored.values
    right = points.gather(1, nearest[..., None].expand_as(answers))
    return (answers - right).square().sum(-1).mean()


def queries(kind: Kind):
    """Points, ``asked`` queries for each set of them, the nearest points' numbers, and noise for the lookups. In a run
    with a curriculum sets have few points first (`FEW_FIRST`), each as often as fills the places.
    """

    @as_sampler
    def sampler(config: StructureConfig, batch, generator, done=1.0, *, asked: int = ASKED):
        share = next((share for until, share in FEW_FIRST if done < until), 1.0)
        different = max(2, round(share * config.n))
        points, query, distances = problems(kind, different, config.dim, queries=asked)(batch, generator)
        noise = gumbel(batch, asked, config.lookups, config.n + config.extra, generator=generator)
        nearest = distances.argmin(-1).unflatten(0, (batch, asked))
        if different < config.n:
            points, nearest = with_copies(points, nearest, config.n, generator)
        return points, query.unflatten(0, (batch, asked)), nearest, noise

    return sampler


def _searches(
    name: str,
    kind: Kind,
    about: str,
    config: StructureConfig,
    steps: int,
    *,
    batch: int = 16,
    asked: int = ASKED,
    lr: float = 3e-3,
    warmup: int = 100,
    few_first: bool = False,
    earlier: float = 0.3,
    loss: Callable[..., Tensor] | None = None,
    calibrate: Callable[[Structure], Tensor] | None = None,
    stored: torch.dtype | None = None,
    published: tuple[int, int] = (100, 7),
) -> None:
    """Register a search among points of a ``kind``: ``config`` and what follows at the scale ``course``, ``batch`` sets
    of points a step with ``asked`` queries for each, few points first or not; ``published`` are the paper's number of
    points and of lookups.
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
        loss=loss or partial(cross_entropies, earlier=earlier),
        smoke=(smoke, Schedule(300, 8, 1e-2, warmup=10, curriculum=few_first)),
        course=(config, Schedule(steps, batch, lr, warmup=warmup, curriculum=few_first), {"asked": asked}),
        paper=(
            replace(config, n=n, lookups=lookups, width=64, layers=8, hidden=1024, temperature=2.0),
            Schedule(500_000, 1024, 1e-4, warmup=1000),
            {"asked": 1},
        ),
        calibrate=calibrate,
        stored=stored,
    )


def _structure(
    n: int, kind: Kind, lookups: int, dim: int = 1, *, norm: bool = True, marks: bool = False, **switches
) -> StructureConfig:
    scale = SCALES_OF.get(kind, 1.0)
    return StructureConfig(n, dim, lookups, scale=scale, norm=norm, marks=marks, **switches)


def on_fresh_sets(model: Structure) -> Tensor:
    """What rounded weights must still do well: to search 64 fresh sets of points, uniform ones or pictures."""
    config = model.config
    kind = "pictures" if config.pictures else ("line", "plane")[config.dim - 1]
    points, query, *_ = problems(kind, config.n, config.dim, queries=ASKED)(64, torch.Generator().manual_seed(0))
    return model.lookups(model.store(points).values, query)


def error_per_arrival(model: Sketch, stream: Tensor, true: Tensor) -> Tensor:
    """Mean over the arrivals of |estimate - count| of the item that arrives: an item counts as often as it comes, as
    when those who ask for counts are those who write them. (Over items alone, a sketch that says 0 of each is hard to
    beat: most hardly come.)
    """
    return ((model(stream) - true).abs() * true).sum() / true.sum()


@as_sampler
def popular_items(config: SketchConfig, batch, generator):
    """Streams as long as there are items, and how often each item comes."""
    stream = zipf_streams(batch, config.items, config.items, generator=generator)
    return stream, item_counts(stream, config.items)


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
        paper=(replace(config, items=1000, hidden=1024), Schedule(200_000, 1024, 1e-3, warmup=1000)),
    )


ABLATIONS = {"frozen": {"frozen": True}, "unordered": {"permute": False}, "blind": {"adaptive": False}}
EXTRA = (0, 2, 4, 8, 16, 32, 64, 128)
# The first form of the recipe: a mark for every input, no LayerNorm, and one query for each set of points. What an
# untrained, a frozen or an unordered data network is to show needs marks, and the lesson takes them from a trained one.
MARKED = {"marks": True, "norm": False}
ONE_EACH = {"batch": 256, "asked": 1}
# A short warm-up: some seeds fold the line in two while steps are small, and never unfold it.
LIVE = {"steps": 600, "warmup": 30, **ONE_EACH}

_searches("structures", "line", "16 numbers, 3 lookups (lesson 08)", _structure(16, "line", 3, **MARKED), **LIVE)
_searches(
    "structures-line",
    "line",
    "100 numbers, 7 lookups (lesson 08)",
    _structure(100, "line", 7, hidden=256, temperature=0.7),
    24_000,
    lr=2e-3,
    earlier=0.5,
    calibrate=on_fresh_sets,
)
_searches(
    "structures-marked",
    "line",
    "64 numbers with marks, 6 lookups, one query for each set (lesson 08)",
    _structure(64, "line", 6, **MARKED),
    6000,
    batch=128,
    asked=1,
)
_searches(
    "structures-power-law",
    "power-law",
    "100 numbers of 1 to 200 and queries for small ones (lesson 08)",
    _structure(100, "power-law", 7, hidden=256, temperature=0.7),
    8000,
    lr=2e-3,
    earlier=0.5,
    stored=torch.bfloat16,
)
_searches(
    "structures-hard-line",
    "hard-line",
    "15 numbers whose quantiles tell nothing (lesson 08)",
    _structure(15, "hard-line", 3, **MARKED),
    4000,
    **ONE_EACH,
    published=(15, 3),
)
_searches(
    "structures-plane",
    "plane",
    "32 points of a square (lesson 08)",
    _structure(32, "plane", 4, 2, hidden=256, **MARKED),
    5000,
    **ONE_EACH,
    published=(100, 6),
)
# the low temperature and few points first: without them a run of 4,000 steps has found fewer of its queries
_searches(
    "structures-plane-100",
    "plane",
    "100 points of a square (lesson 08)",
    _structure(100, "plane", 6, 2, hidden=256, temperature=0.7),
    36_000,
    lr=1.5e-3,
    few_first=True,
    calibrate=on_fresh_sets,
    published=(100, 6),
)
_searches(
    "structures-hard-plane",
    "hard-plane",
    "15 points of the published hard plane (lesson 08)",
    _structure(15, "hard-plane", 3, 2),
    3000,
    stored=torch.bfloat16,
    published=(15, 3),
)
_searches(
    "structures-sphere-one",
    "sphere",
    "8 points on a sphere in 30 dimensions, one lookup (lesson 08)",
    _structure(8, "sphere", 1, SPHERE_DIM, width=64, hidden=256),
    12_000,
    batch=64,
    asked=8,
    lr=1e-3,
    stored=torch.bfloat16,
    published=(8, 1),
)
_searches(
    "structures-pictures",
    "pictures",
    "pictures of 50 numbers from 0 to 199 (lesson 08)",
    _structure(50, "pictures", 7, 192, pictures=True, hidden=256, temperature=0.7),
    24_000,
    batch=8,
    lr=2e-3,
    few_first=True,
    earlier=0.5,
    calibrate=on_fresh_sets,
    published=(50, 7),
)
# the first lookup reads no slot unless it prefers slots from the start, and of many slots it leaves some unread unless
# the loss has a spread; with few slots the first lookup must count, too (`earlier`)
for _slots in EXTRA:
    _searches(
        f"structures-extra-{_slots}",
        "line",
        f"50 numbers, 2 lookups, {_slots} extra slots (lesson 08)",
        _structure(50, "line", 2, extra=_slots, width=64, hidden=256, temperature=1.0),
        16_000,
        lr=2e-3,
        loss=partial(cross_entropies, earlier=0.3 if _slots in (0, 2, 4) else 0.0, spread=0.3 if _slots >= 8 else 0.0),
        calibrate=on_fresh_sets,
        published=(50, 2),
    )
for _name, _switch in ABLATIONS.items():
    _searches(
        f"structures-{_name}",
        "line",
        f"16 numbers, ablated: {_name} (lesson 08)",
        _structure(16, "line", 3, **MARKED, **_switch),
        **LIVE,
    )
_searches(
    "structures-rewritten",
    "line",
    "16 numbers, rewritten instead of ordered: the paper's no-permute (lesson 08)",
    _structure(16, "line", 3, marks=True, rewrite=True),
    1000,
    warmup=30,
    loss=squared_errors,
    stored=torch.bfloat16,
)
_sketches("structures-stream", "counts of 100 items in 32 cells (lesson 08)", SketchConfig(100, 32, 2))
_sketches(
    "structures-stream-frozen", "the same with cells at random (lesson 08)", SketchConfig(100, 32, 2, frozen=True)
)
