"""What lesson 06 shows of the order in which memories are learned, by optimiser, start and triggers; and of other seeds
of two models that it trains or ships.
"""

import math
from itertools import product
from typing import cast

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.core.training import Schedule, seeded, train
from companion.topics.bigrams.baselines import bayes
from companion.topics.bigrams.data import markov_chains, trigger_sequences
from companion.topics.bigrams.exercises import adam_step
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.bigrams.probes import memories
from companion.topics.bigrams.recipes import TABLE, known_loss, next_token_loss

SMALL = BigramModelConfig(TABLE.N, 32, 64)
STEPS = {"smoke": 30, "course": 300, "paper": 900}
EVERY = 10  # steps from one look at the memories to the next
BATCH = 32


def _momentum_step(gradient, m, v, step, lr):  # noqa: ARG001 - called as adam_step is
    """Return the change of SGD with momentum 0.9, the new m, and v as it was; all of one shape, stacked."""
    m = 0.9 * m + gradient
    return torch.stack([-lr * m, m, v])


OPTIMISERS = {"SGD": (_momentum_step, 0.03), "Adam": (adam_step.answer, 3e-3)}


@measurement(
    "bigrams-order-of-learning",
    "the step at which each memory of a two-layer model recalls one half, by optimiser, start and triggers",
    cells=[
        {"optimiser": optimiser, "start": start, "triggers": triggers}
        for optimiser, start, triggers in product(OPTIMISERS, ("zero", "random"), ("fixed", "random"))
    ],
    tolerance=0.25,
    because="rounding moves it by one look or two, or past the end where a memory turns at .45, one answer short",
    quick=True,
)
def order_of_learning(seed: int, scale: str, optimiser: str, start: str, triggers: str) -> list[Row]:
    """Train W_O of the second layer and W_K of both, as the lesson's cells do with its seed, and return the first look
    at which `memories` of each is one half; infinity, if it does not get there.
    """
    (rule, lr), fixed = OPTIMISERS[optimiser], triggers == "fixed"
    with seeded(seed + 1):
        model = BigramModel(SMALL)
        trained = {"W_O2": model.outputs(1), "W_K2": model.keys(1), "W_K1": model.keys(0)}
        if start == "random":
            for matrix in trained.values():
                matrix.normal_(std=SMALL.width**-0.5)
    first, second = (block.attention for block in model.decoder.blocks)
    keys = slice(SMALL.width, 2 * SMALL.width)  # between queries and values
    places = {
        "W_O2": (second.out.weight, slice(None)),
        "W_K2": (second.qkv.weight, keys),
        "W_K1": (first.qkv.weight, keys),
    }
    for parameter, _ in places.values():
        parameter.requires_grad_()
    zeros = torch.zeros(SMALL.width, SMALL.width)
    memory = dict.fromkeys(places, (zeros, zeros))
    drawn = trigger_sequences(BATCH * STEPS[scale], SMALL.context, TABLE, fixed=fixed, generator=seed + 1)
    batches = zip(drawn.tokens.split(BATCH), drawn.known.split(BATCH), strict=True)
    asked = TABLE.most_frequent(5 if fixed else 20)
    reached = dict.fromkeys(places, math.inf)

    def look(step: int) -> None:
        for name, recall in memories(model, asked).items():
            if recall >= 0.5:
                reached[name] = min(reached[name], step)

    look(0)
    for step, batch in enumerate(batches, 1):
        model.zero_grad()
        known_loss(model, *batch).backward()
        for name, (parameter, rows) in places.items():
            change, *memory[name] = rule(parameter.grad[rows], *memory[name], step, lr)
            parameter.data[rows] += change
        if step % EVERY == 0:
            look(step)
    return [reached]


@measurement(
    "bigrams-global-first",
    "the step at which a new model knows the global bigram, and that at which it knows those of its context",
    recipes=lambda scale: [recipe("bigrams-noise", scale)],
    tolerance=0.25,
    because="rounding moves it by some looks",
)
def global_first(seed: int, scale: str) -> list[Row]:
    """Train a model on texts with noise and return the first of every second step before which p(noise) is above 1/4
    where the answer is known, and that before which a quarter of the answers is right, the noise left out; infinity, if
    it does not get there.
    """
    plan = recipe("bigrams-noise", scale)
    model = plan.model(seed)
    fresh = trigger_sequences(192, model.config.context, TABLE, K=1, generator=10_000 + seed)
    asked, wanted = fresh.tokens[:, :-1], fresh.tokens[:, 1:][fresh.known]

    @torch.no_grad()
    def look(model: BigramModel) -> list[float]:
        logits = model(asked)[fresh.known]
        right = (logits[:, : TABLE.N].argmax(-1) == wanted).double().mean().item()
        return [logits.softmax(-1)[:, TABLE.N].mean().item(), right]

    steps = Schedule(STEPS[scale], batch=32, lr=1e-3)
    looks = train(model, plan.draw, plan.loss, steps, seed=seed, label="with noise", each=look, every=2).looks
    passed = [[2 * index for index, shares in enumerate(looks) if shares[of] > 0.25] for of in (0, 1)]
    return [{"global": min(passed[0], default=math.inf), "in_context": min(passed[1], default=math.inf)}]


@measurement(
    "bigrams-noise-everywhere",
    "mean p(noise) of a model trained on all positions of texts with noise, whole and without MLPs",
    cells=[{"times": 1}, {"times": 3}],
    recipes=lambda scale: [recipe("bigrams-noise", scale)],
    tolerance=0.15,
    because="runs drift apart by rounding, and seeds differ by as much",
)
def noise_everywhere(seed: int, scale: str, times: int) -> list[Row]:
    """Train the model of "bigrams-noise" ``times`` as long, with a loss on every token and not on known answers alone,
    and return p(noise) on texts without noise: where the answer is known; after characters that are no trigger; and
    where the answer is known once the last MLP's output, then that of both, is 0.
    """
    plan = recipe("bigrams-noise", scale)
    model = cast(BigramModel, plan.model(seed))
    steps = Schedule(plan.schedule.steps * times, batch=plan.schedule.batch, lr=plan.schedule.lr)
    train(
        model, plan.draw, lambda model, tokens, _known: next_token_loss(model, tokens), steps, seed=seed, label="noise"
    )
    fresh = trigger_sequences(192, model.config.context, TABLE, K=1, generator=10_000 + seed)
    asked = fresh.tokens[:, :-1]

    @torch.no_grad()
    def noise(where: torch.Tensor, *removed: int) -> float:
        with model.hooks({f"blocks.{layer}.hook_mlp_out": lambda value, _: 0 * value for layer in removed}):
            return model(asked).softmax(-1)[where][:, TABLE.N].mean().item()

    elsewhere = asked != TABLE.most_frequent(1)[0]
    return [
        {
            "known": noise(fresh.known),
            "elsewhere": noise(elsewhere),
            "without_last_mlp": noise(fresh.known, 1),
            "without_mlps": noise(fresh.known, 0, 1),
        }
    ]


@measurement(
    "bigrams-chains",
    "mean loss on new Markov chains: of a model that was trained on such, of unigram counts and of bigram counts",
    recipes=lambda scale: [recipe("bigrams-chains", scale)],
    tolerance=0.01,
    because="runs drift apart by rounding; seeds differ by less",
)
def of_chains(seed: int, scale: str) -> list[Row]:
    """Train a model and return the mean loss of all that counts, on the same 512 chains."""
    model, _ = recipe("bigrams-chains", scale).train(seed=seed)
    k, length = model.config.vocabulary, model.config.context
    tokens = markov_chains(512, length, k, generator=10_000 + seed).tokens
    inputs, following = tokens[:, :-1], tokens[:, 1:, None]
    with torch.no_grad():
        said = {"model": model(inputs).softmax(-1), "unigram": bayes(inputs, k, order=1), "bigram": bayes(inputs, k)}
    return [{who: -p.gather(2, following).log().mean().item() for who, p in said.items()}]
