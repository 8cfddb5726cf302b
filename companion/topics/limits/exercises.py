"""The exercises of lesson 12, what one pass can compute.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = [
    "flip_slope",
    "hops",
    "in_steps",
    "prefix_doubling",
    "prefix_products",
    "two_counts",
    "worked_steps",
]


def _permutations(generator: Generator, length: int, n: int) -> Tensor:
    return torch.rand(length, n, generator=generator).argsort(-1)


# -- prefix_products


def _draw_word(generator: Generator) -> dict:
    return {"words": _permutations(generator, draw_size(generator, 5, 7), draw_size(generator, 4, 5))}


def _prefix_products(words: Tensor) -> Tensor:
    state, states = words[0], [words[0]]
    for word in words[1:]:
        state = word[state]
        states.append(state)
    return torch.stack(states)


def _products(words, *, start=None, then=lambda state, word: word[state], over=slice(1, None)):
    """The recurrence with one thing done differently."""
    state = words[0] if start is None else start(words)
    states = [state]
    for word in words[over]:
        state = then(state, word)
        states.append(state)
    return torch.stack(states)


def _identity(words: Tensor) -> Tensor:
    return torch.arange(words.shape[1])


prefix_products = Exercise(
    name="prefix_products",
    answer=_prefix_products,
    draw=_draw_word,
    mistakes={
        "the order is reversed: the state comes first, then the symbol, so that the symbol is asked where the state's "
        "points go": lambda words: _products(words, then=lambda state, word: state[word]),
        "every entry is one symbol late: the first entry is the first symbol, not the identity": lambda words: (
            _products(words, start=_identity, over=slice(0, -1))
        ),
        "the first symbol is applied twice": lambda words: _products(words, over=slice(0, None))[1:],
        "the first symbol is left out of all products but the first": lambda words: torch.cat(
            [words[:1], _products(words[1:])]
        ),
        "each product has two symbols only: the state is not kept": lambda words: torch.cat(
            [words[:1], words[1:].gather(1, words[:-1])]
        ),
    },
)


# -- prefix_doubling


def _draw_doubling(generator: Generator) -> dict:
    length, n = draw_size(generator, 10, 12), draw_size(generator, 3, 4)
    return {"words": _permutations(generator, length, n), "layers": draw_size(generator, 3, 4)}


def _prefix_doubling(words: Tensor, layers: int) -> Tensor:
    T, n = words.shape
    f = words
    for layer in range(layers):
        shift = 2**layer
        start = torch.arange(n, device=words.device).expand(shift, n)
        earlier = torch.cat([start, f])[:T]
        f = f.gather(1, earlier)
    return f


def _doubled(
    words,
    layers,
    *,
    shift=lambda layer: 2**layer,
    earlier=None,
    then=lambda f, earlier, words: f.gather(1, earlier),
):
    """The doubling with one thing done differently."""
    f = words
    for layer in range(layers):
        by = shift(layer)
        places = torch.arange(words.shape[1], device=words.device)
        start = places.expand(min(by, len(words)), -1)  # no more, for any number of layers
        before = torch.cat([start, f])[: len(words)] if earlier is None else earlier(f, by)
        f = then(f, before, words)
    return f


prefix_doubling = Exercise(
    name="prefix_doubling",
    answer=_prefix_doubling,
    draw=_draw_doubling,
    mistakes={
        "wraps round: the first places have nothing before them, and must meet the identity": lambda words, layers: (
            _doubled(words, layers, earlier=lambda f, by: f.roll(by, 0))
        ),
        "every layer looks one place back; layer l looks 2^l back": lambda words, layers: _doubled(
            words, layers, shift=lambda layer: 1
        ),
        "layer l looks l places back, counted from 1; it must double, 2^l": lambda words, layers: _doubled(
            words, layers, shift=lambda layer: layer + 1
        ),
        "the first layer looks two places back, and skips every other symbol": lambda words, layers: _doubled(
            words, layers, shift=lambda layer: 2 ** (layer + 1)
        ),
        "the order is reversed: what comes earlier in the word is applied first": lambda words, layers: _doubled(
            words, layers, then=lambda f, earlier, words: earlier.gather(1, f)
        ),
        "the symbol itself is applied after the earlier product; what has been collected so far must be": (
            lambda words, layers: _doubled(words, layers, then=lambda f, earlier, words: words.gather(1, earlier))
        ),
        "one layer too few": lambda words, layers: _doubled(words, layers - 1),
    },
)


# -- two_counts


def _draw_turns(generator: Generator) -> dict:
    length, n = draw_size(generator, 9, 12), draw_size(generator, 5, 8)
    flips = 1 - 2 * torch.randint(2, (length,), generator=generator)
    flips[0] = -1  # or what is done with the first one would not show
    return {"turns": torch.randint(1, n, (length,), generator=generator), "flips": flips, "n": n}


def _two_counts(turns: Tensor, flips: Tensor, n: int) -> Tensor:
    sign = flips.cumprod(0)
    count = (turns * sign).cumsum(0)
    return sign * count % n


def _before(flips: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(flips[:1]), flips.cumprod(0)[:-1]])


two_counts = Exercise(
    name="two_counts",
    answer=_two_counts,
    draw=_draw_turns,
    mistakes={
        "the flips are not used: every flip turns all earlier turns round": lambda turns, flips, n: turns.cumsum(0) % n,
        "each turn is signed by its own flip alone; the parity of all flips so far counts": lambda turns, flips, n: (
            (turns * flips).cumsum(0) % n
        ),
        "the sign in front of the sum is missing: later flips act on earlier turns": lambda turns, flips, n: (
            (turns * flips.cumprod(0)).cumsum(0) % n
        ),
        "a turn is signed by the flips before it, without its own": lambda turns, flips, n: (
            flips.cumprod(0) * (turns * _before(flips)).cumsum(0) % n
        ),
        "the sum is not taken modulo n": lambda turns, flips, n: (
            flips.cumprod(0) * (turns * flips.cumprod(0)).cumsum(0)
        ),
    },
)


# -- hops

HOP_NUMBERS = (11, 13, 19, 22, 26)  # both digits, and more than one of each


def _draw_pointers(generator: Generator) -> dict:
    n = draw_size(generator, 13, 17)
    while True:  # a permutation that repeats soon would make many numbers of hops alike
        pointers = _permutations(generator, 1, n)[0]
        if len({tuple(_hopped(pointers, k).tolist()) for k in range(33)}) == 33:
            return {"pointers": pointers, "k": HOP_NUMBERS[draw_size(generator, 0, len(HOP_NUMBERS) - 1)]}


def _hops(pointers: Tensor, k: int) -> Tensor:
    place = torch.arange(len(pointers), device=pointers.device)
    for digit in range(k.bit_length()):
        if k >> digit & 1:
            place = pointers[place]
        pointers = pointers[pointers]
    return place


def _hopped(pointers: Tensor, times: int) -> Tensor:
    place = torch.arange(len(pointers))
    for _ in range(times):
        place = pointers[place]
    return place


def _squares_the_place(pointers: Tensor, k: int) -> Tensor:
    place = torch.arange(len(pointers))
    for digit in range(k.bit_length()):
        if k >> digit & 1:
            place = pointers[place]
        place = place[place]
    return place


hops = Exercise(
    name="hops",
    answer=_hops,
    draw=_draw_pointers,
    mistakes={
        "squares the place; the pointers must be squared, and the place only moves along them": _squares_the_place,
        "one hop too many: before the first hop every place is at itself": lambda pointers, k: _hopped(pointers, k + 1),
        "the digits of k are read from the largest one, the pointers are doubled from the smallest": (
            lambda pointers, k: _hopped(pointers, int(f"{k:b}"[::-1], 2))
        ),
        "hops where the digit is 0, not where it is 1": lambda pointers, k: _hopped(
            pointers, 2 ** k.bit_length() - 1 - k
        ),
        "hops at every digit, whatever it is": lambda pointers, k: _hopped(pointers, 2 ** k.bit_length() - 1),
        "the largest digit of k is left out": lambda pointers, k: _hopped(pointers, k - 2 ** (k.bit_length() - 1)),
        "the pointers are not doubled: it counts the digits that are 1": lambda pointers, k: _hopped(
            pointers, k.bit_count()
        ),
    },
)


# -- flip_slope


def _draw_changes(generator: Generator) -> dict:
    sizes, nets = draw_size(generator, 4, 6), draw_size(generator, 8, 12)
    lengths = 2.0 ** torch.arange(2, 2 + sizes, dtype=torch.float64)
    lengths = lengths * (1 + torch.rand(sizes, generator=generator, dtype=torch.float64))
    lengths = lengths[torch.randperm(sizes, generator=generator)]
    return {"changes": draw_normal(generator, sizes, nets) / lengths[:, None], "lengths": lengths}


def _flip_slope(changes: Tensor, lengths: Tensor) -> Tensor:
    size = changes.abs().mean(1).log()
    x = lengths.log()
    x = x - x.mean()
    return (x * (size - size.mean())).sum() / x.square().sum()


def _line(x: Tensor, y: Tensor) -> Tensor:
    return ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()


flip_slope = Exercise(
    name="flip_slope",
    answer=_flip_slope,
    draw=_draw_changes,
    mistakes={
        "changes of different signs cancel: the size of each change is to be averaged": lambda changes, lengths: _line(
            lengths.log(), changes.mean(1).abs().log()
        ),
        "the mean of the logarithms; the mean of the sizes comes first, then its logarithm": lambda changes, lengths: (
            _line(lengths.log(), changes.abs().log().mean(1))
        ),
        "the lengths are not on a logarithmic scale": lambda changes, lengths: _line(
            lengths, changes.abs().mean(1).log()
        ),
        "the sizes are not on a logarithmic scale": lambda changes, lengths: _line(
            lengths.log(), changes.abs().mean(1)
        ),
        "the line is made to go through 0: take the means off before you fit": lambda changes, lengths: (
            (lengths.log() * changes.abs().mean(1).log()).sum() / lengths.log().square().sum()
        ),
        "only the first and the last length are used": lambda changes, lengths: (
            (changes.abs().mean(1).log()[-1] - changes.abs().mean(1).log()[0]) / (lengths[-1].log() - lengths[0].log())
        ),
        "x and y are exchanged: the slope says how the change depends on the length": lambda changes, lengths: _line(
            changes.abs().mean(1).log(), lengths.log()
        ),
    },
)


# -- worked_steps


def _draw_bits(generator: Generator) -> dict:
    return {"bits": torch.randint(2, (draw_size(generator, 12, 16), draw_size(generator, 4, 6)), generator=generator)}


def _worked_steps(bits: Tensor) -> Tensor:
    running, tokens = bits[:, 0], []
    for bit in bits.T[1:]:
        both = running * bit
        running = running + bit - 2 * both
        tokens += [both, running]
    return torch.stack(tokens, 1)


def _worked(bits, *, both=lambda old, bit, new: old * bit, new=lambda old, bit: (old + bit) % 2, order=1, first=None):
    """The steps with one thing done differently."""
    running, tokens = bits[:, 0] if first is None else first(bits), []
    for bit in bits.T[1:]:
        after = new(running, bit)
        tokens += [both(running, bit, after), after][::order]
        running = after
    return torch.stack(tokens, 1)


worked_steps = Exercise(
    name="worked_steps",
    answer=_worked_steps,
    draw=_draw_bits,
    mistakes={
        "the AND is taken with the new parity; it must be of the parity before, from which the new one is made": (
            lambda bits: _worked(bits, both=lambda old, bit, new: new * bit)
        ),
        "the two tokens of a step are exchanged: the AND is written before the parity that needs it": lambda bits: (
            _worked(bits, order=-1)
        ),
        "an OR stands where the AND belongs": lambda bits: _worked(
            bits, both=lambda old, bit, new: (old + bit).clamp_max(1)
        ),
        "the running value is an OR, no parity: two 1s make 0, so the AND is taken off twice": lambda bits: _worked(
            bits, new=lambda old, bit: (old + bit).clamp_max(1)
        ),
        "the running value is an AND, no parity": lambda bits: _worked(bits, new=lambda old, bit: old * bit),
        "the parity starts at 0: the first bit is lost": lambda bits: _worked(
            bits, first=lambda bits: torch.zeros_like(bits[:, 0])
        ),
        "the steps are the parities of neighbours: what is running is not kept": lambda bits: torch.stack(
            [bits[:, :-1] * bits[:, 1:], (bits[:, :-1] + bits[:, 1:]) % 2], 2
        ).flatten(1),
    },
)


# -- in_steps


def _draw_blocks(generator: Generator) -> dict:
    layers = draw_size(generator, 1, 3)
    # one symbol more than full blocks, so that a block of another size shows in the number of steps
    length = 2 + (2**layers - 1) * draw_size(generator, 3, 4)
    return {"words": _permutations(generator, length, draw_size(generator, 4, 5)), "layers": layers}


def _in_steps(words: Tensor, layers: int) -> Tensor:
    take, state, written = 2**layers - 1, words[0], []
    for start in range(1, len(words), take):
        block = torch.cat([state[None], words[start : start + take]])
        state = _prefix_doubling(block, layers)[-1]
        written.append(state)
    return torch.stack(written)


def _blockwise(words, layers, *, carry=lambda state, words, start: state, order=lambda block: block):
    """The steps with one thing done differently."""
    take, state, written = 2**layers - 1, words[0], []
    for start in range(1, len(words), take):
        block = torch.cat([carry(state, words, start)[None], words[start : start + take]])
        state = _doubled(order(block), layers)[-1]
        written.append(state)
    return torch.stack(written)


in_steps = Exercise(
    name="in_steps",
    answer=_in_steps,
    draw=_draw_blocks,
    mistakes={
        "every step starts afresh: the state that the step before has written must be read": lambda words, layers: (
            _blockwise(words, layers, carry=lambda state, words, start: torch.arange(words.shape[1]))
        ),
        "a step reads the symbol before its block; it must read the state written there": lambda words, layers: (
            _blockwise(words, layers, carry=lambda state, words, start: words[start - 1])
        ),
        "every step starts from the first symbol; it must start from what the step before has written": (
            lambda words, layers: _blockwise(words, layers, carry=lambda state, words, start: words[0])
        ),
        "the state is put behind its block; it is the product of what came before": lambda words, layers: _blockwise(
            words, layers, order=lambda block: block.roll(-1, 0)
        ),
    },
)
