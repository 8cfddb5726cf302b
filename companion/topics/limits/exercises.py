"""The exercises of lesson 12, what one pass can compute."""

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


prefix_products = Exercise(
    name="prefix_products",
    answer=_prefix_products,
    draw=_draw_word,
)


# -- prefix_doubling


def _draw_doubling(generator: Generator) -> dict:
    length, n = draw_size(generator, 10, 12), draw_size(generator, 3, 4)
    return {"words": _permutations(generator, length, n), "layers": draw_size(generator, 2, 4)}


def _prefix_doubling(words: Tensor, layers: int) -> Tensor:
    T, n = words.shape
    f = words
    for layer in range(layers):
        shift = 2**layer
        start = torch.arange(n, device=words.device).expand(shift, n)
        earlier = torch.cat([start, f])[:T]
        f = f.gather(1, earlier)
    return f


prefix_doubling = Exercise(
    name="prefix_doubling",
    answer=_prefix_doubling,
    draw=_draw_doubling,
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


two_counts = Exercise(
    name="two_counts",
    answer=_two_counts,
    draw=_draw_turns,
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


hops = Exercise(
    name="hops",
    answer=_hops,
    draw=_draw_pointers,
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


flip_slope = Exercise(
    name="flip_slope",
    answer=_flip_slope,
    draw=_draw_changes,
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


worked_steps = Exercise(
    name="worked_steps",
    answer=_worked_steps,
    draw=_draw_bits,
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


in_steps = Exercise(
    name="in_steps",
    answer=_in_steps,
    draw=_draw_blocks,
)
