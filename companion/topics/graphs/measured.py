"""What lesson 11 shows of runs longer than its own: two cliques, and a filter for the standard transformer."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.graphs.data import connected, disjoint, erdos_renyi, within
from companion.topics.graphs.model import ChannelsConfig
from companion.topics.graphs.probes import exact_match
from companion.topics.graphs.recipes import EIGHT, SEEDS

WATCHED = ("within", "5%", "60%")  # the arms that are watched


def clique_margins(steps: int, seed: int) -> Float[Tensor, "marks runs"]:
    """Train five runs of each arm in `WATCHED` for so many steps of the recipe graphs-channels, and measure how two
    cliques of four fare every 100 steps: the largest logit of a pair from different cliques, which must be below 0.
    """
    graph = disjoint(1, "clique", (4, 4), generator=0)
    apart = connected(graph)[0] == 0
    config = ChannelsConfig(1, SEEDS * len(WATCHED))
    longer = recipe("graphs-channels").with_(config=config, task={"arms": WATCHED} | EIGHT, steps=steps)

    @torch.no_grad()
    def largest(model):
        return model(graph[:, None].float())[0, :, apart].amax(1)

    _, history = longer.train(seed=seed, each=largest, every=100)
    return torch.stack(history.looks)


@measurement(
    "graphs-two-cliques-by-steps",
    "the largest logit of a pair from different cliques while three arms train ten times as long, five runs each",
    seeds=(2,),
    recipes=lambda scale: [recipe("graphs-channels", scale)],
    tolerance=math.inf,
    because="from step 600 on a single run within capacity is another by rounding alone; the signs at the end stay",
)
def two_cliques_by_steps(seed: int, scale: str) -> list[Row]:
    """Measure `clique_margins` over 10,000 steps."""
    return [
        {"step": 100 * mark, "arm": arm, "run": run, "logit": logits[SEEDS * place + run]}
        for mark, logits in enumerate(clique_margins(101 if scale == "smoke" else 10_000, seed).tolist())
        for place, arm in enumerate(WATCHED)
        for run in range(SEEDS)
    ]


@measurement(
    "graphs-relu-by-filter",
    "exact matches of the standard transformer with ReLU attention, trained with and without the filter",
    seeds=range(10),
    cells=[{"arm": arm} for arm in ("within", "all", "matched")],
    recipes=lambda scale: [recipe(f"graphs-relu-{arm}", scale) for arm in ("within", "all", "matched")],
    tolerance=0.3,
    because="what a run does beyond its training graphs hangs on rounding; what separates the arms is near 1",
)
def relu_by_filter(seed: int, scale: str, arm: str) -> list[Row]:
    """Train a decoder, and measure the share of graphs of which it has every pair right: fresh random ones whose
    components are within the capacity, and beyond it; and two chains, cycles and cliques that share the nodes.
    """
    plan, many = recipe(f"graphs-relu-{arm}", scale), 20 if scale == "smoke" else 500
    model, _ = plan.train(seed=seed)
    n = plan.config.n
    fresh = erdos_renyi(40 * many, n, *EIGHT["p"], generator=1_000_003)
    kept = within(fresh, plan.task["steps"])
    sets = {"within": fresh[kept][:many], "beyond": fresh[~kept][:many]}
    halves = ((n + 1) // 2, n // 2)
    sets |= {f"two {kind}s": disjoint(many, kind, halves, generator=10) for kind in ("chain", "cycle", "clique")}
    with torch.no_grad():
        return [
            {"graphs": name, "exact": exact_match(model(graphs), connected(graphs)).item()}
            for name, graphs in sets.items()
        ]
