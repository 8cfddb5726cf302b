"""Exercises on Boolean functions: who flips what, the spectrum, and what a sample says.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_size


def _draw_values(generator: Generator) -> dict:
    """A random function, -1 or 1, rarer in the one than in the other, whose last bit matters less than the others."""
    n = draw_size(generator, 4, 6)
    half = torch.rand(2 ** (n - 1), generator=generator, dtype=torch.float64) < 0.35
    other = half ^ (torch.rand(2 ** (n - 1), generator=generator, dtype=torch.float64) < 0.15)
    return {"values": 1 - 2 * torch.cat([half, other]).double()}


# -- influences


def _influences(values: Tensor) -> Tensor:
    n = len(values).bit_length() - 1
    number = torch.arange(len(values), device=values.device)
    shares = []
    for bit in range(n):
        neighbour = number ^ 2**bit
        changed = (values != values[neighbour]).to(values.dtype)
        shares.append(changed.mean())
    return torch.stack(shares)


def _influences_by(values: Tensor, neighbour) -> Tensor:
    """With another idea of who the neighbour is."""
    n, number = len(values).bit_length() - 1, torch.arange(len(values))
    return torch.stack([(values != values[neighbour(number, bit)]).double().mean() for bit in range(n)])


influences = Exercise(
    name="influences",
    answer=_influences,
    draw=_draw_values,
    mistakes={
        "the bits are in reverse order: bit i counts 2^i": lambda values: _influences(values).flip(0),
        "2^i is added to the number, which carries over; a flip changes bit i alone": lambda values: _influences_by(
            values, lambda number, bit: (number + 2**bit) % len(number)
        ),
        "all bits are flipped at once": lambda values: _influences_by(
            values, lambda number, bit: len(number) - 1 - number
        ),
        "the number is combined with i, not with 2^i": lambda values: _influences_by(
            values, lambda number, bit: number ^ bit
        ),
        "the changes are counted; their share is asked for": lambda values: _influences(values) * len(values),
        "every change counts as 4, the square of the difference of -1 and 1": lambda values: 4 * _influences(values),
        "every change counts twice": lambda values: 2 * _influences(values),
        "the share of inputs at which nothing changes": lambda values: 1 - _influences(values),
        "divided by the number of bits: only the mean over bits, the sensitivity, has that": lambda values: (
            _influences(values) / (len(values).bit_length() - 1)
        ),
    },
)


# -- weight_by_degree


def _weight_by_degree(values: Tensor) -> Tensor:
    n = len(values).bit_length() - 1
    for bit in range(n):
        low, high = values.view(-1, 2, 2**bit).unbind(1)
        values = torch.stack([low + high, low - high], 1).flatten()
    coefficients = values / 2**n
    numbers = torch.arange(2**n, device=values.device)
    bits = numbers[:, None] >> torch.arange(n, device=values.device) & 1
    degree = bits.sum(-1)
    weights = torch.zeros(n + 1, dtype=values.dtype, device=values.device)
    return weights.index_add(0, degree, coefficients.square())


def _spectrum(values: Tensor) -> tuple[Tensor, Tensor]:
    """All coefficients, and how many bits each is about."""
    n = len(values).bit_length() - 1
    bits = torch.arange(2**n)[:, None] >> torch.arange(n) & 1
    signs = (-1.0) ** (bits @ bits.mT)
    return signs.double() @ values / 2**n, bits.sum(-1)


def _gathered(values: Tensor, weigh, degree=None) -> Tensor:
    coefficients, ones = _spectrum(values)
    degree = ones if degree is None else degree(len(values))
    return torch.zeros(int(ones.max()) + 1).double().index_add(0, degree, weigh(coefficients))


def _highest(many: int) -> Tensor:
    return torch.tensor([number.bit_length() for number in range(many)])


weight_by_degree = Exercise(
    name="weight_by_degree",
    answer=_weight_by_degree,
    draw=_draw_values,
    mistakes={
        "the sums are not divided by 2^n: a coefficient is a mean": lambda values: _gathered(
            values, lambda c: (c * len(values)).square()
        ),
        "divided by the root of 2^n; a coefficient is a mean over all 2^n inputs": lambda values: _gathered(
            values, lambda c: c.square() * len(values)
        ),
        "the coefficients are not squared": lambda values: _gathered(values, lambda c: c),
        "absolute values stand where squares belong": lambda values: _gathered(values, torch.abs),
        "the degree is the place of the highest bit; it is how many bits are set": lambda values: _gathered(
            values, torch.square, _highest
        ),
        "the degrees are in reverse order": lambda values: _weight_by_degree(values).flip(0),
        "means over the coefficients of a degree; their weights add up": lambda values: (
            _weight_by_degree(values) / _gathered(values, torch.ones_like)
        ),
        "the empty set is left out: degree 0 has the squared mean of the function": lambda values: torch.cat(
            [torch.zeros(1).double(), _weight_by_degree(values)[1:]]
        ),
    },
)


# -- neighbours


def _draw_bits(generator: Generator) -> dict:
    shape = draw_size(generator, 3, 5), draw_size(generator, 6, 8)
    return {"bits": torch.randint(2, shape, generator=generator)}


def _neighbours(bits: Tensor) -> Tensor:
    n = bits.shape[1]
    flips = torch.eye(n, dtype=bits.dtype, device=bits.device)
    copies = bits[:, None, :].expand(-1, n, n)
    return torch.where(flips == 1, 1 - copies, copies)


def _copied(bits: Tensor, change, here=None) -> Tensor:
    """Copies with something else than the right bit changed."""
    n = bits.shape[1]
    here = torch.eye(n, dtype=torch.bool) if here is None else here(n)
    copies = bits[:, None, :].expand(-1, n, n)
    return torch.where(here, change(copies), copies)


neighbours = Exercise(
    name="neighbours",
    answer=_neighbours,
    draw=_draw_bits,
    mistakes={
        "every bit is flipped in every copy": lambda bits: _copied(
            bits, lambda copies: 1 - copies, lambda n: torch.ones(n, n, dtype=torch.bool)
        ),
        "in copy i every bit but bit i is flipped": lambda bits: _copied(
            bits, lambda copies: 1 - copies, lambda n: ~torch.eye(n, dtype=torch.bool)
        ),
        "the copies are alike: nothing is flipped": lambda bits: _copied(bits, lambda copies: copies),
        "bit i is set to 0; where it is 0 already, it must become 1": lambda bits: _copied(bits, torch.zeros_like),
        "bit i is set to 1; where it is 1 already, it must become 0": lambda bits: _copied(bits, torch.ones_like),
        "copy i holds bit i in all places: the copies run along the wrong axis": lambda bits: _neighbours(bits).mT,
        "the copies are in reverse order": lambda bits: _neighbours(bits).flip(1),
        "copy i has all bits up to i flipped": lambda bits: _copied(
            bits, lambda copies: 1 - copies, lambda n: torch.ones(n, n).tril() == 1
        ),
    },
)


# -- estimate


def _draw_answers(generator: Generator) -> dict:
    """Answers of few strings, which by turns change now and then, so that the interval would reach below 0, and often,
    so that it does not.
    """
    m, n = draw_size(generator, 20, 35), draw_size(generator, 5, 9)
    before = torch.randint(2, (m,), generator=generator)
    seldom, often = ((0.05, 0.08, 0.11), (0.45, 0.5, 0.55))
    odds = (often if generator.initial_seed() % 2 else seldom)[draw_size(generator, 0, 2)]
    flips = (torch.rand(m, n, generator=generator, dtype=torch.float64) < odds).long()
    return {
        "before": before,
        "after": before[:, None] ^ flips,
        "delta": (0.05, 0.1, 0.2)[draw_size(generator, 0, 2)],
    }


def _estimate(before: Tensor, after: Tensor, delta: float) -> Tensor:
    changed = (after != before[:, None]).double()
    mean = changed.mean()
    surprise = -torch.tensor(delta / 2, dtype=mean.dtype, device=mean.device).log()
    half = (surprise / (2 * len(before))).sqrt()
    return torch.stack([mean - half, mean, mean + half]).clamp(0, 1)


def _around(mean: Tensor, half) -> Tensor:
    return torch.stack([mean - half, mean, mean + half]).clamp(0, 1)


def _share_changed(before: Tensor, after: Tensor) -> Tensor:
    return (after != before[:, None]).double().mean()


def _width(delta: float, many: float) -> Tensor:
    return (-torch.tensor(delta / 2).double().log() / many).sqrt()


estimate = Exercise(
    name="estimate",
    answer=_estimate,
    draw=_draw_answers,
    mistakes={
        "the flips of one input are counted as independent draws: only the m inputs are": lambda before, after, delta: (
            _around(_share_changed(before, after), _width(delta, 2 * after.numel()))
        ),
        "delta is not halved: the bound must hold on both sides": lambda before, after, delta: _around(
            _share_changed(before, after), _width(2 * delta, 2 * len(before))
        ),
        "the 2 under the root is missing": lambda before, after, delta: _around(
            _share_changed(before, after), _width(delta, len(before))
        ),
        "the root is missing": lambda before, after, delta: _around(
            _share_changed(before, after), _width(delta, 2 * len(before)).square()
        ),
        "an interval of shares ends at 0 and at 1": lambda before, after, delta: torch.stack(
            [_share_changed(before, after) + side * _width(delta, 2 * len(before)) for side in (-1.0, 0.0, 1.0)]
        ),
        "the share of answers that stay the same": lambda before, after, delta: _around(
            1 - _share_changed(before, after), _width(delta, 2 * len(before))
        ),
        "the answers after a flip are counted, not the changes": lambda before, after, delta: _around(
            after.double().mean(), _width(delta, 2 * len(before))
        ),
        "the ends are in the wrong order": lambda before, after, delta: _estimate(before, after, delta).flip(0),
    },
)
