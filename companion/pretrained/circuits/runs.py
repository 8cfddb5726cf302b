"""Runs of a model in which all but a circuit is resampled: what they are computed from, and what they say."""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.circuits import Part, Side
from companion.core.hooks import Hook, Hooked
from companion.pretrained.circuits.behaviours import Behaviour, Pair, Words
from companion.pretrained.circuits.parts import Circuit, Wire, part_name

TOGETHER = 20  # pairs that are computed at a time, so that little memory is enough
KEPT = 3  # runs of which every layer's stream is kept, so that one that differs late begins there
FEWEST = 8  # different pairs, below which no interval over prompts says anything
TRIES = 50  # to draw a pair that is not there yet


class PromptPairs(NamedTuple):
    """Pairs as tokens, in groups of one length."""

    clean: list[Int[Tensor, "pairs length"]]
    corrupted: list[Int[Tensor, "pairs length"]]
    right: Int[Tensor, " all_pairs"]
    wrong: Int[Tensor, " all_pairs"]


def draw_pairs(behaviour: Behaviour, count: int, seed: int = 0, without: Collection[Pair] = ()) -> list[Pair]:
    """Draw ``count`` pairs from a ``behaviour``, no two alike and none of those ``without``, or fewer where there are
    no more, from a ``seed``. Raises ValueError for what is no pair, and for fewer pairs than `FEWEST`.
    """
    at_least(count=(count, FEWEST))
    random, pairs = Random(seed), {}  # pairs by themselves: a set in the order of drawing
    for _ in range(TRIES * count):
        if len(pairs) == count:
            break
        drawn = behaviour(random)
        if not isinstance(drawn, tuple) or len(drawn) != 4 or not all(isinstance(each, Sequence) for each in drawn):
            raise ValueError(f"behaviour: returned {drawn!r}; must be (clean prompt, corrupted prompt, right, wrong)")
        pair = Pair(*(each if isinstance(each, str) else tuple(each) for each in drawn))
        if pair not in without:
            pairs[pair] = None
    if len(pairs) < FEWEST:
        beside = f" beside the {len(without)} that were searched on" if without else ""
        different = "1 pair" if len(pairs) == 1 else f"{len(pairs)} different pairs"
        raise ValueError(f"behaviour: draws {different}{beside}; must draw at least {FEWEST}")
    return list(pairs)


def draw(model: Hooked, behaviour: Behaviour, count: int, seed: int = 0, without: Collection[Pair] = ()) -> PromptPairs:
    """Draw ``count`` pairs from a ``behaviour`` and a ``seed``, ``without`` some, as `draw_pairs` does, for a ``model``
    to read. Raises what it and `as_tokens` raise.
    """
    return as_tokens(model, draw_pairs(behaviour, count, seed, without))


def as_tokens(model: Hooked, pairs: Sequence[Pair]) -> PromptPairs:
    """Return ``pairs`` as a ``model`` reads them.

    Raises ValueError, which shows the pair, for prompts of unequal length, for two that are the same, for continuations
    that begin with the same token and for texts that a model without a tokenizer cannot read; for fewer pairs than
    `FEWEST`; and where the right continuation is the same in all.
    """
    if len(pairs) < FEWEST:
        raise ValueError(f"behaviour: {len(pairs)} pairs to search on are too few; must be at least {FEWEST}")
    groups: dict[tuple[int, int], list[list[list[int]]]] = {}
    met: Counter[int] = Counter()
    for pair in pairs:
        clean, corrupted, right, wrong = (_tokens(model, each) for each in pair)
        if len(clean) != len(corrupted):
            raise ValueError(
                f"behaviour: {pair.clean!r} has {len(clean)} tokens and {pair.corrupted!r} {len(corrupted)}; the two "
                "prompts of a pair must have equally many"
            )
        if clean == corrupted:
            raise ValueError(f"behaviour: the clean and the corrupted prompt are both {pair.clean!r}; they must differ")
        if not (clean and right and wrong) or right[0] == wrong[0]:
            raise ValueError(f"behaviour: {pair.right!r} and {pair.wrong!r} must begin with different tokens")
        group = (len(clean), met[len(clean)] // TOGETHER)
        met[len(clean)] += 1
        groups.setdefault(group, []).append([clean, corrupted, right[:1], wrong[:1]])
    by_length = [[torch.tensor(each) for each in zip(*group, strict=True)] for group in groups.values()]
    right, wrong = (torch.cat([group[i][:, 0] for group in by_length]) for i in (2, 3))
    if len(right.unique()) == 1:
        raise ValueError(
            f"behaviour: {pairs[0].right!r} is right in every pair; it must change from pair to pair, or a circuit "
            "that always says it would score well"
        )
    return PromptPairs([group[0] for group in by_length], [group[1] for group in by_length], right, wrong)


def _tokens(model: Hooked, words: Words) -> list[int]:
    if not isinstance(words, str):
        return [int(token) for token in words]
    encode = getattr(model, "encode", None)
    if encode is None:
        raise ValueError(
            f"behaviour: {words!r} is a text, and {type(model).__name__} has no tokenizer; must be a sequence of tokens"
        )
    return encode(words)


class RunReading(NamedTuple):
    """What a run says after each prompt: logit(right) - logit(wrong), the probability of the right continuation, and
    whether it is the first guess.
    """

    difference: Float[Tensor, " pairs"]
    probability: Float[Tensor, " pairs"]
    first: Bool[Tensor, " pairs"]


@dataclass
class _Group:
    """One length's prompts: what the corrupted run holds, and by how much the clean embedding differs from its own."""

    start: int  # the first place at which clean and corrupted prompts differ: before it, nothing can
    pre: list[Tensor]
    mid: list[Tensor]
    z: list[Tensor]
    last: Tensor
    embedded: Tensor
    runs: deque = field(default_factory=lambda: deque(maxlen=KEPT))  # the last ones, layer by layer, to go on from


class Runs:
    """A model on a behaviour's prompts, with any parts resampled.

    The clean and the corrupted run are computed once. Any other one carries by how much the stream differs from the
    corrupted one's: a resampled part adds nothing to that, so that only blocks with a live part are computed, and MLPs
    only from the first place at which the two prompts differ.

    ``model``: a `companion.core.llama.Llama`, a language model that is one, or a model around a `Decoder` of softmax
        attention with logits by its ``unembed``.
    ``prompts``: as `draw` gives them.

    ``clean``, ``corrupted``: the `RunReading`s of these two runs. ``parts``: all parts that the model has.

    Raises ValueError for a model of another kind, and for one that gives numbers that are not finite.
    """

    @torch.no_grad()
    def __init__(self, model: Hooked, prompts: PromptPairs):
        blocks = getattr(model.body, "blocks", None)
        if blocks is None or not all(hasattr(block, "attend") for block in blocks):
            raise ValueError(
                f"model = {type(model).__name__}: must be a Llama of the course, or a model with a Decoder"
            )
        self.model, self.prompts, self.blocks = model, prompts, list(blocks)
        unembedding = getattr(model, "unembedding", None)
        self.unembedding: Tensor = model.get_parameter("unembed.weight") if unembedding is None else unembedding
        self.has_mlps = "blocks.0.hook_mlp_out" in model.hook_names
        self.groups, clean, corrupted = [], [], []
        for tokens, others in zip(prompts.clean, prompts.corrupted, strict=True):
            group, streams = self._corrupted(tokens, others)
            self.groups.append(group)
            corrupted.append(group.last)
            clean.append(streams)
        self.heads = self.groups[0].z[0].shape[1]
        self.clean, self.corrupted = self._read(torch.cat(clean)), self._read(torch.cat(corrupted))
        if not (self.clean.difference.isfinite().all() and self.corrupted.difference.isfinite().all()):
            raise ValueError("model: gives logits that are not finite numbers on these prompts")

    def _corrupted(self, tokens: Tensor, others: Tensor) -> tuple[_Group, Tensor]:
        """What all runs on one group start from, and the clean run's last stream at the last place."""
        layers = range(len(self.blocks))
        names = {each: [f"blocks.{layer}.{each}" for layer in layers] for each in ("hook_resid_pre", "attn.hook_z")}
        names["mid"] = [f"blocks.{layer}.hook_resid_mid" for layer in layers] if self.has_mlps else []
        last = f"blocks.{len(self.blocks) - 1}.hook_resid_post"
        only_last = {"only_last": True} if hasattr(self.model, "unembedding") else {}
        _, clean = self.model.run_with_cache(tokens, names=["hook_embed", last], **only_last)
        wanted = ["hook_embed", *(name for group in names.values() for name in group), last]
        _, cache = self.model.run_with_cache(others, names=wanted, **only_last)
        start = int((tokens != others).any(0).nonzero()[0])
        pre, z, mid = ([cache[name] for name in group] for group in names.values())
        embedded = (clean["hook_embed"] - cache["hook_embed"])[:, start:]
        mid = mid or [*pre[1:], cache[last]]
        return _Group(start, pre, mid, z, cache[last][:, -1], embedded), clean[last][:, -1]

    @property
    def parts(self) -> list[Part]:
        """All heads and MLPs of the model, in the order of layers."""
        layers, heads = range(len(self.blocks)), range(self.heads)
        return [Part(layer, head) for layer in layers for head in (*heads, *[None] * self.has_mlps)]

    def check(self, circuit: Circuit) -> None:
        """Raise ValueError for a part that the model has not."""
        there = set(self.parts)
        for part in circuit.parts:
            if part not in there:
                kind = "MLP" if part.head is None else "head"
                most = f"m{len(self.blocks) - 1}" if part.head is None else f"{len(self.blocks) - 1}.{self.heads - 1}"
                few = "no MLPs" if kind == "MLP" and not self.has_mlps else f"{kind}s up to {most}"
                raise ValueError(f"circuit: {part_name(part)!r}: there is no such {kind}; the model has {few}")

    def without(self, circuit: Circuit) -> Circuit:
        """Return all parts but a circuit's, with no wires named."""
        return Circuit(tuple(part for part in self.parts if part not in set(circuit.parts)))

    @torch.no_grad()
    def run(self, circuit: Circuit) -> RunReading:
        """Return what is said where all but a circuit is resampled. Raises ValueError for a part that is not there."""
        self.check(circuit)
        heads = torch.zeros(len(self.blocks), self.heads)
        mlps = torch.zeros(len(self.blocks))
        for part in circuit.parts:
            if part.head is None:
                mlps[part.layer] = 1
            else:
                heads[part.layer, part.head] = 1
        return self._read(self.streams(heads, mlps, circuit.wires))

    def streams(
        self, heads: Float[Tensor, "layers heads"], mlps: Float[Tensor, " layers"], wires: Sequence[Wire] = ()
    ) -> Float[Tensor, "pairs width"]:
        """Return the last streams at the last place, where each part gives that share (0 for resampled, 1 for live) of
        the way from what it gives on the corrupted prompt to what it gives now. Gradients by the shares are kept.
        """
        return torch.cat([self._stream(group, heads, mlps, wires) for group in self.groups])

    def _stream(self, group: _Group, heads: Tensor, mlps: Tensor, wires: Sequence[Wire]) -> Tensor:
        from_start = slice(group.start, None)
        shares = [*zip(heads, mlps, strict=True)]
        changed, written, layers = group.embedded, {}, []  # the stream against the corrupted run's; what writers give
        known = 0 if wires or heads.requires_grad else max((_alike(shares, run) for run, _ in group.runs), default=0)
        if known:
            run = next(run for run in group.runs if _alike(shares, run[0]) == known)
            layers = run[1][:known]
            changed = run[1][known]

        def whole(change: Tensor, layer: int) -> Tensor:
            """A stream at all places."""
            return torch.cat([group.pre[layer][:, : group.start], group.pre[layer][:, from_start] + change], 1)

        for layer, block in list(enumerate(self.blocks))[known:]:
            layers.append(changed)
            at = f"blocks.{layer}."
            if heads[layer].any():
                hooks: dict[str, Hook] = {}
                for side in get_args(Side):
                    into = [wire for wire in wires if wire.reader.layer == layer]
                    read = {wire.reader.head: group.embedded for wire in into}
                    for wire in into:
                        if wire.side == side:
                            read[wire.reader.head] = read[wire.reader.head] + written[wire.writer]
                    if read:
                        put = {head: whole(change, layer) for head, change in read.items()}
                        hooks[f"{at}hook_{side[0]}_input"] = lambda value, _, put=put: _put(value, put)
                kept: dict[str, Tensor] = {}
                z, share = group.z[layer], heads[layer][:, None, None]

                def mixed(value: Tensor, _: str, z=z, share=share, kept=kept) -> Tensor:
                    kept["change"] = share * (value - z)
                    return z + kept["change"]

                with self.model.hooks(hooks | {f"{at}attn.hook_z": mixed}):
                    gives = block.attend(whole(changed, layer))[:, from_start]
                gave = (group.mid[layer] - group.pre[layer])[:, from_start]
                out = block.attention.out.weight.unflatten(1, (self.heads, -1))
                for writer in {wire.writer for wire in wires if wire.writer.layer == layer} - {Part(layer)}:
                    written[writer] = kept["change"][:, writer.head, from_start] @ out[:, writer.head].mT
                changed = changed + gives - gave
            if mlps[layer]:
                after = group.pre[layer + 1] if layer + 1 < len(self.blocks) else None
                mid = group.mid[layer][:, from_start]
                gave = block.transform(mid) if after is None else after[:, from_start] - mid
                written[Part(layer)] = mlps[layer] * (block.transform(mid + changed) - gave)
                changed = changed + written[Part(layer)]
        if not wires and not heads.requires_grad:
            group.runs.append((shares, [*layers, changed]))
        return group.last + changed[:, -1]

    def differences(self, last: Float[Tensor, "pairs width"]) -> Float[Tensor, " pairs"]:
        """Return logit(right) - logit(wrong) from the last streams: of all logits, these two alone."""
        along = self.unembedding[self.prompts.right] - self.unembedding[self.prompts.wrong]
        return (self.model.body.get_submodule("norm")(last) * along).sum(-1)

    def _read(self, last: Tensor) -> RunReading:
        logits = self.model.body.get_submodule("norm")(last) @ self.unembedding.mT
        right, wrong = (logits.gather(1, each[:, None])[:, 0] for each in (self.prompts.right, self.prompts.wrong))
        probability = (right - logits.logsumexp(1)).exp()
        return RunReading(right - wrong, probability, right >= logits.amax(1))

    def share(self, reading: RunReading) -> float:
        """Return the share of the difference that a run keeps: 0 for the corrupted run, 1 for the clean one."""
        return kept_share(reading.difference, self.clean.difference, self.corrupted.difference).item()


def _alike(shares: list[tuple[Tensor, Tensor]], others: list[tuple[Tensor, Tensor]]) -> int:
    """How many layers two runs have in common."""
    for layer, (ours, theirs) in enumerate(zip(shares, others, strict=True)):
        if not (ours[0].equal(theirs[0]) and ours[1].equal(theirs[1])):
            return layer
    return len(shares)


def _put(value: Tensor, put: dict[int | None, Tensor]) -> Tensor:
    """What each head reads, with other streams for some."""
    changed = value.clone()
    for head, stream in put.items():
        changed[:, head] = stream
    return changed


def kept_share(
    kept: Float[Tensor, "*draws pairs"], clean: Float[Tensor, "*draws pairs"], corrupted: Float[Tensor, "*draws pairs"]
) -> Float[Tensor, "*draws"]:
    """Return the share of the difference that is kept, a ratio of means over pairs."""
    low = corrupted.mean(-1)
    return (kept.mean(-1) - low) / (clean.mean(-1) - low)
