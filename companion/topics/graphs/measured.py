"""What lesson 11 shows of runs longer than its own: two cliques, a filter for the standard transformer, two layers."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.core.measuring import Row, measurement
from companion.core.recipe import Recipe, recipe
from companion.topics.graphs.data import connected, disjoint, erdos_renyi, reach, within
from companion.topics.graphs.model import ChannelsConfig
from companion.topics.graphs.probes import exact_match, without
from companion.topics.graphs.recipes import ARMS, EIGHT, SEEDS

WATCHED = ("within", "5%", "60%")  # the arms that are watched
FILTERED = ("within", "all", "matched")  # those that say what the filter does
TWICE = (*FILTERED, "60%")  # those of two layers
PARTS = 10  # of the training of two layers
LEFT_OUT = ("out of reach", "random")  # which connected pairs the loss leaves out


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
    "graphs-eight-by-budget",
    "how many graphs are right, five models for each of six arms, after 1,000, 3,000 and 10,000 steps",
    seeds=(1, 2, 3),
    cells=[{"times": times} for times in (1, 3, 10)],
    recipes=lambda scale: [recipe("graphs-channels", scale)],
    tolerance=math.inf,
    because="near a threshold rounding decides which of five runs is right",
)
def eight_by_budget(seed: int, scale: str, times: int) -> list[Row]:
    """Train five runs of every arm, the rate falling over all the steps, and measure what each gets right: fresh random
    graphs, and chains, cycles and cliques; all of it again without the degree channel, and at
    worst, but for graphs beyond capacity, with the bias at 0 as well; and, with only the readout's degrees removed, a
    clique beside a lone node.
    """
    plan = recipe("graphs-channels", scale)
    sets = of_eight(plan.task, scale)
    model, _ = plan.with_(steps=times * plan.schedule.steps).train(seed=seed)

    @torch.no_grad()
    def right(model):
        found = {name: exact_match(model(graphs[:, None]), connected(graphs)) for name, graphs in sets.items()}
        return {name: values.view(len(ARMS), SEEDS).tolist() for name, values in found.items()}

    silent = without(model, "degree")
    whole, cut, unread = right(model), right(silent), right(without(model, "degree", "readout"))["clique and node"]
    silent.get_parameter("bias").data.zero_()
    unbiased = right(silent)
    return [
        {"arm": arm, "run": run}
        | {name.replace(" ", "_"): values[place][run] for name, values in whole.items()}
        | {f"{name.replace(' ', '_')}_without_degrees": values[place][run] for name, values in cut.items()}
        | {"without_degrees_and_bias": min(values[place][run] for name, values in unbiased.items() if name != "beyond")}
        | {"clique_and_node_without_readout": unread[place][run]}
        for place, arm in enumerate(ARMS)
        for run in range(SEEDS)
    ]


@measurement(
    "graphs-left-out-by-budget",
    "how many graphs are right if the loss leaves out answers out of reach, after 1,000, 3,000 and 10,000 steps",
    seeds=(1, 2, 3),
    cells=[{"times": times} for times in (1, 3, 10)],
    recipes=lambda scale: [recipe("graphs-channels", scale)],
    tolerance=math.inf,
    because="near a threshold rounding decides which of five runs is right",
)
def left_out_by_budget(seed: int, scale: str, times: int) -> list[Row]:
    """Train ten runs on graphs of which 60 % are beyond the capacity. For five the loss leaves out connected pairs out
    of reach, for the other five as many random connected pairs. Measure what each gets right, as in `eight_by_budget`.
    """
    plan = recipe("graphs-channels", scale)
    sets = of_eight(plan.task, scale)
    config = ChannelsConfig(1, SEEDS * len(LEFT_OUT))
    plan = plan.with_(config=config, task=plan.task | {"arms": ("60%",)}, steps=times * plan.schedule.steps)
    generator = torch.Generator().manual_seed(seed)

    def left_out(model, graphs, answers):
        out = (reach(graphs, plan.task["steps"]) != answers).float()
        paths = answers[:, SEEDS:] * (1 - torch.eye(graphs.shape[-1]))
        drawn = torch.rand(paths.shape, generator=generator)
        out[:, SEEDS:] = paths * (drawn < out[:, SEEDS:].sum() / paths.sum())
        return config.runs * F.binary_cross_entropy_with_logits(model(graphs), answers, 1 - out)

    model, _ = replace(plan, loss=left_out).train(seed=seed, device="cpu")
    with torch.no_grad():
        found = {name: exact_match(model(graphs[:, None]), connected(graphs)) for name, graphs in sets.items()}
    return [
        {"left_out": kind, "run": run}
        | {name.replace(" ", "_"): values[SEEDS * place + run].item() for name, values in found.items()}
        for place, kind in enumerate(LEFT_OUT)
        for run in range(SEEDS)
    ]


@measurement(
    "graphs-relu-by-filter",
    "exact matches of the standard transformer with ReLU attention, trained with and without the filter",
    seeds=range(10),
    cells=[{"arm": arm} for arm in FILTERED],
    recipes=lambda scale: [recipe(f"graphs-relu-{arm}", scale) for arm in FILTERED],
    tolerance=0.3,
    because="what a run does beyond its training graphs hangs on rounding; what separates the arms is near 1",
)
def relu_by_filter(seed: int, scale: str, arm: str) -> list[Row]:
    """Train a decoder, and measure the share of graphs of which it has every pair right: fresh random ones whose
    components are within the capacity, and beyond it; and two chains, cycles and cliques that share the nodes.
    """
    plan, many = recipe(f"graphs-relu-{arm}", scale), 20 if scale == "smoke" else 500
    model, _ = plan.train(seed=seed)
    with torch.no_grad():
        return [
            {"graphs": name, "exact": exact_match(model(graphs), connected(graphs)).item()}
            for name, graphs in asked(plan.task, many, copies=many).items()
        ]


def asked(task: dict, many: int, copies: int) -> dict[str, Float[Tensor, "_ n n"]]:
    """Draw what models that were trained on a ``task`` are asked about: ``many`` fresh random graphs whose components
    are within the capacity, and as many, if there are, beyond it; and two chains, cycles and cliques that share the
    nodes, under ``copies`` names.
    """
    n = task["n"]
    fresh = erdos_renyi(40 * many, n, *task["p"], generator=1_000_003)
    kept = within(fresh, task["steps"])
    halves = ((n + 1) // 2, n // 2)
    sets = {"within": fresh[kept][:many], "beyond": fresh[~kept][:many]}
    return sets | {
        f"two {kind}s": disjoint(copies, kind, halves, generator=10) for kind in ("chain", "cycle", "clique")
    }


def of_eight(task: dict, scale: str) -> dict[str, Float[Tensor, "_ n n"]]:
    """Draw what the lesson's models of a ``task`` are `asked`, two small cycles, and a clique beside a lone node."""
    n, sets = task["n"], asked(task, 20 if scale == "smoke" else 1000, copies=1)
    sets["two cycles"] = disjoint(1, "cycle", (3, 3) + (1,) * (n - 6), generator=10)
    sets["clique and node"] = disjoint(1, "clique", (n - 1, 1), generator=10)
    return sets


def two_layers_plan(scale: str) -> Recipe:
    """The recipe graphs-channels at its published size, but for a trial, for the arms in `TWICE`."""
    plan = recipe("graphs-channels", "paper" if scale == "course" else scale)
    config = replace(plan.config, layers=2, runs=SEEDS * len(TWICE))
    return plan.with_(config=config, task=plan.task | {"arms": TWICE})


@measurement(
    "graphs-two-layers",
    f"exact matches of five disentangled transformers of two layers an arm, after each of {PARTS} parts of training",
    seeds=(0,),
    recipes=lambda scale: [two_layers_plan(scale)],
    tolerance=math.inf,
    because="it is measured on a GPU, where other batches are drawn",
    gpu=True,
)
def two_layers(seed: int, scale: str) -> list[Row]:
    """Train five runs of each arm in `TWICE` side by side, and measure the share of graphs of which each has every
    pair right, also without its degree channel, and the algorithm's share of the score energy of either layer.
    """
    plan = two_layers_plan(scale)
    sets = {name: (graphs[:, None], connected(graphs)) for name, graphs in asked(plan.task, 300, copies=10).items()}

    @torch.no_grad()
    def look(model):
        found = {
            name.replace(" ", "_"): exact_match(model(graphs), answers) for name, (graphs, answers) in sets.items()
        }
        graphs, answers = sets["within"]
        found["without_degrees"] = exact_match(without(model, "degree")(graphs), answers)
        for layer, stream in enumerate(model.streams(graphs[:12])[:-1]):
            local, degree = (scores.square().sum((0, 2, 3)) for scores in model.scores(stream, layer))
            found[f"energy_{layer + 1}"] = local / (local + degree)
        return found

    model, history = plan.train(seed=seed, each=look, every=plan.schedule.steps // PARTS)
    return [
        {"part": part, "arm": arm, "run": run}
        | {name: values[SEEDS * place + run].item() for name, values in found.items()}
        for part, found in enumerate([*history.looks, look(model)])
        for place, arm in enumerate(TWICE)
        for run in range(SEEDS)
    ]
