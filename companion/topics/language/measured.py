"""What lesson 15 shows of how an induction head forms, in a Llama of two layers that it trains."""

import torch

from companion.core.llama import Llama
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.language.data import said_again
from companion.topics.language.exercises import find_wires
from companion.topics.language.probes import head_maps, streams_and_writers, toward_followers
from companion.topics.language.recipes import second_loss

MARKS = 30  # looks at a model while it trains


@measurement(
    "language-forming",
    "the loss of a small Llama on random tokens said twice, while it learns, beside its heads' looks and its wires",
    cells=[{"trained_on": each} for each in ("said twice", "said once")],
    recipes=lambda scale: [recipe("language-forming", scale)],
    tolerance=0.5,
    because="rounding moves the turn by some looks, and a wire that just counts by one",
)
def forming(seed: int, scale: str, trained_on: str) -> list[Row]:
    """Train a model on texts that are said twice, or whose second half is drawn anew, and look at it thirty times,
    first before it has learned anything, and at the end; what is looked at is always said twice.
    """
    plan = recipe("language-forming", scale).with_(task={"again": trained_on == "said twice"})
    every = plan.schedule.steps // MARKS
    model, history = plan.train(seed=seed, each=forming_look, every=every)
    return [{"step": every * mark} | look for mark, look in enumerate([*history.looks, forming_look(model)])]


@torch.no_grad()
def forming_look(model: Llama, texts: int = 64) -> Row:
    """Return the loss on new texts; how much the best head of each layer looks at the token "before" it, or "after" the
    earlier occurrence; and by how many of four wires, by their queries and by their keys, `find_wires` says that the
    heads of the second layer look after it.
    """
    size, generator = (model.config.context, model.config.vocabulary), torch.Generator().manual_seed(10_000)
    (tokens, second), (others, _) = (said_again(texts, *size, generator=generator) for _ in range(2))
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in (0, 1)]
    first, last = model.run_with_cache(tokens, names=names)[1].values()
    after = toward_followers(tokens)
    (stream, wrote), (_, other) = (streams_and_writers(model, read, 1) for read in (tokens, others))
    heads = head_maps(model, 1)
    needed = find_wires.answer(
        stream=stream,
        wrote=wrote,
        other=other,
        norm=model.blocks[1].norm1.weight,
        heads=heads,
        base=model.config.base,
        asked=after.expand(len(heads), -1, -1, -1),
        toward=torch.zeros(len(heads), *stream.shape),
    )
    return {
        "loss": second_loss(model, tokens, second).item(),
        "before": first.diagonal(-1, dim1=-2, dim2=-1).mean((0, 2)).max().item(),
        "after": (after[:, None] * last).sum((0, 2, 3)).max().item(),
        "queries": int(needed[..., 0].sum()),
        "keys": int(needed[..., 1].sum()),
    }
