"""Which heads of a Llama find the indirect object: where they look, what they write directly, and what resampling
them, one at a time, many at once or in one reader's queries alone, costs; after Wang et al. (2022), arXiv:2211.00593.

Beside the paper: what is resampled comes from the same sentence with a third name in the giver's second place, where
theirs is the mean over sentences of three other names; and the model is a Llama, whose last norm takes no mean out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.circuits import Part, unscaled
from companion.core.hooks import Cache
from companion.core.llama import Rotation, rotated, rotation
from companion.pretrained.language import LanguageModel
from companion.topics.language.data import IndirectObjects

AT_ONCE = 3  # heads that are resampled side by side, so that a hundred sentences take little memory
KEPT = ("hook_resid_pre", "attn.hook_rot_k", "attn.hook_v", "attn.hook_z", "attn.hook_pattern")


@dataclass(frozen=True)
class Told:
    """Sentences and what a model made of them: ``run`` of the sentences, ``third`` with a third name in the giver's
    second place.

    ``receivers``, ``givers``: the token of each sentence's name; ``places``: where the receiver stands, and the giver
    first and second.
    """

    model: LanguageModel
    tokens: Int[Tensor, "texts length"]
    receivers: Int[Tensor, " texts"]
    givers: Int[Tensor, " texts"]
    places: Int[Tensor, "texts 3"]
    run: Cache
    third: Cache
    last: Float[Tensor, "texts width"]

    def difference(self, last: Float[Tensor, "*variants texts width"]) -> Float[Tensor, "*variants texts"]:
        """Return the receiver's logit less the giver's, of last streams."""
        names = self.model.unembedding[self.receivers] - self.model.unembedding[self.givers]
        return (self.model.norm(last) * names).sum(-1)

    def looks(self, layer: int, *, third: bool = False) -> Float[Tensor, "texts heads 3"]:
        """Return how much a layer's heads look from the last word at the receiver, and at the giver first and second;
        or at these places where a ``third`` name stands in the last one.
        """
        pattern = (self.third if third else self.run)[f"blocks.{layer}.attn.hook_pattern"][:, :, -1]
        return pattern.gather(-1, self.places[:, None].expand(-1, pattern.shape[1], -1))

    def direct(self, z: Sequence[Float[Tensor, "texts heads h"]], last: Float[Tensor, "texts width"]) -> Tensor:
        """Return what each head adds to the difference by itself, (texts, layers, heads), with the last norm's scale
        held; ``z``: what the heads of each layer have at the last place.
        """
        names = self.model.unembedding[self.receivers] - self.model.unembedding[self.givers]
        along = unscaled(self.model.norm, names) * (last.square().mean(-1, keepdim=True) + self.model.norm.eps).rsqrt()
        written = [torch.einsum("bnh,nhd,bd->bn", each, self.out(layer), along) for layer, each in enumerate(z)]
        return torch.stack(written, 1)

    def out(self, layer: int) -> Float[Tensor, "heads h width"]:
        """Return a layer's map out of each head."""
        return self.model.outputs[layer].unflatten(0, (self.model.heads, -1))

    def at_last(self, run: Cache) -> list[Float[Tensor, "texts heads h"]]:
        """Return what the heads of each layer have at the last place of a run."""
        return [run[f"blocks.{layer}.attn.hook_z"][:, :, -1] for layer in range(self.model.layers)]

    @torch.no_grad()
    def without(
        self, sets: Sequence[Sequence[Part]], places: Int[Tensor, " texts"] | None = None, other: Cache | None = None
    ) -> tuple[Float[Tensor, "sets texts width"], list[Float[Tensor, "sets texts heads h"]]]:
        """Return the last streams where each of several sets of heads is resampled at one place, and what all heads
        then have at the last place, from the first layer that is changed.

        Only what comes after is computed again: for the last place a single word.

        ``places``: where, in each text; None for the last one.
        ``other``: the run whose values are taken; None for the third names'.
        """
        texts, length = self.tokens.shape
        places = torch.full((texts,), length - 1) if places is None else places
        other, start = self.third if other is None else other, int(places.min())
        first = min(part.layer for parts in sets for part in parts)
        h, base = self.last.shape[-1] // self.model.heads, self.model.body.config.base
        by = Rotation(*(each[start:] for each in rotation(length, h, base, like=self.last)))
        future = torch.ones(length - start, length, dtype=torch.bool).triu(1 + start)
        x = self.run[f"blocks.{first}.hook_resid_pre"][:, start:].expand(len(sets), -1, -1, -1)
        row, found = torch.arange(texts), []
        for layer in range(first, self.model.layers):
            block, at = self.model.body.blocks[layer], f"blocks.{layer}.attn."
            normed = block.norm1(x).flatten(0, 1)
            q, k, v = (
                block.attention.read(linear, normed)
                for linear in (block.attention.queries, block.attention.keys, block.attention.values)
            )
            q, k, v = (each.unflatten(0, (len(sets), -1)) for each in (rotated(q, by), rotated(k, by), v))
            before_k, before_v = (self.run[at + name][:, :, :start] for name in ("hook_rot_k", "hook_v"))
            scores = torch.cat([q @ before_k.mT, q @ k.mT], -1) / h**0.5
            pattern = scores.masked_fill(future, -torch.inf).softmax(-1)
            z = pattern[..., :start] @ before_v + pattern[..., start:] @ v
            for number, parts in enumerate(sets):
                for part in parts:
                    if part.layer == layer:
                        z[number, row, part.head, places - start] = other[at + "hook_z"][row, part.head, places]
            x = x + block.attention.out(z.transpose(2, 3).flatten(3))
            x = x + block.mlp(block.norm2(x))
            found.append(z[..., -1, :])
        return x[..., -1, :], found

    def costs(
        self, sets: Sequence[Sequence[Part]], places: Int[Tensor, " texts"] | None = None, other: Cache | None = None
    ) -> Float[Tensor, "sets texts"]:
        """Return by how much the difference falls where each set of heads is resampled, as `without` does it."""
        whole = self.difference(self.last)
        parts = [sets[at : at + AT_ONCE] for at in range(0, len(sets), AT_ONCE)]
        return torch.cat([whole - self.difference(self.without(each, places, other)[0]) for each in parts])


@torch.no_grad()
def told(model: LanguageModel, drawn: IndirectObjects) -> Told:
    """Run a Llama on sentences and on those with a third name."""
    tokens, others = model.batch(drawn.texts), model.batch(drawn.others)
    receivers, givers = (
        torch.tensor([model.encode(f" {name}")[0] for name in each]) for each in (drawn.receivers, drawn.givers)
    )
    second = (tokens != others).int().argmax(1)
    places = torch.stack([(tokens == name[:, None]).int().argmax(1) for name in (receivers, givers)] + [second], 1)
    names = [f"blocks.{layer}.{name}" for layer in range(model.layers) for name in KEPT]
    end = f"blocks.{model.layers - 1}.hook_resid_post"
    _, run = model.run_with_cache(tokens, names=[*names, end], only_last=True)
    names = [name for name in names if name.endswith(("hook_z", "hook_pattern"))]
    _, third = model.run_with_cache(others, names=names, only_last=True)
    return Told(model, tokens, receivers, givers, places, run, third, run[end][:, -1])
