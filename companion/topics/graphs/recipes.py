"""Recipes of lesson 11: random graphs under several filters, for the disentangled transformer and for the standard one.

The arms are ways to choose from one pool of random graphs (Ye, Fu, Jia, Sharan 2026, arXiv:2510.19753): ``within``
keeps those whose diameter the model can handle, ``all`` keeps everything, ``matched`` is the control of the filter
(`companion.topics.graphs.data.matched`); ``5%``, ``20%`` and ``60%`` have that share of graphs beyond the capacity.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.graphs.data import connected, erdos_renyi, matched, within
from companion.topics.graphs.model import Channels, ChannelsConfig, GraphModel, GraphModelConfig

BEYOND = {"within": 0.0, "5%": 0.05, "20%": 0.2, "60%": 0.6}  # the share beyond capacity, where the arm sets it
ARMS = (*BEYOND, "all", "matched")
SEEDS = 5  # runs of `Channels` for each arm, side by side


def every_pair(model, graphs, answers):
    """Cross-entropy of all pairs; runs side by side are added up, so that each has its own gradient."""
    return F.binary_cross_entropy_with_logits(model(graphs), answers, reduction="none").mean((0, -2, -1)).sum()


@cache
def pool(
    n: int, p: tuple[float, float], steps: int, many: int, device: torch.device
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Draw random graphs once, on the CPU; return them, their answers, and which are ``within`` the capacity,
    ``beyond`` it, kept by the filter's control, or there at ``all``.

    ``n``, ``p``, ``many``: nodes of a graph, the range of its share of edges, and how many graphs.
    ``steps``: the capacity.
    ``device``: where all is kept, so that a batch that is picked there need not travel.
    """
    graphs = erdos_renyi(many, n, *p, generator=n)
    kept = within(graphs, steps)
    groups = {
        "within": kept,
        "beyond": ~kept,
        "all": torch.ones_like(kept),
        "matched": matched(graphs, kept, generator=n + 1),
    }
    places = {name: group.nonzero().flatten().to(device) for name, group in groups.items()}
    return graphs.bool().to(device), connected(graphs).to(device), places


@as_sampler
def chosen(config: ChannelsConfig | GraphModelConfig, batch, generator, *, arms: tuple[str, ...], **task):
    """Graphs as the arms choose them from the `pool` of a ``task``, and who is connected; `Channels` gets graphs of its
    own for every run, arm after arm.
    """

    def pick(arm, places, shape, generator):
        def one_of(name):
            many = len(places[name])
            return places[name][torch.randint(many, shape, generator=generator, device=generator.device)]

        if arm not in BEYOND:
            return one_of(arm)
        beyond = torch.rand(shape, generator=generator, device=generator.device) < BEYOND[arm]
        return torch.where(beyond, one_of("beyond"), one_of("within"))

    graphs, answers, places = pool(**task, device=generator.device)
    side_by_side = isinstance(config, ChannelsConfig)
    shape = (batch, config.runs // len(arms)) if side_by_side else (batch,)
    picked = [pick(arm, places, shape, generator) for arm in arms]
    places = torch.cat(picked, -1)
    return graphs[places].float(), answers[places].float()


SMALL = {"n": 5, "p": (0.1, 0.5), "steps": 3, "many": 1000}
EIGHT = {"n": 8, "p": (0.05, 0.4), "steps": 3, "many": 16_384}
TWENTY = {"n": 20, "p": (0.08, 0.08), "steps": 9, "many": 1_000_000}
SAYS = {"within": "within capacity", "all": "as they come", "matched": "thinned as the filter thins"}
RUNS, arms = SEEDS * len(ARMS), {"arms": ARMS}
register(
    "graphs-channels",
    "connectivity by the disentangled transformer, every arm from five seeds side by side (lesson 11)",
    model=Channels,
    sampler=chosen,
    loss=every_pair,
    smoke=(ChannelsConfig(1, RUNS), Schedule(30, 8, 0.1, warmup=1, clip=math.inf), arms | SMALL),
    course=(ChannelsConfig(1, RUNS), Schedule(1000, 32, 0.1, warmup=1, clip=math.inf), arms | EIGHT),
    # of two layers that start from larger numbers, some runs fall behind
    paper=(
        ChannelsConfig(2, RUNS, start=0.02),
        Schedule(10_000, 256, 0.03, clip=math.inf),
        arms | TWENTY | {"many": 100_000},
    ),
)
STANDARD = (  # attention, arms, what attends, width, schedule, graphs
    ("relu", ("within", "all", "matched"), "a decoder that attends by ReLU(QK^T) / n", 64, (8000, 2e-3), 100_000),
    ("standard", ("within", "all"), "the course's decoder", 32, (2000, 5e-3), EIGHT["many"]),
)
for kind, arms, who, width, (steps, lr), many in STANDARD:
    attention = "relu" if kind == "relu" else "softmax"
    for arm in arms:
        register(
            f"graphs-{kind}-{arm}",
            f"connectivity by {who}, graphs {SAYS[arm]} (lesson 11)",
            model=GraphModel,
            sampler=chosen,
            loss=every_pair,
            smoke=(
                GraphModelConfig(5, 16, mlp=2, attention=attention),
                Schedule(40, 16, 1e-2, warmup=5),
                {"arms": (arm,)} | SMALL,
            ),
            course=(
                GraphModelConfig(8, width, attention=attention),
                Schedule(steps, 64, lr, warmup=50),
                {"arms": (arm,)} | EIGHT | {"many": many},
            ),
            paper=(
                GraphModelConfig(20, 512, 2, attention=attention),
                Schedule(1_000_000, 1000, 1e-4),
                {"arms": (arm,)} | TWENTY,
            ),
            stored=torch.bfloat16,
        )
