"""Lesson 06's probes on a language model that others trained: which heads are induction heads, what the best one is
worth, and which MLP holds the global bigram.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.extras import Extra
from companion.topics.bigrams.probes import copying, prefix_matching, truncated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXTS, PERIOD = 8, 50  # as many random texts, of as many tokens said twice
STRONGEST, OTHERS = 8, 8
SHARE = 0.1  # of the singular values of an MLP's first matrix that a cut leaves
GLOBAL = " the"  # what follows "in" in any text
PLACES = {  # Chen, Bruna and Bietti (2024) ask Pythia about Madrid
    "Madrid is located in": " Spain",
    "Paris is located in": " France",
    "Tokyo is located in": " Japan",
    "Cairo is located in": " Egypt",
    "Oslo is located in": " Norway",
}


class Heads(NamedTuple):
    """Scores of each head; what the model loses on tokens said for the first time and for the second."""

    prefix: Float[Tensor, "layers heads"]
    copied: Float[Tensor, "layers heads"]
    first: float
    second: float


@torch.no_grad()
def examine(model: nn.Module, *, name: str, drawn: bool = True) -> "Figure | None":
    """Print every head's scores, ablations and the global bigram's place; return a picture of the scores, if it is
    to be ``drawn``.

    Raises ValueError where the ``model`` reads fewer than four tokens.

    ``model``: a language model with the course's hooks, its tokenizer, and `patterns`, `direct` and `inputs`, as
        `companion.pretrained` loads it.
    ``name``: what it is called in the first line.
    """
    texts = _repeated(model)
    heads = _score(model, texts)
    print(f"{name}: {model.layers} layers of {model.heads} heads")
    print(_heads_report(heads))
    print(_ablation_report(model, texts, heads))
    print(_places_report(model))
    return _picture(heads) if drawn else None


def _repeated(model: nn.Module) -> Int[Tensor, "texts length"]:
    """Random tokens said twice, after the token for the beginning of a text if there is one.

    Raises ValueError for a context that is too short to repeat anything.
    """
    period = min(PERIOD, (model.context - 1) // 2)
    if period < 2:
        raise ValueError(f"context = {model.context}: must be at least 5, to hold two tokens twice after the first")
    drawn = torch.randint(model.tokens, (TEXTS, period), generator=torch.Generator().manual_seed(0))
    begin = model.tokenizer.token_to_id("<|endoftext|>")
    begins = begin is not None and begin < model.tokens  # it may have been added, without a row in the embedding
    return torch.cat([drawn.new_full((TEXTS, begins), begin if begins else 0), drawn, drawn], 1)


def _period_of(texts: Int[Tensor, "texts length"]) -> int:
    """How many tokens are said twice."""
    return texts.shape[1] // 2


def _losses(model: nn.Module, texts: Int[Tensor, "texts length"]) -> tuple[float, float]:
    """The mean loss on the tokens said for the first time and for the second, but for the first of each."""
    each = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], reduction="none")
    period = _period_of(texts)
    return each[:, -2 * period + 1 : -period].mean().item(), each[:, -period + 1 :].mean().item()


def _score(model: nn.Module, texts: Int[Tensor, "texts length"]) -> Heads:
    """Prefix matching and copying of every head."""
    prefix = torch.stack([prefix_matching(pattern, _period_of(texts)) for pattern in model.patterns(texts)])
    names = [f"blocks.{layer}.attn.hook_v" for layer in range(model.layers)]
    _, values = model.run_with_cache(texts, names=names)
    candidates, own = texts.unique(return_inverse=True)
    copied = [copying(model.direct(layer, values[name], candidates), own) for layer, name in enumerate(names)]
    return Heads(prefix, torch.stack(copied), *_losses(model, texts))


def _loss_without(model: nn.Module, texts: Int[Tensor, "texts length"], layer: int, head: int) -> float:
    """The loss on what is said for the second time, with one head's output replaced by its mean.

    ``model``, ``texts``: what reads, and what is read.
    ``layer``, ``head``: which head, counted from 0.
    """

    def mean(z: Tensor, _: str) -> Tensor:
        z = z.clone()
        z[:, head] = z[:, head].mean((0, 1))
        return z

    with model.hooks({f"blocks.{layer}.attn.hook_z": mean}):
        return _losses(model, texts)[1]


def _heads_report(heads: Heads) -> str:
    """The heads that match prefixes best, as lines."""
    order = heads.prefix.flatten().argsort(descending=True)[:STRONGEST].tolist()
    width = heads.prefix.shape[1]
    lines = [
        f"\nRandom tokens said twice: loss {heads.first:.2f} the first time, {heads.second:.2f} the second",
        f"{'head':>9} {'prefix matching':>16} {'copying':>8}",
    ]
    lines += [
        f"{f'{at // width}.{at % width}':>9} {heads.prefix.flatten()[at]:16.2f} {heads.copied.flatten()[at]:8.2f}"
        for at in order
    ]
    return "\n".join([*lines, f"{'median':>9} {heads.prefix.median():16.2f} {heads.copied.median():8.2f}"])


def _ablation_report(model: nn.Module, texts: Int[Tensor, "texts length"], heads: Heads) -> str:
    """The best head taken out, beside others of its layer, drawn at random."""
    layer, best = divmod(int(heads.prefix.argmax()), model.heads)
    drawn = torch.randperm(model.heads, generator=torch.Generator().manual_seed(0)).tolist()
    others = [head for head in drawn if head != best][:OTHERS]
    lines = [f"\nOne head of layer {layer} taken out: what the second time then costs more"]
    lines.append(f"{f'{layer}.{best}':>9} {_loss_without(model, texts, layer, best) - heads.second:+8.3f}")
    if others:
        costs = torch.tensor([_loss_without(model, texts, layer, head) - heads.second for head in others])
        lines.append(
            f"{'others':>9} {costs.mean():+8.3f} on average, {costs.max():+.3f} at most, of {len(others)} at random"
        )
    return "\n".join(lines)


def _places_report(model: nn.Module) -> str:
    """p(the) and p(Spain) after "Madrid is located in", with each MLP's first matrix cut in turn."""
    singles = [
        (model.encode(text), answer[0])
        for text, word in PLACES.items()
        if len(answer := model.encode(word)) == 1 and model.tokenizer.decode(answer).strip() == word.strip()
    ]
    rival = model.encode(GLOBAL)
    if not singles or len(rival) != 1 or model.tokenizer.decode(rival).strip() != GLOBAL.strip():
        return "\nGlobal against in-context: its tokenizer has no single tokens for the words that would compete"

    def said() -> str:
        likely = [(model(torch.tensor([tokens]))[0, -1].softmax(-1), answer) for tokens, answer in singles]
        shares = torch.tensor([[p[rival[0]], p[answer]] for p, answer in likely]).mean(0)
        return f"{shares[0]:8.3f} {shares[1]:12.3f}"

    lines = [
        f'\n"Madrid is located in" and its like ({len(singles)}), with {SHARE:.0%} of an MLP\'s first matrix left',
        f"{'cut in':>9} {'p(the)':>8} {'p(country)':>12}",
        f"{'nowhere':>9} {said()}",
    ]
    for layer, matrix in enumerate(model.inputs):
        whole = matrix.clone()
        matrix.copy_(truncated(matrix, SHARE))
        lines.append(f"{f'layer {layer}':>9} {said()}")
        matrix.copy_(whole)
    return "\n".join(lines)


def _picture(heads: Heads) -> "Figure":
    """Draw every head by its two scores, with the best ones named."""
    with Extra("lessons"):
        from matplotlib.figure import Figure  # noqa: PLC0415

        from companion.lesson.figures import COLORS, style_figures  # noqa: PLC0415
    style_figures()
    figure = Figure(figsize=(6, 4.5), dpi=150)
    ax = figure.subplots()
    ax.scatter(heads.prefix.flatten(), heads.copied.flatten(), s=14, color=COLORS["transformer"])
    width = heads.prefix.shape[1]
    for at in heads.prefix.flatten().argsort(descending=True)[:STRONGEST].tolist():
        place = (heads.prefix.flatten()[at].item(), heads.copied.flatten()[at].item())
        ax.annotate(f"{at // width}.{at % width}", place, xytext=(4, 3), textcoords="offset points", fontsize="small")
    ax.set(xlabel="prefix matching", ylabel="copying", xlim=(-0.03, 1.05), ylim=(-0.03, 1.05))
    layer, best = divmod(int(heads.prefix.argmax()), width)
    ax.set_title(f"Head {layer}.{best} looks after the earlier occurrence {heads.prefix.max():.0%} of the time")
    return figure
