"""Circuits and their score: what a language model still does when all else is resampled, and what it does without them.

A circuit is a set of `Part`s, heads "16.0" and MLPs "m0", and, if wished, wires between them, "16.0 -> 18.6 by keys".
The prompts come in pairs (`companion.pretrained.circuits.behaviours`). A part that is *resampled* gives what it gives
on the corrupted prompt; what the other parts read then is the clean prompt's embedding and what each part gives. Let m
be the mean over prompts of logit(right) - logit(wrong):

    faithfulness    (m(all but the circuit resampled) - m(corrupted)) / (m(clean) - m(corrupted)), 1 for the whole model
    completeness    the same with the circuit resampled and all else kept: 0 for a circuit with no rival outside

A side of a head (its queries, keys or values) for which wires are named reads, beside the embedding, these writers
alone; of all others it reads what they give on the corrupted prompt. A side without wires reads the whole circuit.

Where this departs from the literature. Wang et al. (2022), arXiv:2211.00593, leave the MLPs as they are, put means over
other prompts in the place of heads at all places but those that a head is named for, and compare differences: |m(C) -
m(M)| for faithfulness, and the worst over subsets K of |m(C without K) - m(M without K)| for completeness; ours has K =
C alone. Conmy et al. (2023), arXiv:2304.14997, resample edges, as we do where wires are named, and measure a KL
divergence. Hanna et al. (2023), arXiv:2305.00586, and (2024), arXiv:2403.17806, resample edges, too, and normalise by
the clean and the corrupted run, as we do; MLPs and the logits are readers with wires of their own there, and not here.
Causal scrubbing (Chan et al. 2022) draws anew for each part which prompt it sees, among those that a hypothesis calls
alike; here all see the one corrupted prompt. The score is a ratio of means: a mean of ratios would be ruled by prompts
whose difference is small. Miller et al. (2024), arXiv:2407.08734, show that each of these choices moves the number; so
a score belongs to its pairs of prompts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.circuits import Part, Side
from companion.core.hooks import Hook, Hooked
from companion.core.measuring import Row
from companion.lesson.intervals import wilson
from companion.pretrained.circuits.behaviours import Behaviour, Pair, Words

PART = re.compile(r"(\d+)\.(\d+)|m(\d+)")
WIRE = re.compile(r"(\S+?)\s*->\s*(\S+)\s+by\s+(\S+)")
TOGETHER = 20  # pairs that are computed at a time, so that little memory is enough
FEWEST = 8  # different pairs, below which no interval over prompts says anything
TRIES = 50  # to draw a pair that is not there yet
REDRAWN = 2_000  # samples of a bootstrap
FLAT = 0.5  # a circuit that keeps the difference, and less than this share of the answer's probability, only flattens


class Wire(NamedTuple):
    """What ``writer`` gives, as the ``reader``, a head, reads it by one ``side``."""

    writer: Part
    reader: Part
    side: Side

    def __str__(self) -> str:
        return f"{named(self.writer)} -> {named(self.reader)} by {self.side}"


def named(part: Part) -> str:
    """Return a part's name: "16.0" for a head, "m0" for an MLP."""
    return f"m{part.layer}" if part.head is None else f"{part.layer}.{part.head}"


@dataclass(frozen=True)
class Circuit:
    """Parts, in the order of layers, and wires between them."""

    parts: tuple[Part, ...]
    wires: tuple[Wire, ...] = ()

    @classmethod
    def read(cls, names: Iterable[str]) -> "Circuit":
        """Read ``["m0", "16.0 -> 18.6 by keys"]``; the ends of a wire belong to the circuit. Raises ValueError for a
        name that is none, for one part or wire named twice, and for a wire that leads nowhere.
        """
        said, parts = {}, []
        for name in [names] if isinstance(names, str) else names:
            if not isinstance(name, str):
                raise ValueError(f"circuit: {name!r} is not a text; must be a head '16.0', an MLP 'm0' or a wire")
            found = WIRE.fullmatch(name.strip())
            item = _wire(name, *found.groups()) if found else _part(name)
            if item in said:
                raise ValueError(
                    f"circuit: {said[item]!r} and {name!r} are one {'wire' if found else 'part'}, named twice"
                )
            said[item] = name
            parts += item[:2] if isinstance(item, Wire) else [item]
        ordered = sorted(set(parts), key=lambda part: (part.layer, part.head is None, part.head or 0))
        return cls(tuple(ordered), tuple(item for item in said if isinstance(item, Wire)))

    @property
    def names(self) -> list[str]:
        """What `read` reads."""
        return [*map(named, self.parts), *map(str, self.wires)]


def _part(name: str) -> Part:
    found = PART.fullmatch(name.strip())
    if not found:
        raise ValueError(f"circuit: {name!r} must be a head '16.0', an MLP 'm0' or a wire '16.0 -> 18.6 by keys'")
    layer, head, mlp = found.groups()
    return Part(int(mlp)) if mlp else Part(int(layer), int(head))


def _wire(name: str, writer: str, reader: str, side: str) -> Wire:
    if side not in get_args(Side):
        raise ValueError(f"circuit: {name!r}: by must be one of {', '.join(get_args(Side))}")
    wire = Wire(_part(writer), _part(reader), side)
    if wire.reader.head is None or wire.writer.layer >= wire.reader.layer:
        raise ValueError(f"circuit: {name!r}: must lead from an earlier layer to a head")
    return wire


class Prompts(NamedTuple):
    """Pairs as tokens, in groups of one length."""

    clean: list[Int[Tensor, "pairs length"]]
    corrupted: list[Int[Tensor, "pairs length"]]
    right: Int[Tensor, " all_pairs"]
    wrong: Int[Tensor, " all_pairs"]


def draw(model: Hooked, behaviour: Behaviour, count: int, seed: int = 0) -> Prompts:
    """Draw different pairs from a behaviour; fewer than ``count`` where it has no more. Raises ValueError, which shows
    the pair, for prompts of unequal length, for two that are the same, for continuations that begin with the same token
    and for texts that a model without a tokenizer cannot read; for fewer pairs than `FEWEST`; and where the right
    continuation is the same in all.
    """
    at_least(count=(count, FEWEST))
    random, pairs = Random(seed), {}
    for _ in range(TRIES * count):
        if len(pairs) == count:
            break
        drawn = behaviour(random)
        if not isinstance(drawn, tuple) or len(drawn) != 4:
            raise ValueError(f"behaviour: drew {drawn!r}; must be the clean prompt, the corrupted one, right, wrong")
        pairs.setdefault(tuple(each if isinstance(each, str) else tuple(each) for each in drawn), Pair(*drawn))
    if len(pairs) < FEWEST:
        raise ValueError(f"behaviour: has {len(pairs)} different pairs; must have at least {FEWEST}")
    groups: dict[tuple[int, int], list[list[list[int]]]] = {}
    met: Counter[int] = Counter()
    for pair in pairs.values():
        clean, corrupted, right, wrong = (_tokens(model, each) for each in pair)
        if len(clean) != len(corrupted):
            raise ValueError(
                f"behaviour: {pair.clean!r} has {len(clean)} tokens, {pair.corrupted!r} {len(corrupted)}; a pair must "
                "have as many"
            )
        if clean == corrupted:
            raise ValueError(f"behaviour: {pair.clean!r} is corrupted by itself; the two prompts must differ")
        if not (clean and right and wrong) or right[0] == wrong[0]:
            raise ValueError(f"behaviour: {pair.right!r} and {pair.wrong!r} must begin with different tokens")
        group = (len(clean), met[len(clean)] // TOGETHER)
        met[len(clean)] += 1
        groups.setdefault(group, []).append([clean, corrupted, right[:1], wrong[:1]])
    by_length = [[torch.tensor(each) for each in zip(*group, strict=True)] for group in groups.values()]
    right, wrong = (torch.cat([group[i][:, 0] for group in by_length]) for i in (2, 3))
    if len(right.unique()) == 1:
        raise ValueError(
            f"behaviour: {pair.right!r} is right in every pair; must change, as what always says it would be right, too"
        )
    return Prompts([group[0] for group in by_length], [group[1] for group in by_length], right, wrong)


def _tokens(model: Hooked, words: Words) -> list[int]:
    if not isinstance(words, str):
        return [int(token) for token in words]
    encode = getattr(model, "encode", None)
    if encode is None:
        raise ValueError(f"behaviour: {words!r} is a text, and {type(model).__name__} has no tokenizer: must be tokens")
    return encode(words)


class Reading(NamedTuple):
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


class Runs:
    """A model on a behaviour's prompts, with any parts resampled.

    The clean and the corrupted run are computed once. Any other one carries by how much the stream differs from the
    corrupted one's: a resampled part adds nothing to that, so that only blocks with a live part are computed, and MLPs
    only from the first place at which the two prompts differ.

    ``model``: a `companion.core.llama.Llama`, a language model that is one, or a model around a `Decoder` of softmax
        attention with logits by its ``unembed``.
    ``prompts``: as `draw` gives them.

    ``clean``, ``corrupted``: the `Reading`s of these two runs. ``parts``: all parts that the model has.

    Raises ValueError for a model of another kind, and for one that gives numbers that are not finite.
    """

    @torch.no_grad()
    def __init__(self, model: Hooked, prompts: Prompts):
        blocks = getattr(model.body, "blocks", None)
        if blocks is None or not all(hasattr(block, "attend") for block in blocks):
            raise ValueError(f"model = {type(model).__name__}: must be a Llama, or have a decoder")
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
                raise ValueError(f"circuit: {named(part)!r}: there is no such {kind}; the model has {few}")

    def without(self, circuit: Circuit) -> Circuit:
        """Return all parts but a circuit's, with no wires named."""
        return Circuit(tuple(part for part in self.parts if part not in set(circuit.parts)))

    @torch.no_grad()
    def run(self, circuit: Circuit) -> Reading:
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
        changed, written = (
            group.embedded,
            {},
        )  # against the corrupted run, of the stream, and by what single writers give

        def whole(change: Tensor, layer: int) -> Tensor:
            """A stream at all places."""
            return torch.cat([group.pre[layer][:, : group.start], group.pre[layer][:, from_start] + change], 1)

        for layer, block in enumerate(self.blocks):
            at = f"blocks.{layer}."
            if heads[layer].any():
                hooks: dict[str, Hook] = {}
                for side in get_args(Side):
                    into = [wire for wire in wires if wire.reader.layer == layer and wire.side == side]
                    read = {wire.reader.head: group.embedded for wire in into}
                    for wire in into:
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
                for writer in {
                    wire.writer for wire in wires if wire.writer.layer == layer and wire.writer.head is not None
                }:
                    written[writer] = kept["change"][:, writer.head, from_start] @ out[:, writer.head].mT
                changed = changed + gives - gave
            if mlps[layer]:
                after = group.pre[layer + 1] if layer + 1 < len(self.blocks) else None
                mid = group.mid[layer][:, from_start]
                gave = block.transform(mid) if after is None else after[:, from_start] - mid
                written[Part(layer)] = mlps[layer] * (block.transform(mid + changed) - gave)
                changed = changed + written[Part(layer)]
        return group.last + changed[:, -1]

    def differences(self, last: Float[Tensor, "pairs width"]) -> Float[Tensor, " pairs"]:
        """Return logit(right) - logit(wrong) from the last streams: of all logits, these two alone."""
        along = self.unembedding[self.prompts.right] - self.unembedding[self.prompts.wrong]
        return (self.model.body.get_submodule("norm")(last) * along).sum(-1)

    def _read(self, last: Tensor) -> Reading:
        logits = self.model.body.get_submodule("norm")(last) @ self.unembedding.mT
        right, wrong = (logits.gather(1, each[:, None])[:, 0] for each in (self.prompts.right, self.prompts.wrong))
        probability = (right - logits.logsumexp(1)).exp()
        return Reading(right - wrong, probability, right >= logits.amax(1))

    def share(self, reading: Reading) -> float:
        """Return the share of the difference that a run keeps: 0 for the corrupted run, 1 for the clean one."""
        return _share(reading.difference, self.clean.difference, self.corrupted.difference).item()


def _put(value: Tensor, put: dict[int | None, Tensor]) -> Tensor:
    """What each head reads, with other streams for some."""
    changed = value.clone()
    for head, stream in put.items():
        changed[:, head] = stream
    return changed


def _share(kept: Tensor, clean: Tensor, corrupted: Tensor) -> Tensor:
    """A ratio of means, over the last axis."""
    low = corrupted.mean(-1)
    return (kept.mean(-1) - low) / (clean.mean(-1) - low)


@dataclass(frozen=True)
class Score:
    """What a circuit's score says, each interval one of 95 % over prompts.

    ``pairs``: how many pairs of prompts.
    ``accuracy``: the share of prompts after which the model puts the right continuation before the wrong one.
    ``faithfulness``, ``completeness``: see `companion.pretrained.circuits.scoring`.
    ``probability``, ``first``: of the right continuation the mean probability, and how often it is the first guess, by
        the circuit; ``whole_probability``, ``whole_first`` by the model.
    ``random``: the faithfulness of random circuits with as many heads and as many MLPs; ``empty``, of none.
    ``flattens``: whether the circuit keeps the difference and loses the answer.
    """

    pairs: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    heads: int
    mlps: int
    wires: int
    faithfulness: float
    faithfulness_interval: tuple[float, float]
    completeness: float
    completeness_interval: tuple[float, float]
    probability: float
    first: float
    whole_probability: float
    whole_first: float
    random: tuple[float, ...]
    empty: float
    flattens: bool

    def row(self) -> Row:
        """Return the score as a row of a table: intervals as two columns, of random circuits the mean and the best."""
        mean, best = (sum(self.random) / max(1, len(self.random)), max(self.random, default=0.0))
        row = {"size": self.heads + self.mlps, **asdict(self), "random": mean, "random_best": best}
        for name in ("accuracy", "faithfulness", "completeness"):
            row[f"{name}_low"], row[f"{name}_high"] = row.pop(f"{name}_interval")
        return row | {"flattens": int(self.flattens)}


def check_shown(runs: Runs) -> tuple[float, tuple[float, float]]:
    """Return the accuracy on a behaviour, with Wilson's interval. Raises ValueError where the model does not show the
    behaviour: the right continuation is not ahead in more than half of the prompts, or corrupting changes nothing.
    """
    ahead, trials = (runs.clean.difference > 0).double().mean().item(), len(runs.clean.difference)
    low, high = wilson(ahead, trials)
    said = f"right ahead of wrong in {ahead:.0%} of {trials} prompts (95 % interval {low:.0%} to {high:.0%})"
    if low <= 0.5:
        raise ValueError(f"behaviour: the model does not show it: {said}; the interval must lie above 50 %")
    change = runs.clean.difference - runs.corrupted.difference
    if change.mean() <= 2 * change.std() / trials**0.5:
        raise ValueError(
            f"behaviour: corrupting changes nothing: the difference is {runs.clean.difference.mean():.2f} on clean "
            f"prompts and {runs.corrupted.difference.mean():.2f} on corrupted ones, so that no share of it can be kept"
        )
    return ahead, (low, high)


def score(runs: Runs, circuit: Circuit, *, random: int = 10, seed: int = 0) -> Score:
    """Score a circuit on a behaviour's prompts. Raises ValueError for a part that is not there, and for a behaviour
    that the model does not show.

    ``random``: how many random circuits of its size are put beside it, drawn from ``seed``.
    """
    accuracy, interval = check_shown(runs)
    kept, rest = runs.run(circuit), runs.run(runs.without(circuit))
    faithfulness, of_kept = _interval(runs, kept, seed)
    completeness, of_rest = _interval(runs, rest, seed)
    mlps = sum(part.head is None for part in circuit.parts)
    drawn = [runs.share(runs.run(each)) for each in random_circuits(runs, circuit, random, seed)]
    probability, whole = (each.probability.mean().item() for each in (kept, runs.clean))
    return Score(
        pairs=len(runs.clean.difference),
        accuracy=accuracy,
        accuracy_interval=interval,
        heads=len(circuit.parts) - mlps,
        mlps=mlps,
        wires=len(circuit.wires),
        faithfulness=faithfulness,
        faithfulness_interval=of_kept,
        completeness=completeness,
        completeness_interval=of_rest,
        probability=probability,
        first=kept.first.double().mean().item(),
        whole_probability=whole,
        whole_first=runs.clean.first.double().mean().item(),
        random=tuple(drawn),
        empty=runs.share(runs.run(Circuit(()))),
        flattens=faithfulness > FLAT and probability < FLAT * whole,
    )


def random_circuits(runs: Runs, circuit: Circuit, count: int, seed: int = 0) -> list[Circuit]:
    """Draw circuits with as many heads and as many MLPs as this one, without wires."""
    random, of_kind = Random(seed), {}
    for is_mlp in (False, True):
        there, asked = (
            [part for part in each if (part.head is None) == is_mlp] for each in (runs.parts, circuit.parts)
        )
        of_kind[is_mlp] = [random.sample(there, len(asked)) for _ in range(count)]
    return [Circuit((*heads, *mlps)) for heads, mlps in zip(of_kind[False], of_kind[True], strict=True)]


def _interval(runs: Runs, reading: Reading, seed: int) -> tuple[float, tuple[float, float]]:
    """The share that a run keeps, and the interval of a bootstrap over prompts."""
    of = (reading.difference, runs.clean.difference, runs.corrupted.difference)
    trials = len(reading.difference)
    drawn = torch.randint(trials, (REDRAWN, trials), generator=torch.Generator().manual_seed(seed))
    low, high = _share(*(each.double()[drawn] for each in of)).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return runs.share(reading), (low, high)
