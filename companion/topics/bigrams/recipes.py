"""Recipes of lesson 06: the trigger-bigram task with one layer and two, with noise, and n-grams that each sequence has
of its own.

Published setting (Bietti et al. 2023, arXiv:2306.00802, section 4): N = 65 characters, T = 256, K = 5 fixed triggers,
width 256, SGD with momentum, 1000 steps of 512 sequences. ``paper`` keeps the sizes, but takes Adam, small batches and
a decay: a tenth of the sequences. ``course`` is half as wide and a quarter as long.
"""

from functools import partial

import torch
import torch.nn.functional as F

from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.bigrams.data import Bigrams, markov_chains, trigger_sequences
from companion.topics.bigrams.model import BigramModel, BigramModelConfig

TABLE = Bigrams.shakespeare()


def known_loss(model, tokens, known):
    """Cross-entropy of the next token where the context determines it: at a trigger that has occurred before.

    ``tokens`` (batch, length + 1), ``known`` (batch, length), as the sampler gives them; the mean over known places.
    """
    return F.cross_entropy(model(tokens[:, :-1])[known], tokens[:, 1:][known])


def known_accuracy(model, tokens, known):
    """The share of the known tokens (see `known_loss`) that have the largest logit; a tensor of no dimensions."""
    with torch.no_grad():
        return (model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:])[known].float().mean()


def next_token_loss(model, tokens):
    """Cross-entropy of every next token, the mean over ``tokens`` (batch, length + 1) but the first column."""
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@as_sampler
def trigger_bigrams(config: BigramModelConfig, batch, generator, **task):
    """Sequences of the trigger-bigram task (`trigger_sequences`, with ``task``), and where they say the next token."""
    return trigger_sequences(batch, config.context, TABLE, generator=generator, **task)[:2]


@as_sampler
def chains(config: BigramModelConfig, batch, generator):
    """Markov chains, another in every sequence."""
    return (markov_chains(batch, config.context, config.vocabulary, generator=generator).tokens,)


N = TABLE.N


def _one_layer(context: int, width: int) -> BigramModelConfig:
    return BigramModelConfig(N, context, width, layers=1, trains="everything")


def _with_mlps(vocabulary: int, context: int, width: int) -> BigramModelConfig:
    return BigramModelConfig(vocabulary, context, width, mlp=2, trains="everything")


_on_known_tokens = partial(
    register, model=BigramModel, sampler=trigger_bigrams, loss=known_loss, needs_float64=True, stored=torch.int8
)

_on_known_tokens(
    "bigrams-two-layers",
    "two layers, of which three memories are trained, on the trigger-bigram task (lesson 06)",
    smoke=(BigramModelConfig(N, 32, 64), Schedule(steps=60, batch=16, lr=5e-3)),
    course=(BigramModelConfig(N, 64, 128), Schedule(steps=300, batch=64, lr=3e-3)),
    paper=(BigramModelConfig(N, 256, 256), Schedule(steps=2500, batch=16, lr=1e-3)),
)
_on_known_tokens(
    "bigrams-one-layer",
    "one layer, everything trained, on the trigger-bigram task (lesson 06)",
    smoke=(_one_layer(32, 64), Schedule(steps=60, batch=16, lr=5e-3)),
    course=(_one_layer(64, 128), Schedule(steps=300, batch=64, lr=3e-3)),
    paper=(_one_layer(256, 256), Schedule(steps=3000, batch=16, lr=1.5e-3)),
)
_on_known_tokens(
    "bigrams-one-layer-long",
    "one layer, everything trained, fifteen times as long as two: is its loss flat then? (lesson 06)",
    smoke=(_one_layer(32, 64), Schedule(steps=120, batch=16, lr=5e-3)),
    course=(_one_layer(64, 128), Schedule(steps=4500, batch=32, lr=3e-3)),
    paper=(_one_layer(256, 256), Schedule(steps=45_000, batch=16, lr=1.5e-3)),
)
_on_known_tokens(
    "bigrams-noise",
    "two layers with MLPs, one trigger, every second answer replaced by a noise token (lesson 06)",
    sampler=partial(trigger_bigrams, K=1, noise=0.5),
    smoke=(_with_mlps(N + 1, 32, 64), Schedule(steps=60, batch=16, lr=3e-3)),
    course=(_with_mlps(N + 1, 64, 128), Schedule(steps=400, batch=32, lr=1e-3)),
    paper=(_with_mlps(N + 1, 256, 256), Schedule(steps=2500, batch=64, lr=1e-3)),
)
register(
    "bigrams-chains",
    "two layers with MLPs on Markov chains, another in every sequence (lesson 06)",
    model=BigramModel,
    sampler=chains,
    loss=next_token_loss,
    needs_float64=True,
    smoke=(_with_mlps(3, 24, 32), Schedule(steps=60, batch=32, lr=5e-3)),
    course=(_with_mlps(3, 64, 64), Schedule(steps=1500, batch=64, lr=3e-3)),
    paper=(_with_mlps(3, 100, 128), Schedule(steps=6000, batch=64, lr=1e-3)),
    stored=torch.int8,
)
