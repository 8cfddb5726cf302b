"""Models whose circuits are known, and behaviours of theirs in tokens."""

from functools import cache

import torch
from torch import nn

from companion.core.checkpoints import shipped
from companion.pretrained.circuits.runs import PromptPairs, Runs, draw
from companion.topics.bigrams.recipes import TABLE
from companion.topics.language.by_hand import SLOW, H, planted


def said_twice(random):
    """Ten tokens and again the first of them; corrupted, another one stands before the one that is due."""
    words, due = random.sample(range(32), 10), random.randint(5, 8)
    swapped = list(words)
    swapped[due - 1], swapped[due - 4] = words[due - 4], words[due - 1]
    return [*words, *words[:due]], [*swapped, *words[:due]], [words[due]], [words[due - 3]]


def triggers(random):
    """Two triggers, each with what follows it; the first of them comes again. Corrupted, they change places."""
    often = TABLE.most_frequent(5).tolist()
    this, that = random.sample(often, 2)
    right, wrong, *others = random.sample([token for token in range(TABLE.N) if token not in often], 12)
    clean, corrupted = ([*others, one, right, *others, two, wrong, this] for one, two in ((this, that), (that, this)))
    return clean, corrupted, [right], [wrong]


@cache
def taught(seed: int = 1, pairs: int = 20) -> Runs:
    """Lesson 01's decoder of two layers of four heads."""
    model, _ = shipped("attention-two-layers", seed=seed)
    return Runs(model.requires_grad_(False), draw(model, said_twice, pairs))


@cache
def triggered() -> Runs:
    """Lesson 06's, with one head a layer."""
    model, _ = shipped("bigrams-two-layers", "paper")
    return Runs(model.requires_grad_(False), draw(model, triggers, 20))


@cache
def planted_runs(kind: str) -> tuple[Runs, str, str]:
    """Lesson 15's planted Llama, in which one reader alone is left to write, and to be read by the logits; with the
    names of its writer and of itself.
    """
    of = planted(4, torch.Generator().manual_seed(0))
    at = [reader.kind for reader in of.readers].index(kind)
    [writer] = of.readers[at].keys or of.readers[at].queries
    out = of.model.blocks[1].attention.out.weight
    own = torch.arange(out.shape[1]) // H == at
    said = out[:, own][:, SLOW].mT.clone()
    out[:, ~own] = 0
    of.model.unembed = nn.Linear(said.shape[1], len(said), bias=False).double().requires_grad_(False)
    of.model.unembed.weight.copy_(said)
    right = of.model(of.tokens)[:, -1].argmax(-1)
    wrong = torch.where(of.tokens[:, 0] == right, of.tokens[:, 1], of.tokens[:, 0])
    return Runs(of.model, PromptPairs([of.tokens], [of.others], right, wrong)), f"0.{writer}", f"1.{at}"
