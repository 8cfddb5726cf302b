"""The exercises of lesson 10, simplicity bias: what the lesson imports as ``exercises``.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size


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


# -- constant_or_simple


def _draw_networks(generator: Generator) -> dict:
    """Logits of random networks, some of which lean so far to a side that they nearly always say the same."""
    networks, inputs, flips = (draw_size(generator, *sizes) for sizes in ((3, 5), (21, 27), (6, 8)))
    lean = 1.2 * draw_normal(generator, networks)
    logits = draw_normal(generator, networks, inputs) + lean[:, None]
    tilt = 0.3 * draw_normal(generator, networks)[:, None, None]
    return {"logits": logits, "others": logits[..., None] + draw_normal(generator, networks, inputs, flips) + tilt}


def _constant_or_simple(logits: Tensor, others: Tensor) -> Tensor:
    ones = (logits > 0).to(logits.dtype).mean(-1)
    found = [torch.minimum(ones, 1 - ones)]
    middle = logits.median(-1).values
    for threshold in (torch.zeros_like(middle), middle):
        before = logits > threshold[:, None]
        after = others > threshold[:, None, None]
        changed = (after != before[..., None]).to(logits.dtype)
        found.append(changed.mean((1, 2)))
    return torch.stack(found)


def _read_at(logits: Tensor, others: Tensor, threshold: Tensor, other: Tensor | None = None) -> Tensor:
    """Sensitivity with a threshold, and another for the neighbours."""
    other = threshold[..., None] if other is None else other
    return ((others > other) != (logits > threshold)[..., None]).double().mean((1, 2))


def _with_balanced(logits: Tensor, others: Tensor, balanced: Tensor) -> Tensor:
    return torch.stack([*_constant_or_simple(logits, others)[:2], balanced])


constant_or_simple = Exercise(
    name="constant_or_simple",
    answer=_constant_or_simple,
    draw=_draw_networks,
    mistakes={
        "the first row is the share of ones; asked for is that of the rarer answer": lambda logits, others: torch.cat(
            [(logits > 0).double().mean(-1)[None], _constant_or_simple(logits, others)[1:]]
        ),
        "the first row is the share of the more frequent answer": lambda logits, others: torch.cat(
            [1 - _constant_or_simple(logits, others)[:1], _constant_or_simple(logits, others)[1:]]
        ),
        "the mean stands where the median belongs: it does not split the answers in halves": lambda logits, others: (
            _with_balanced(logits, others, _read_at(logits, others, logits.mean(-1, keepdim=True)))
        ),
        "one median is taken for all networks; each has its own": lambda logits, others: _with_balanced(
            logits, others, _read_at(logits, others, logits.median().expand(len(logits), 1))
        ),
        "the median is taken over the networks": lambda logits, others: _with_balanced(
            logits, others, _read_at(logits, others, logits.median(0).values.expand_as(logits))
        ),
        "the neighbours are still read at 0": lambda logits, others: _with_balanced(
            logits,
            others,
            _read_at(logits, others, logits.median(-1, keepdim=True).values, torch.zeros(1, 1, 1).double()),
        ),
        "the neighbours are read at their own median: both sides need one threshold": lambda logits, others: (
            _with_balanced(
                logits,
                others,
                _read_at(
                    logits,
                    others,
                    logits.median(-1, keepdim=True).values,
                    others.flatten(1).median(-1).values[:, None, None],
                ),
            )
        ),
        "the two sensitivities are exchanged": lambda logits, others: _constant_or_simple(logits, others)[[0, 2, 1]],
    },
)


# -- at_equal_accuracy


def _draw_curves(generator: Generator) -> dict:
    """Accuracies in steps of .05, rising with setbacks; one run stays below the target."""
    runs, marks = draw_size(generator, 4, 6), draw_size(generator, 9, 13)
    steps = torch.randint(-1, 4, (runs, marks), generator=generator).cumsum(-1)
    accuracy = (10 + steps).clamp(10, 20).double() / 20
    accuracy[0] = accuracy[0].clamp(max=0.6)
    accuracy[1, marks // 2 :] = 0.95
    return {
        "accuracy": accuracy,
        "measured": 2 * draw_normal(generator, runs, marks),
        "target": (0.65, 0.7, 0.75, 0.8)[draw_size(generator, 0, 3)],
    }


def _at_equal_accuracy(accuracy: Tensor, measured: Tensor, target: float) -> Tensor:
    reached = accuracy >= target
    first = reached.int().argmax(-1, keepdim=True)
    found = measured.gather(-1, first)[:, 0]
    return torch.where(reached.any(-1), found, torch.inf)


def _picked(accuracy: Tensor, measured: Tensor, target: float, mark: Tensor) -> Tensor:
    found = measured.gather(-1, mark[:, None])[:, 0]
    return torch.where((accuracy >= target).any(-1), found, torch.inf)


at_equal_accuracy = Exercise(
    name="at_equal_accuracy",
    answer=_at_equal_accuracy,
    draw=_draw_curves,
    mistakes={
        "the last mark is taken, whatever the accuracy there": lambda accuracy, measured, target: torch.where(
            (accuracy >= target).any(-1), measured[:, -1], torch.inf
        ),
        "the mark of the best accuracy is taken": lambda accuracy, measured, target: _picked(
            accuracy, measured, target, accuracy.argmax(-1)
        ),
        "the mark whose accuracy is nearest is taken; the first that reaches the target is asked for": (
            lambda accuracy, measured, target: _picked(accuracy, measured, target, (accuracy - target).abs().argmin(-1))
        ),
        "an accuracy that equals the target reaches it": lambda accuracy, measured, target: _at_equal_accuracy(
            accuracy, measured, target + 0.01
        ),
        "all runs are read at one mark, where the last of them gets there: that is equal steps": (
            lambda accuracy, measured, target: _picked(
                accuracy,
                measured,
                target,
                (accuracy >= target).int().argmax(-1).max().expand(len(accuracy)),
            )
        ),
        "a run that never gets there is read at its first mark; it has no figure": lambda accuracy, measured, target: (
            measured.gather(-1, (accuracy >= target).int().argmax(-1, keepdim=True))[:, 0]
        ),
        "the accuracy itself is returned": lambda accuracy, measured, target: _at_equal_accuracy(
            accuracy, accuracy, target
        ),
        "one mark too early": lambda accuracy, measured, target: _picked(
            accuracy, measured, target, (accuracy >= target).int().argmax(-1).sub(1).clamp_min(0)
        ),
    },
)


# -- steadied


def _draw_logits(generator: Generator) -> dict:
    batch, classes = draw_size(generator, 4, 6), draw_size(generator, 2, 3)
    logits = 1.5 * draw_normal(generator, batch, classes)
    return {
        "logits": logits,
        "noisy": logits + 2.5 * draw_normal(generator, batch, classes),
        "labels": torch.randint(classes, (batch,), generator=generator),
        "share": (0.2, 0.3, 0.7)[draw_size(generator, 0, 2)],
    }


def _steadied(logits: Tensor, noisy: Tensor, labels: Tensor, share: float) -> Tensor:
    rows = torch.arange(len(labels), device=labels.device)
    fit = -logits.log_softmax(-1)[rows, labels].mean()
    moved = (noisy - logits).square().mean()
    return (1 - share) * fit + share * moved


def _entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits, labels)


steadied = Exercise(
    name="steadied",
    answer=_steadied,
    draw=_draw_logits,
    mistakes={
        "share and 1 - share are exchanged": lambda logits, noisy, labels, share: _steadied(
            logits, noisy, labels, 1 - share
        ),
        "the fit is that of the noisy inputs": lambda logits, noisy, labels, share: _steadied(
            noisy, logits, labels, share
        ),
        "the change is summed over classes; it is a mean over all entries": lambda logits, noisy, labels, share: (
            _steadied(logits, noisy, labels, share) + share * (logits.shape[1] - 1) * (noisy - logits).square().mean()
        ),
        "the change is not squared": lambda logits, noisy, labels, share: (
            (1 - share) * _entropy(logits, labels) + share * (noisy - logits).abs().mean()
        ),
        "probabilities are compared; the logits are to be steady": lambda logits, noisy, labels, share: (
            (1 - share) * _entropy(logits, labels) + share * (noisy.softmax(-1) - logits.softmax(-1)).square().mean()
        ),
        "the fit has full weight; it must have 1 - share": lambda logits, noisy, labels, share: (
            _entropy(logits, labels) + share * (noisy - logits).square().mean()
        ),
        "the sign of the fit is wrong: it is minus the logarithm": lambda logits, noisy, labels, share: (
            (share - 1) * _entropy(logits, labels) + share * (noisy - logits).square().mean()
        ),
        "the labels are not used: the fit is the logarithm at the label": lambda logits, noisy, labels, share: (
            -(1 - share) * logits.log_softmax(-1).mean() + share * (noisy - logits).square().mean()
        ),
    },
)
