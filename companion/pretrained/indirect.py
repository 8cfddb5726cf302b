"""Which heads of a Llama find the indirect object: where they look, what they write directly, and what resampling
them, one at a time, many at once or in one reader's queries alone, costs; after Wang et al. (2022), arXiv:2211.00593.

Beside the paper: what is resampled comes from the same sentence with a third name in the giver's second place, where
theirs is the mean over sentences of three other names; and the model is a Llama, whose last norm takes no mean out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.circuits import Part, unscaled
from companion.core.hooks import Cache
from companion.core.llama import LlamaBlock, Rotation, rotated, rotation
from companion.pretrained.language import LanguageModel
from companion.topics.language.data import IndirectObjects
from companion.topics.language.exercises import direct_effects, looks_without

TOLD = {"smoke": 8, "course": 100, "paper": 400}  # sentences in which every head is looked for
AT_ONCE = 3  # heads that are resampled side by side, so that a hundred sentences take little memory
KEPT = ("hook_resid_pre", "attn.hook_rot_k", "attn.hook_v", "attn.hook_z", "attn.hook_pattern")


@dataclass(frozen=True)
class Told:
    """Sentences and what a model made of them: ``run`` of the sentences, ``third`` with a third name in the giver's
    second place, and how the streams of both end.

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
    end_of_third: Float[Tensor, "texts width"]

    def some(self, count: int) -> "Told":
        """Return the first ``count`` sentences alone."""
        runs = {name: Cache({at: x[:count] for at, x in getattr(self, name).items()}) for name in ("run", "third")}
        each = ("tokens", "receivers", "givers", "places", "last", "end_of_third")
        return replace(self, **runs, **{name: getattr(self, name)[:count] for name in each})

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

    def direct(
        self, z: Sequence[Float[Tensor, "texts heads h"]], last: Float[Tensor, "texts width"]
    ) -> Float[Tensor, "texts layers heads"]:
        """Return what each head adds to the difference by itself, where the heads of each layer have ``z`` at the last
        place and the stream ends as ``last``.
        """
        names = self.model.norm.weight, self.model.unembedding, self.receivers, self.givers
        return torch.stack(
            [direct_effects.answer(each, self.out(layer), last, *names) for layer, each in enumerate(z)], 1
        )

    def block(self, layer: int) -> LlamaBlock:
        """Return a layer."""
        return cast(LlamaBlock, self.model.body.blocks[layer])

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
            block, at = self.block(layer), f"blocks.{layer}.attn."
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
            x = x + block.mlp(block.norm2(x).flatten(0, 1)).unflatten(0, (len(sets), -1))
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
    def lost_by_queries(self, sets: Sequence[Sequence[Part]], readers: Sequence[Part]) -> Float[Tensor, "sets texts"]:
        """Return which share is lost of how much more the ``readers``, of one layer, look from the last word at the
        receiver than at the giver's first place, where their queries alone read of each set of earlier heads what it
        writes on the third names' sentences; of the mean over sentences of what is there whole.
        """
        writers = {part for parts in sets for part in parts}
        changes = {part: self.written(part, self.third) - self.written(part, self.run) for part in writers}
        change = torch.stack([torch.stack([changes[part] for part in parts]).sum(0) for parts in sets])
        change, preferred = torch.cat([torch.zeros_like(change[:1]), change]), []  # first nothing is exchanged
        for reader in readers:
            stream, *reads = self.last_query(reader)
            look = looks_without.answer(stream, torch.zeros_like(change), change, *reads)
            at_names = look.gather(-1, self.places.expand(len(look), -1, -1))
            preferred.append(at_names[..., 0] - at_names[..., 1])
        prefers = torch.stack(preferred).mean(0)
        return (prefers[:1] - prefers[1:]) / prefers[0].mean()

    def last_query(self, reader: Part) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what decides where a head looks from the last word: the stream there, (texts, width), the norm's
        weight, W_Q turned by the last place, (h, width), and its turned keys, (texts, length, h).
        """
        block, at = self.block(reader.layer), f"blocks.{reader.layer}."
        length, h = self.tokens.shape[1], self.last.shape[-1] // self.model.heads
        stream = self.run[at + "hook_resid_pre"][:, -1]
        by = Rotation(*(each[-1:] for each in rotation(length, h, self.model.body.config.base, like=stream)))
        weight = block.attention.queries.weight.unflatten(0, (-1, h))[reader.head]
        WQ = rotated(weight.mT[None, None], by)[0, 0].mT
        return stream, block.norm1.weight, WQ, self.run[at + "attn.hook_rot_k"][:, reader.head]

    def written(self, part: Part, run: Cache) -> Float[Tensor, "texts width"]:
        """Return what a head writes at the last place of a run."""
        return run[f"blocks.{part.layer}.attn.hook_z"][:, part.head, -1] @ self.out(part.layer)[part.head]

    def changes(
        self, sets: Sequence[Sequence[Part]], direct: Float[Tensor, "texts layers heads"]
    ) -> Float[Tensor, "sets texts layers heads"]:
        """Return how much more than ``direct`` each head adds by itself where each set is resampled at the last place;
        what is resampled itself has none.
        """
        found = []
        for parts in sets:
            last, late = self.without([parts])
            z = [*self.at_last(self.run)[: self.model.layers - len(late)], *(each[0] for each in late)]
            change = self.direct(z, last[0]) - direct
            for part in parts:
                change[:, part.layer, part.head] = 0
            found.append(change)
        return torch.stack(found)

    @torch.no_grad()
    def copies(self) -> Float[Tensor, "layers heads 2"]:
        """Return of how many names, as a share, what each head would write of it has this name among the five tokens
        that it raises most, or that it lowers most; of the name's stream after the first layer, as in the paper.
        """
        names = torch.cat([self.receivers, self.givers]).unique()
        texts = torch.stack([(self.tokens == name).any(1).int().argmax() for name in names])
        places = (self.tokens[texts] == names[:, None]).int().argmax(1)
        stream, found = self.run["blocks.1.hook_resid_pre"][texts, places], []
        for layer in range(self.model.layers):
            block = self.block(layer)
            values = block.attention.read(block.attention.values, block.norm1(stream)[:, None])[:, :, 0]
            written = torch.einsum("bnh,nhd->nbd", values, self.out(layer))
            logits = unscaled(self.model.norm, written) @ self.model.unembedding.mT
            signed = [(sign * logits).topk(5, -1).indices == names[:, None] for sign in (1, -1)]
            found.append(torch.stack([each.any(-1).float().mean(1) for each in signed], -1))
        return torch.stack(found)


@torch.no_grad()
def told_sentences(
    model: LanguageModel, drawn: IndirectObjects, others: Int[Tensor, "texts length"] | None = None
) -> Told:
    """Run a Llama on sentences and on those with a third name: ``others``, or None for those that were drawn."""
    tokens, others = model.batch(drawn.texts), model.batch(drawn.others) if others is None else others
    receivers, givers = (
        torch.tensor([model.encode(f" {name}")[0] for name in each]) for each in (drawn.receivers, drawn.givers)
    )
    second = (tokens != others).int().argmax(1)
    places = torch.stack([(tokens == name[:, None]).int().argmax(1) for name in (receivers, givers)] + [second], 1)
    names = [f"blocks.{layer}.{name}" for layer in range(model.layers) for name in KEPT]
    end = f"blocks.{model.layers - 1}.hook_resid_post"
    _, run = model.run_with_cache(tokens, names=[*names, end], only_last=True)
    names = [name for name in names if name.endswith(("hook_z", "hook_pattern"))]
    _, third = model.run_with_cache(others, names=[*names, end], only_last=True)
    return Told(model, tokens, receivers, givers, places, run, third, *(each[end][:, -1] for each in (run, third)))


CHOSEN = {  # what looks more than `SHARE`, or half, where its class does, on the first draw of the lesson's sentences
    "name movers": "23.0 23.1 23.2 23.7",
    "negative name movers": "24.4",
    "unsays the giver": "23.3",
    "S-inhibition": "19.2 20.0",
    "duplicate token": "2.4 5.6 8.0 8.1 9.2 14.3 15.7",
    "induction": "17.4 17.5",
    "previous token": "0.0 1.2 2.1 11.1 11.8 13.8 16.0 16.5",
}
MIDDLE = range(19, 25)  # the layers of what acts at the last word
AT_RANDOM, PAIRS = 8, 100  # control sets, where a set is a run of its own, and where it is none
ASKED_AT_RANDOM = 30  # sentences in which control sets are resampled
FROM = 12  # the first layer whose heads are resampled at the last place: before, hardly one looks from there at a name
SHARE, LEAST = 0.3, 0.1  # of `name_kinds`; the difference is about 5


def by_head(model: LanguageModel, drawn: IndirectObjects) -> list[dict[str, float]]:
    """Measure every head on one draw of sentences.

    From the last word it looks at the ``receiver``, and at the giver ``first`` and ``second``, or at the ``third`` name
    there; from the giver's second place at the first (``duplicate``) and at the word ``after`` it, and from that word
    at the name ``before`` it. With the standard errors of means over sentences: what it adds ``direct``ly; what
    resampling it at the last place costs (``cost``, from layer `FROM` on); which share of the name movers' preference
    is lost by their ``queries``; the ``change`` of what it adds without the name movers. How many names it ``copies``,
    or ``opposes``.
    """
    of = told_sentences(model, drawn)
    heads = [Part(layer, head) for layer in range(model.layers) for head in range(model.heads)]
    movers, late = parts("name movers"), [part for part in heads if part.layer >= FROM]
    earlier = [part for part in heads if part.layer < movers[0].layer]
    direct = of.direct(of.at_last(of.run), of.last)
    means = {
        "direct": dict(zip(heads, direct.flatten(1).T, strict=True)),
        "cost": dict(zip(late, of.costs([[part] for part in late]), strict=True)),
        "queries": dict(zip(earlier, of.lost_by_queries([[part] for part in earlier], movers), strict=True)),
        "change": dict(zip(heads, of.changes([movers], direct)[0].flatten(1).T, strict=True)),
    }
    copies, rows = of.copies(), []
    for part in heads:
        looks, third = (of.looks(part.layer, third=each)[:, part.head].mean(0).tolist() for each in (False, True))
        pattern = of.run[f"blocks.{part.layer}.attn.hook_pattern"][:, part.head]
        texts, (_, first, second) = torch.arange(len(pattern)), of.places.T
        earlier_looks = (
            pattern[texts, second, first],
            pattern[texts, second, first + 1],
            pattern[texts, first + 1, first],
        )
        row: dict[str, float] = dict(zip(("receiver", "first", "second", "third"), (*looks, third[2]), strict=True))
        row |= dict(zip(("duplicate", "after", "before"), (each.mean().item() for each in earlier_looks), strict=True))
        for name, values in means.items():
            row[name], row[f"{name}_error"] = mean_and_error(values[part]) if part in values else (0.0, 0.0)
        row |= dict(zip(("copies", "opposes"), copies[part.layer, part.head].tolist(), strict=True))
        rounded = {name: round(value, 4) + 0.0 for name, value in row.items()}  # no -0
        rows.append({"layer": part.layer, "head": part.head} | rounded)
    return rows


def mean_and_error(values: Float[Tensor, " texts"]) -> tuple[float, float]:
    """Return the mean over sentences and its standard error."""
    return values.mean().item(), values.std().item() / len(values) ** 0.5


def parts(kind: str) -> list[Part]:
    """Return the heads that were chosen as being of a class."""
    return [Part(*map(int, each.split("."))) for each in CHOSEN[kind].split()]


def by_class(model: LanguageModel, drawn: IndirectObjects, seed: int) -> list[dict[str, float | str]]:
    """Measure the chosen heads of each class, all at once, on one draw of sentences, and sets of as many others drawn
    at random with ``seed``, of which there is the mean and the ``most``: what they add ``direct``ly, and which share of
    the name movers' preference is lost by their ``queries`` (of classes at the last word); what resampling them there,
    at the giver's second place, or at the word after its first, costs (``cost``).

    What previous-token heads write comes from a sentence with other names, since only these are others at their place.
    """
    of, generator = told_sentences(model, drawn), torch.Generator().manual_seed(seed)
    direct, movers = of.direct(of.at_last(of.run), of.last), parts("name movers")
    rolled = Cache({name: value.roll(8, 0) for name, value in of.run.items() if name.endswith("hook_z")})
    rows: list[dict[str, float | str]] = []

    def put(kind: str, what: str, chosen: Float[Tensor, " texts"], at_random: Float[Tensor, "sets some"]) -> None:
        value, error = mean_and_error(chosen)
        others = at_random.mean(1)
        rows.append(
            {"class": kind, "what": what, "value": value, "error": error}
            | {"at_random": others.mean().item(), "most_at_random": others.max().item()}
        )

    difference = of.difference(of.last)
    put("all", "difference", difference, difference[None])
    few = of.some(ASKED_AT_RANDOM)
    for kind in CHOSEN:
        chosen = parts(kind)
        last = chosen[0].layer in MIDDLE
        sets = [chosen, *sets_at_random(chosen, MIDDLE if last else None, PAIRS, generator)]
        if last:
            written = torch.stack([torch.stack([direct[:, p.layer, p.head] for p in each]).sum(0) for each in sets])
            put(kind, "direct", written[0], written[1:])
        place = None if last else 1 if kind == "previous token" else 2
        found = []
        for each, asked in ((of, sets[:1]), (few, sets[1 : 1 + AT_RANDOM])):
            at = None if place is None else each.places[:, place] + (place == 1)
            other = Cache({name: value[: len(each.tokens)] for name, value in rolled.items()}) if place == 1 else None
            found.append(each.costs(asked, at, other))
        put(kind, "cost", found[0][0], found[1])
        if kind == "S-inhibition":
            sets = [chosen, *sets_at_random(chosen, range(movers[0].layer), PAIRS, generator)]
            queries = of.lost_by_queries(sets, movers)
            put(kind, "queries", queries[0], queries[1:])
    return [{name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()} for row in rows]


def sets_at_random(
    chosen: Sequence[Part], layers: Sequence[int] | None, count: int, generator: torch.Generator
) -> list[list[Part]]:
    """Draw ``count`` sets, by ``generator``, of as many heads as are ``chosen``, of those that are of no class: of some
    ``layers``, or for each chosen one of its own layer.
    """
    taken = {part for kind in CHOSEN for part in parts(kind)}

    def drawn(layers: Sequence[int], number: int) -> list[Part]:
        free = [part for layer in layers for head in range(9) if (part := Part(layer, head)) not in taken]
        return [free[at] for at in torch.randperm(len(free), generator=generator)[:number].tolist()]

    own = Counter(part.layer for part in chosen)
    return [
        drawn(layers, len(chosen)) if layers else [part for layer, n in own.items() for part in drawn([layer], n)]
        for _ in range(count)
    ]
