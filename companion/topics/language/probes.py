"""What a search for circuits needs of a Llama: its heads as matrices, what they wrote, its rotation replaced, and how a
look at a name is weighed.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.circuits import Part
from companion.core.hooks import Hook, Hooked

Turn = Callable[[Float[Tensor, "batch heads length h"]], Float[Tensor, "batch heads length h"]]


def turned_by(turn: Turn, layers: int) -> dict[str, Hook]:
    """Return the hooks by which a Llama turns queries and keys by ``turn`` instead, in each of so many ``layers``.

    >>> with model.hooks(turned_by(lambda x: rotary(x, base), layers)):
    ...     logits = model(tokens)
    """
    before = {}

    def keep(value: Tensor, name: str) -> None:
        before[name] = value

    def replace(_: Tensor, name: str) -> Tensor:
        return turn(before.pop(name.replace("hook_rot_", "hook_")))

    return {
        f"blocks.{layer}.attn.hook_{turned}{side}": replace if turned else keep
        for layer in range(layers)
        for side in "qk"
        for turned in ("", "rot_")
    }


def head_maps(model: Hooked, layer: int) -> Float[Tensor, "heads 4 h width"]:
    """Return W_Q, W_K, W_V and W_O of each query head of a Llama's layer: all read, or write, the stream with their
    rows; heads that share keys and values have the same.
    """
    attention = model.body.blocks[layer].attention
    maps = (attention.queries.weight, attention.keys.weight, attention.values.weight, attention.out.weight.mT)
    by_head = [weight.unflatten(0, (-1, attention.h)) for weight in maps]
    return torch.stack([each.repeat_interleave(len(by_head[0]) // len(each), 0) for each in by_head], 1)


@torch.no_grad()
def streams_and_writers(
    model: Hooked, tokens: Int[Tensor, "batch length"], layer: int
) -> tuple[Float[Tensor, "batch length width"], Float[Tensor, "writers batch length width"]]:
    """Return the stream that a Llama's layer reads, before its norm, and what each head of an earlier layer has added
    to it: layer by layer, head by head, so that head 16.0 of nine a layer is writer 144.
    """
    stream, written = f"blocks.{layer}.hook_resid_pre", [Part(earlier, 0).written for earlier in range(layer)]
    _, cache = model.run_with_cache(tokens, names=[*written, stream], only_last=True)
    return cache[stream], torch.cat([cache[name].transpose(0, 1) for name in written])


def toward_receivers(
    tokens: Int[Tensor, "texts length"], receivers: Sequence[int], givers: Sequence[int]
) -> Float[Tensor, "texts length length"]:
    """Return by what a pattern is weighed so that its sum says how much more the last word looks at the receiver than
    at the giver, each where it first stands, as a mean over texts.

    ``tokens``: of texts as `companion.topics.language.data.indirect_objects` draws them.
    ``receivers``, ``givers``: the token of each text's name.
    """
    weights = torch.zeros(*tokens.shape, tokens.shape[1], device=tokens.device)
    for text, names in enumerate(zip(receivers, givers, strict=True)):
        for name, sign in zip(names, (1, -1), strict=True):
            weights[text, -1, tokens[text].tolist().index(name)] = sign / len(tokens)
    return weights


def toward_followers(tokens: Int[Tensor, "texts length"]) -> Float[Tensor, "texts length length"]:
    """Return by what a pattern is weighed so that its sum says how much is looked at what followed the token's earlier
    occurrences, as a mean over all places whose token there was before.
    """
    weights = torch.zeros(*tokens.shape, tokens.shape[1], device=tokens.device)
    weights[..., 1:] = tokens[:, :, None] == tokens[:, None, :-1]
    weights = weights.tril()  # what follows the place itself is not there yet
    return weights / weights.any(-1).sum()


@torch.no_grad()
def streams_at(
    model: Hooked, tokens: Int[Tensor, "batch length"], layers: int, place: int
) -> Float[Tensor, "layers batch width"]:
    """Return the streams before the first ``layers`` of a Llama, the ``model``, at a ``place`` of ``tokens``."""
    names = [f"blocks.{layer}.hook_resid_pre" for layer in range(layers)]
    _, cache = model.run_with_cache(tokens, names=names, only_last=True)
    return torch.stack([cache[name][:, place] for name in names])


def answer_places(gains: Float[Tensor, "texts vocabulary"], answers: Int[Tensor, " texts"]) -> Int[Tensor, " texts"]:
    """Return the place of each text's answer among all tokens, 1 for the one that gains most."""
    return 1 + (gains > gains.gather(1, answers[:, None])).sum(1)


def median_place(gains: Float[Tensor, "texts vocabulary"], answers: Int[Tensor, " texts"]) -> float:
    """Return the median over texts of their `answer_places`."""
    return answer_places(gains, answers).float().median().item()
