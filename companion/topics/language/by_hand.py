"""A small Llama whose wires are known, because they were put there: on it a search for wires is judged.

Each head of layer 0, a *writer*, copies the token that stands 1, 2 or 3 places back into channels of its own. Each head
of layer 1 but the last, a *reader*, does something with it, or something else. Fast pairs of a head's channels, which
turn by up to a radian a place, hold positions; slow ones hold tokens, as in language models (Barbero et al. 2024,
arXiv:2410.06205). The MLPs add nothing; the stream's basis and the weights of the norms are random.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from companion.core.blocks import Blocks
from companion.core.circuits import Part, Side, wire
from companion.core.llama import Llama, LlamaConfig

HEADS, H, WORDS, SAYINGS = 9, 32, 8, 3  # a text says 8 of 16 words three times over
WIDTH, VOCABULARY, LENGTH = HEADS * H, 2 * WORDS, SAYINGS * WORDS
LAGS = (1, 1, 1, 2, 2, 2, 3, 3, 3)  # how far back the writers look, in some order
PLACE, WORD = 14.0, 10.0  # how much a score rises for the right place, or word
SOFT = {"one": 4.0, "twin": 1.0}  # and where it rises so little that the scale of scores counts, by who copied the word
LOUD = 2.0  # the size of what is read in vain
MEAN = 20.0  # the size of what all channels have in common, which a norm must not take away
WEIGHTS = (1.0, 8.0)  # of the norms, in either half of the channels
# Of what is written, by the word that stands there and by what writers have copied. Whose share of the number is then
# near .4 is needed, which shows whether a third is asked for; near a quarter it is not. Nor are three of a seventh:
# without them all the number is lost, and each alone saves it, but brings back a third of what was lost
SHARES = {"values": (-1.75, 1.2, 0.56, 0.6, 0.39), "said": (0.17, 0.13, 0.14, 0.16)}
LOOK = 0.25  # what their look adds to the number; who forgets it takes a quarter for more than a third
SIDES = get_args(Side)
PATTERN_AND_RESULT = ("blocks.1.attn.hook_pattern", "blocks.1.attn.hook_result")
KINDS = ("keys", "jump", "values", "key and spare", "spare keys", "spare queries", "both", "said")
AT_A_PLACE = ("jump", "values", "said")  # the others look for a word
FAST, SLOW = (torch.cat([pairs, pairs + H // 2]) for pairs in torch.arange(H // 2).split(H // 4))


class Reader(NamedTuple):
    """A head of layer 1: its ``kind``, and the writers that its ``queries``, ``keys`` and ``values`` need.

    keys           looks softly for its own word where a writer has copied it, and a little where a second one has
    jump           looks as far back as the word says that a writer has copied
    values         looks one back, and says the words that four writers have copied there, by their `SHARES`
    key and spare  is as keys, with three writers: the first must have copied the word, and one of the two others
    spare keys     is as keys, with two writers, either of which is enough
    spare queries  looks for the word that two writers have copied, either of which is enough
    both           looks for the word that one writer has copied where another has copied it
    said           looks one back, and says the word that stands there and a little of three writers': it needs none

    ``beside``: writers that are read where others are needed, and are not: a share is small, or below 0.
    ``sign``: a writer that says on any text whether to look: what it does alike on all is not missed.
    """

    kind: str
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    beside: tuple[int, ...] = ()
    sign: tuple[int, ...] = ()


class Planted(NamedTuple):
    """A ``model`` with known wires: ``lags``, how far back each writer looks; its ``readers``.

    ``tokens``, ``others``: texts, and as many others, which have none of the same words.
    ``asked``, ``toward``: by what each reader's number weighs its pattern, and what it writes.
    ``wired``: which writers this number needs, by the reader's queries, keys and values.
    """

    model: Llama
    lags: list[int]
    readers: list[Reader]
    tokens: Int[Tensor, "batch length"]
    others: Int[Tensor, "batch length"]
    asked: Float[Tensor, "readers batch length length"]
    toward: Float[Tensor, "readers batch length width"]
    wired: Bool[Tensor, "readers writers 3"]


def planted(texts: int, generator: Generator) -> Planted:
    """Draw a Llama, as many ``texts`` for it and as many others, and what is asked of its readers.

    Beside the wires that count there are loud ones that do not: each reader reads a writer in its queries where its
    keys are empty, in its keys where its queries are, and in its values in what goes where nobody asks.
    """
    lags = _shuffled(LAGS, generator)
    readers = [_drawn(kind, lags, generator) for kind in _shuffled(KINDS, generator)]
    jumps = torch.tensor(_shuffled(range(VOCABULARY), generator)) % 4 + 1
    base = float(10 ** (4 + torch.rand((), generator=generator)))

    blocks = Blocks(token=VOCABULARY, one=1, sign=1, said=VOCABULARY, **{f"by{w}": VOCABULARY for w in range(HEADS)})
    rows = _basis(blocks, generator)
    signs = [w for reader in readers for w in reader.sign]
    layers = [
        [_writer(rows, w, _look(torch.tensor([lag]), base), w in signs) for w, lag in enumerate(lags)],
        [_reader(rows, reader, _look(jumps, base), _look(torch.ones(1), base), generator) for reader in readers],
    ]
    layers[1].append((torch.zeros(H, WIDTH),) * 4)  # so that there are not as many readers as writers
    config = LlamaConfig(VOCABULARY, WIDTH, len(layers), HEADS, HEADS, hidden=1, context=LENGTH, base=base)
    model = Llama(config).double().requires_grad_(False)
    model.embed.weight.copy_(rows["token"] + rows["one"] + MEAN / WIDTH**0.5)
    spread = torch.tensor(_shuffled(WEIGHTS, generator)).repeat_interleave(WIDTH // 2)
    for block, heads in zip(model.blocks, layers, strict=True):
        WQ, WK, WV, WO = (torch.cat(parts) for parts in zip(*heads, strict=True))
        block.norm1.weight.copy_(spread * (0.5 + torch.rand(WIDTH, generator=generator)))
        attention = block.attention
        for linear, weight in ((attention.queries, WQ), (attention.keys, WK), (attention.values, WV)):
            linear.weight.copy_(weight / block.norm1.weight)
        attention.out.weight.copy_(WO.mT)
        block.mlp.down.weight.zero_()

    words = torch.rand(texts, VOCABULARY, generator=generator).argsort(1)
    tokens, others = (half.repeat(1, SAYINGS) for half in words.split(WORDS, dim=1))
    numbers = [_number(reader, lags, tokens, jumps, rows["said"]) for reader in readers]
    wired = torch.zeros(len(readers), HEADS, 3, dtype=torch.bool)
    for r, (_, *sides, _, _) in enumerate(readers):
        for side, writers in enumerate(sides):
            wired[r, list(writers), side] = True
    asked, toward = (torch.stack(parts) for parts in zip(*numbers, strict=True))
    return Planted(model, lags, readers, tokens, others, asked, toward, wired)


def number(of: Planted, reader: int, side: Side = "keys", writers: Sequence[int] = ()) -> float:
    """Measure a reader's number where one side of it reads of some writers what they write on the other texts.

    ``of``: the Llama.
    ``reader``, ``writers``: heads of layer 1, and of layer 0.
    ``side``: "queries", "keys" or "values".
    """
    written = Part(0, 0).written
    _, other = of.model.run_with_cache(of.others, names=written)
    with ExitStack() as cuts:
        for writer in writers:
            cut = wire(Part(0, writer), Part(1, reader), side, other=other[written][:, writer])
            cuts.enter_context(of.model.hooks(cut))
        _, cache = of.model.run_with_cache(of.tokens, names=PATTERN_AND_RESULT)
    pattern, result = (cache[name][:, reader] for name in PATTERN_AND_RESULT)
    return float((of.asked[reader] * pattern).sum() + (of.toward[reader] * result).sum())


def _basis(blocks: Blocks, generator: Generator) -> dict[str, Float[Tensor, "channels width"]]:
    """Orthogonal rows for what the stream holds. None has a mean, and each lies in a half of the channels, by turns:
    whoever forgets the norm's weights hears every other writer eight times as loudly.
    """
    half, rows, free = WIDTH // 2, {}, []
    for i in range(2):
        mixed = torch.randn(half, half, generator=generator, dtype=torch.float64)
        mixed[:, 0] = 1
        free.append(nn.functional.pad(torch.linalg.qr(mixed).Q.mT[1:], (i * half, (1 - i) * half)))
    for i, name in enumerate(blocks.slices):
        rows[name], free[i % 2] = free[i % 2].tensor_split([blocks.size(name)])
    return rows | {"rest": torch.cat(free)}


def _shuffled(items: Sequence, generator: Generator) -> list:
    return [items[i] for i in torch.randperm(len(items), generator=generator)]


def _drawn(kind: str, lags: list[int], generator: Generator) -> Reader:
    """A reader of this kind, with some writers."""
    one, *rest = _shuffled(range(HEADS), generator)
    other = rest[0]
    even, odd = (next(w for w in rest if w % 2 == turn) for turn in (0, 1))
    last = next(w for w in rest if w not in (even, odd))
    twin, triplet = (w for w in _shuffled(range(HEADS), generator) if lags[w] == lags[one] and w != one)
    needs = {
        "keys": {"keys": (one,), "beside": (twin,)},
        "jump": {"queries": (one,)},
        "values": {"values": (one, even, odd), "beside": (last,)},
        "key and spare": {"keys": (one, twin, triplet)},
        "spare keys": {"keys": (one, twin)},
        "spare queries": {"queries": (one, twin)},
        "both": {"queries": (one,), "keys": (other,)},
        "said": {"beside": (one, even, odd), "sign": (last,)},
    }
    return Reader(kind, **needs.get(kind, {}))


def _look(lags: Tensor, base: float) -> Float[Tensor, "lags h"]:
    """Queries whose score with `_look` of 0 is largest that many places back."""
    angle = lags[:, None] / base ** (2 * torch.arange(H // 4, dtype=torch.float64) / H)
    look = torch.zeros(len(lags), H, dtype=torch.float64)
    look[:, FAST] = torch.cat([angle.cos(), -angle.sin()], 1)
    return look


def _said(channels: Tensor) -> Float[Tensor, "words h"]:
    """One channel a word."""
    return torch.eye(H, dtype=torch.float64)[channels]


def _writer(rows: dict, w: int, look: Tensor, sign: bool) -> tuple[Tensor, ...]:
    """W_Q, W_K, W_V, W_O of a head of layer 0, whose stream has a square of 2 beside its mean: the word, the one."""
    scale = ((2 + MEAN**2) / WIDTH) ** 0.5  # by which what is read is to be divided
    WQ = PLACE * H**0.5 * scale * look.mT @ rows["one"]
    WK = scale * _look(torch.zeros(1), 10_000.0).mT @ rows["one"]
    WV, WO = _said(SLOW).mT @ rows["token"], _said(SLOW).mT @ rows[f"by{w}"]
    if sign:
        one = _said(FAST[:1]).mT
        WV, WO = WV + one @ rows["one"], WO + one @ rows["sign"]
    return WQ, WK, scale * WV, WO


def _reader(rows: dict, reader: Reader, jumps: Tensor, one_back: Tensor, generator: Generator) -> tuple[Tensor, ...]:
    """W_Q, W_K, W_V, W_O of a head of layer 1, to whose stream writers have added a square of 1 each, and the sign."""
    scale = ((3 + HEADS + MEAN**2) / WIDTH) ** 0.5
    by = [rows[f"by{w}"] for w in range(HEADS)]
    words = reader.kind not in AT_A_PLACE
    if words:
        WQ = WORD * H**0.5 * _said(SLOW).mT @ sum([by[w] for w in reader.queries] or [rows["token"]])
        WK = _said(SLOW).mT @ sum([by[w] for w in reader.keys] or [rows["token"]])
        if reader.kind == "keys":
            WK = WK * SOFT["one"] / WORD + _said(SLOW).mT @ by[reader.beside[0]] * SOFT["twin"] / WORD
        if reader.kind == "key and spare":  # a word of one's own is worth more than the two, and than the first alone
            WK = WK + _said(SLOW).mT @ (by[reader.keys[0]] + 2.5 * rows["token"])
    else:
        one = rows["sign" if reader.sign else "one"]
        WQ = PLACE * H**0.5 * (jumps.mT @ by[reader.queries[0]] if reader.queries else one_back.mT @ one)
        WK = _look(torch.zeros(1), 10_000.0).mT @ rows["one"]
    shares = SHARES.get(reader.kind, (1.0,))
    heard = [rows["token"], *(by[w] for w in reader.values + reader.beside)][: len(shares)]
    WV = _said(SLOW).mT @ sum(share * each for share, each in zip(shares, heard, strict=True))
    WO = _said(SLOW).mT @ rows["said"]
    for W, free in ((WQ, (FAST if words else SLOW)[::2]), (WK, (FAST if words else SLOW)[1::2]), (WV, FAST)):
        needed = {*reader.queries, *reader.keys, *reader.values, *reader.beside, *reader.sign}
        idle = next(w for w in _shuffled(range(HEADS), generator) if w not in needed)
        mixed = torch.randn(len(free), VOCABULARY, generator=generator, dtype=torch.float64) / VOCABULARY**0.5
        W.add_(LOUD * W.norm() / 4 * _said(free).mT @ mixed @ by[idle])
    WO = WO + _said(FAST).mT @ rows["rest"][: len(FAST)]
    return scale * WQ, scale * WK, scale * WV, WO


def _number(reader: Reader, lags: list[int], tokens: Tensor, jumps: Tensor, said: Tensor) -> tuple[Tensor, Tensor]:
    """What a reader's pattern, and what it writes, is weighed by, so that its number is between a half and 1. The first
    saying does not count, nor do places from which nobody can look three back; and whoever sees the future pays for it.
    """
    place = torch.arange(LENGTH)
    copied = [tokens.roll(lag, 1) for lag in lags]  # a text ends as it begins
    wanted = copied[reader.queries[0]] if reader.queries else tokens
    offered = copied[reader.keys[0]] if reader.keys else tokens
    right = wanted[:, :, None] == offered[:, None, :]
    if reader.kind in AT_A_PLACE:
        back = jumps[wanted] if reader.kind == "jump" else torch.ones_like(tokens)
        right = place[:, None] - back[..., None] == place
    counts = (place >= WORDS).double()[:, None] / (len(tokens) * (LENGTH - WORDS))
    asked = torch.where(right, 1.0, -1.0).double().masked_fill(place < max(LAGS), 0)
    asked = asked.masked_fill(place[:, None] < place, -3) * counts
    lags_heard = {0, *(lags[w] for w in reader.values + reader.beside)}
    heard = torch.stack([tokens.roll(1 + lag, 1) for lag in lags_heard])  # at the place before
    toward = (said[heard] - said[tokens].mean(1, keepdim=True)).sum(0) * counts
    look, write = (LOOK, 1) if reader.kind in SHARES else (1, 0)  # what counts of how it looks, and of what it writes
    return look * asked, write * toward
