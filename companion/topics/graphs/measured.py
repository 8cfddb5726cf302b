"""What lesson 11 shows of runs longer than its own: two cliques, and a filter for the standard transformer."""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.graphs.data import connected, disjoint, erdos_renyi, within
from companion.topics.graphs.model import ChannelsConfig, GraphModel
from companion.topics.graphs.probes import exact_match
from companion.topics.graphs.recipes import EIGHT, SEEDS

WATCHED = ("within", "5%", "60%")  # the arms that are watched


def clique_margins(
    arms: tuple[str, ...] = WATCHED, *, steps: int = 10_000, every: int = 100, seed: int = 2
) -> Float[Tensor, "marks runs"]:
    """How two cliques of four fare in a run of the recipe graphs-channels that is longer than its own: every so many
    steps the largest logit of a pair from different cliques, which must be below 0; five runs for each arm.

    Raises ValueError for a number below 1.

    ``arms``: of `ARMS`.
    ``steps``, ``every``: how long to train, and from one measurement to the next.
    ``seed``: of the numbers and the graphs.
    """
    at_least(steps=(steps, 1), every=(every, 1))
    graph = disjoint(1, "clique", (4, 4), generator=0)
    apart = connected(graph)[0] == 0
    longer = recipe("graphs-channels").with_(
        config=ChannelsConfig(1, SEEDS * len(arms)), task={"arms": arms} | EIGHT, steps=steps
    )

    @torch.no_grad()
    def largest(model):
        return model(graph[:, None].float())[0, :, apart].amax(1)

    _, history = longer.train(seed=seed, each=largest, every=every)
    return torch.stack(history.looks)


@measurement(
    "graphs-two-cliques-by-steps",
    "the largest logit of a pair from different cliques while three arms train ten times as long, five runs each",
    seeds=(2,),
    recipes=lambda scale: [recipe("graphs-channels", scale)],
    tolerance=0.1,
    because="runs drift apart by rounding, by a small part of what they learn",
)
def two_cliques_by_steps(seed: int, scale: str) -> list[Row]:
    """Measure `clique_margins` every 100 steps of 10,000."""
    margins = clique_margins(steps=101 if scale == "smoke" else 10_000, every=100, seed=seed)
    return [
        {"step": 100 * mark, "arm": arm, "run": run, "logit": logits[SEEDS * place + run]}
        for mark, logits in enumerate(margins.tolist())
        for place, arm in enumerate(WATCHED)
        for run in range(SEEDS)
    ]


@torch.no_grad()
def exact_matches(model: GraphModel, n: int, steps: int, many: int) -> dict[str, float]:
    """Measure the share of graphs of which a model has every pair right: fresh random ones whose components are within
    the capacity, and beyond it; and two chains, cycles and cliques that share the nodes.

    ``model``: gives the logits of a batch of graphs.
    ``n``, ``steps``: nodes of a graph, and the capacity.
    ``many``: how many graphs of each kind, at most.
    """
    fresh = erdos_renyi(40 * many, n, *EIGHT["p"], generator=1_000_003)
    kept = within(fresh, steps)
    sets = {"within": fresh[kept][:many], "beyond": fresh[~kept][:many]}
    halves = ((n + 1) // 2, n // 2)
    sets |= {f"two {kind}s": disjoint(many, kind, halves, generator=10) for kind in ("chain", "cycle", "clique")}
    return {name: exact_match(model(graphs), connected(graphs)).item() for name, graphs in sets.items()}


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
    """Measure `exact_matches` at the end of a run."""
    plan = recipe(f"graphs-relu-{arm}", scale)
    model, _ = plan.train(seed=seed)
    found = exact_matches(model, plan.config.n, plan.task["steps"], 20 if scale == "smoke" else 500)
    return [{"graphs": name, "exact": value} for name, value in found.items()]
