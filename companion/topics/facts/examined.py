"""Where a language model that others trained keeps a fact on its way to the answer: by layer and place, and by head
(after Meng et al. 2022, arXiv:2202.05262, who put noise in the subject's place where here another subject stands).
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.circuits import interchange
from companion.core.extras import Extra
from companion.core.files import FileError, read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROMPT = "The capital of {} is"
CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Japan": "Tokyo",
    "Russia": "Moscow",
    "China": "Beijing",
    "Norway": "Oslo",
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Greece": "Athens",
    "Sweden": "Stockholm",
    "Poland": "Warsaw",
    "Cuba": "Havana",
    "Iran": "Tehran",
    "England": "London",
}
APART = 5  # the other subject is so many facts further
FEWEST, STRONGEST = 3, 8


class AskedFacts(NamedTuple):
    """Prompts of one length, their answers, and the place where the subject ends."""

    subjects: list[str]
    prompts: Int[Tensor, "facts length"]
    answers: Int[Tensor, "facts"]
    place: int


class BroughtBack(NamedTuple):
    """The share of the difference of two answers' logits that one clean value brings back, where all else is of
    another subject.
    """

    streams: Float[Tensor, "layers length"]
    heads: Float[Tensor, "layers heads"]
    attention: Float[Tensor, "layers heads"]


def read_facts(path: str | Path) -> dict[str, str]:
    """Read subjects and answers from a file with two columns and no head: ``France,Paris``. Raises ValueError for one
    that is not there, and for a line that is no pair.
    """
    try:
        rows = [[word.strip() for word in row] for row in csv.reader(io.StringIO(read_text(Path(path)))) if row]
    except (FileError, csv.Error) as error:
        raise ValueError(f"facts = {str(path)!r}: {str(error).removeprefix(f'{Path(path).name}: ')}") from None
    for row in rows:
        if len(row) != 2 or not all(row):
            raise ValueError(
                f"facts = {str(path)!r}: {','.join(row)!r} is not a pair; each line must be subject,answer"
            )
    return dict(rows)


@torch.no_grad()
def examine(
    model: nn.Module, *, name: str, pairs: dict[str, str] | None = None, prompt: str = PROMPT, drawn: bool = True
) -> "Figure | None":
    """Print what the model answers, and what brings an answer back by layer, place and head; return a picture of both.

    ``model``: a language model with the names of a decoder's streams, as `companion.pretrained` loads a Llama.
    ``name``: what it is called in the first line.
    ``pairs``: each subject with its answer; the capitals of sixteen countries unless told.
    ``prompt``: the text that the answer follows, with {} for the subject.
    ``drawn``: whether the picture is made.

    Raises ValueError for a prompt without {}, for fewer than three facts whose answers are one token each and whose
    prompts are as long as one another, and for a model without these names.
    """
    facts = comparable(model, pairs or CAPITALS, prompt)
    found = what_brings_back(model, facts)
    print(f"{name}: {len(facts.subjects)} facts, as in {prompt.format(facts.subjects[0])!r}")
    print(_guesses_report(model, facts))
    words = [model.decode(facts.prompts[:1, place]).strip() for place in range(facts.prompts.shape[1])]
    words[facts.place] = "(subject)"
    print(_report(found, words))
    return _picture(found, words) if drawn else None


def comparable(model: nn.Module, pairs: dict[str, str], prompt: str) -> AskedFacts:
    """Choose the facts that can be compared place by place. Raises ValueError as `examine` does."""
    if prompt.count("{}") != 1:
        raise ValueError(f"prompt = {prompt!r}: must have one {{}}, where the subject stands")
    single = {subject: model.encode(f" {answer}") for subject, answer in pairs.items()}
    single = {
        subject: token[0]
        for subject, token in single.items()
        if len(token) == 1 and model.decode(token).strip() == pairs[subject]  # an unknown word reads otherwise
    }
    tokens = {subject: model.encode(prompt.format(subject)) for subject in single}
    lengths = [len(each) for each in tokens.values()]
    usual = max(set(lengths), key=lengths.count, default=0)
    subjects = [subject for subject in single if len(tokens[subject]) == usual]
    if len(subjects) < FEWEST:
        raise ValueError(
            f"facts: {len(subjects)} of {len(pairs)} can be used; must be at least {FEWEST} whose answer is one token "
            "and whose prompts have equally many tokens"
        )
    prompts = torch.tensor([tokens[subject] for subject in subjects])
    differs = (prompts != prompts[0]).any(0).nonzero()
    place = int(differs.max()) if len(differs) else 0
    return AskedFacts(subjects, prompts, torch.tensor([single[subject] for subject in subjects]), place)


def _guesses_report(model: nn.Module, facts: AskedFacts) -> str:
    """Each subject with the model's first guess, and the answer's probability and rank."""
    likely = model(facts.prompts, only_last=True)[:, -1].softmax(-1)
    share = likely.gather(1, facts.answers[:, None])
    ranks = (likely > share).sum(1)
    lines = [f"The answer is the first guess for {int((ranks == 0).sum())} of {len(ranks)}"]
    lines.append(f"{'subject':>12} {'answer':>12} {'p(answer)':>10} {'rank':>5}  first guess")
    for row, subject in enumerate(facts.subjects):
        answer, guess = (model.decode(one).strip() for one in (facts.answers[row, None], likely[row].topk(1).indices))
        lines.append(f"{subject:>12} {answer:>12} {share[row, 0]:10.3f} {ranks[row]:5d}  {guess}")
    return "\n".join(lines)


@torch.no_grad()
def what_brings_back(model: nn.Module, facts: AskedFacts, layers: Sequence[int] | None = None) -> BroughtBack:
    """Run each prompt with another's subject, and put back one value of the clean run at a time, at all layers or at
    those of ``layers``. Raises ValueError for facts that all have the same answer.
    """
    layers = range(model.layers) if layers is None else layers
    apart = APART % len(facts.subjects) or 1
    others, wrong = facts.prompts.roll(-apart, 0), facts.answers.roll(-apart, 0)
    different = wrong != facts.answers
    if not different.any():
        raise ValueError("facts: all have the same answer; must have at least two different ones")
    streams = [f"blocks.{layer}.hook_resid_pre" for layer in layers]
    heads = [f"blocks.{layer}.attn.hook_z" for layer in layers]
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
    names = [*streams, *heads, *patterns]
    logits, clean = model.run_with_cache(facts.prompts, names=names, only_last=True)
    spoilt, other = model.run_with_cache(others, names=streams, only_last=True)

    def gap(logits: Tensor) -> Tensor:
        return logits.gather(1, facts.answers[:, None])[:, 0] - logits.gather(1, wrong[:, None])[:, 0]

    best, worst = gap(logits[:, -1]), gap(spoilt[:, -1])

    def share(layer: int, stream: str, name: str, **where) -> Tensor:
        """From this layer on: what comes before is as it was."""
        x = other[stream]
        with model.hooks(interchange(name, clean[name], **where)):
            for block in model.body.blocks[layer:]:
                x = block(x)
        return ((gap(model.body.norm(x[:, -1]) @ model.unembedding.mT) - worst) / (best - worst))[different].mean()

    length = facts.prompts.shape[1]
    at_layers = list(zip(layers, streams, heads, strict=True))
    by_place = [[share(layer, x, x, place=place) for place in range(length)] for layer, x, _ in at_layers]
    by_head = [[share(layer, x, z, head=head, place=-1) for head in range(model.heads)] for layer, x, z in at_layers]
    looks = torch.stack([clean[name][:, :, -1, facts.place].mean(0) for name in patterns])
    return BroughtBack(torch.tensor(by_place), torch.tensor(by_head), looks)


def _report(found: BroughtBack, words: list[str]) -> str:
    """Both tables as text."""
    lines = ["\nWith another subject, the clean stream before a layer brings back this share of the answer, at"]
    lines.append(f"{'layer':>9} " + " ".join(f"{word[:10]:>10}" for word in words))
    lines += [
        f"{layer:9d} " + " ".join(f"{round(share, 2) + 0.0:10.2f}" for share in row)
        for layer, row in enumerate(found.streams.tolist())
    ]
    lines.append("\nWhat one head finds at the last place brings back, and how much it looks at the subject from there")
    lines.append(f"{'head':>9} {'share':>10} {'attention':>10}")
    width = found.heads.shape[1]
    for at in found.heads.flatten().argsort(descending=True)[:STRONGEST].tolist():
        layer, head = divmod(at, width)
        lines.append(f"{f'{layer}.{head}':>9} {found.heads[layer, head]:10.2f} {found.attention[layer, head]:10.2f}")
    return "\n".join(lines)


def _picture(found: BroughtBack, words: list[str]) -> "Figure":
    """Draw the shares by layer and place, and by layer and head."""
    with Extra("lessons"):
        from matplotlib.figure import Figure  # noqa: PLC0415

        from companion.lesson.figures import style_figures  # noqa: PLC0415
    style_figures()
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    places, heads = figure.subplots(1, 2)
    options = {"aspect": "auto", "origin": "lower", "cmap": "Blues", "vmin": 0, "vmax": 1}
    places.imshow(found.streams.numpy(), **options)
    places.set_xticks(range(len(words)), words, rotation=30)
    image = heads.imshow(found.heads.numpy(), **options)
    places.set(ylabel="layer", title="the stream before a layer")
    layer, head = divmod(int(found.heads.argmax()), found.heads.shape[1])
    heads.set(xlabel="head", title=f"one head; most by {layer}.{head}: {found.heads.max():.0%}")
    for ax in (places, heads):
        ax.grid(visible=False)
    figure.colorbar(image, ax=[places, heads], label="share of the answer that comes back")
    return figure
