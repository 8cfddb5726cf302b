"""The exercises of lesson 04, addition with Fourier features."""

import math

import torch
from torch import Generator, Tensor

from companion.lesson.bars import reaches
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit


def _draw_rows(generator: Generator) -> dict:
    r = draw_size(generator, 2, 3)
    width = r + draw_size(generator, 2, 4)
    # what they share keeps them from being orthogonal
    rows = draw_normal(generator, r, width) + draw_normal(generator, width)
    return {"x": draw_normal(generator, width), "rows": rows}


@exercise(draw=_draw_rows, now="you can take any band of waves out of a model, and nothing else")
def remove_waves(x: Tensor, rows: Tensor) -> Tensor:
    c = torch.linalg.solve(rows @ rows.mT, rows @ x)
    return x - rows.mT @ c


def _draw_errors(generator: Generator) -> dict:
    each = torch.tensor([0, 1, -1, 2, -2, 3, -4, 5, -15, 10, -10, 20, -7])
    some = each[torch.randint(len(each), (draw_size(generator, 4, 12),), generator=generator)]
    off = torch.cat([each, some])
    return {"off": off[torch.randperm(len(off), generator=generator)]}


@exercise(draw=_draw_errors, now="three numbers tell which waves an adder lacks")
def error_signature(off: Tensor) -> Tensor:
    wrong = off[off != 0]
    near = (wrong.abs() <= 2).double().mean()
    tens = (wrong % 10 == 0).double().mean()
    right = (off == 0).double().mean()
    return torch.stack([near, tens, right])


def _draw_directions(generator: Generator) -> dict:
    removed = draw_size(generator, 2, 4)
    return {"directions": draw_normal(generator, removed + draw_size(generator, 2, 4), removed)}


@exercise(draw=_draw_directions, now="every filter can have a control that takes as many directions")
def random_filter(directions: Tensor) -> Tensor:
    Q = torch.linalg.qr(directions).Q
    return torch.eye(len(Q), dtype=Q.dtype, device=Q.device) - Q @ Q.mT


def _draw_pairs(generator: Generator) -> dict:
    """Errors of every kind, of more problems in the control, each on its own."""
    each = torch.tensor([0, 0, 1, -2, 3, -5, 5, 6, -6, 7, -15, 10, -30])

    def some(least: int) -> Tensor:
        drawn = each[torch.randint(len(each), (draw_size(generator, least, least + 6),), generator=generator)]
        return torch.cat([each, drawn])

    return {"waves": some(6), "control": torch.cat([some(16), torch.zeros(6, dtype=torch.long)])}


@exercise(draw=_draw_pairs, now="you can say what waves cost, and not merely what directions cost")
def excess_over_random(waves: Tensor, control: Tensor) -> Tensor:
    lost = (control == 0).double().mean() - (waves == 0).double().mean()
    near = [(off[off != 0].abs() < 6).double().mean() for off in (waves, control)]
    return torch.stack([lost, near[0] - near[1]])


def _draw_parts(generator: Generator) -> dict:
    modules, width, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    parts = 0.1 + 0.1 * draw_normal(generator, modules, width)
    return {
        "parts": parts,
        "stream": parts.sum(0),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


@exercise(draw=_draw_parts, now="every module of any such model has its share of every answer")
def share_of_logits(parts: Tensor, stream: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    scale = (stream.var(unbiased=False) + 1e-5).sqrt()
    normed = (parts - parts.mean(1, keepdim=True)) / scale
    shift = torch.zeros_like(parts)
    shift[0] = bias
    return (normed * weight + shift) @ unembedding.mT


def _draw_streams(generator: Generator) -> dict:
    modules, problems = draw_size(generator, 3, 5), draw_size(generator, 2, 4)
    width, answers = draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    return {
        "parts": 0.05 + 0.1 * draw_normal(generator, modules, problems, width),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


@exercise(draw=_draw_streams, now="you can watch an answer grow through the layers")
def logit_lens(parts: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    streams = parts.cumsum(0)
    centred = streams - streams.mean(-1, keepdim=True)
    scale = (streams.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (centred / scale * weight + bias) @ unembedding.mT


def _draw_wave(generator: Generator) -> dict:
    # no whole number: a wave that fits into n hides mistakes
    period = float(5 + 6 * torch.rand((), generator=generator))
    return {"n": draw_size(generator, 12, 16), "period": period, "k": draw_size(generator, 3, 4)}


@exercise(
    states_dtype=True,
    draw=_draw_wave,
    now="your waves make the adder of the next exercise, and the filters of section 6",
)
def wave_rows(n: int, period: float, k: int) -> Tensor:
    angles = 2 * math.pi * k * torch.arange(n, dtype=torch.float64) / period
    return torch.stack([angles.cos(), angles.sin()])


def _draw_counts(generator: Generator) -> dict:
    """Large counts on the diagonal but for one word, some zeros beside it, and one word that never occurs."""
    n = draw_size(generator, 5, 7)
    counts = torch.randint(0, 10, (n, n), generator=generator).triu(1)
    counts[1, 2], counts[1, 3], counts[2, 3], counts[3, 4] = (
        9,
        1,
        0,
        9,
    )  # rather more, rather less than by chance; never
    counts = counts + counts.mT + torch.randint(20, 40, (n,), generator=generator).diag()
    counts[0] = counts[:, 0] = 0
    counts[4, 4] = 5
    order = torch.randperm(n, generator=generator)
    return {"counts": counts[order][:, order].double()}


@exercise(draw=_draw_counts, now="your table turns a text that counts into waves")
def ppmi(counts: Tensor) -> Tensor:
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().nan_to_num(nan=0.0).clamp_min(0)


def _draw_waves(generator: Generator) -> dict:
    # no unit circles, on which a wrong sign could hide behind cos^2 + sin^2 = 1
    problems, K, numbers = draw_size(generator, 3, 4), draw_size(generator, 5, 6), draw_size(generator, 7, 9)
    return {
        "a": draw_normal(generator, problems, K, 2),
        "b": draw_normal(generator, problems, K, 2),
        "numbers": draw_normal(generator, numbers, K, 2),
    }


@exercise(
    draw=_draw_waves,
    now="products of two numbers' waves are the waves of their sum, and this adds every pair below 100",
)
def add_waves(a: Tensor, b: Tensor, numbers: Tensor) -> Tensor:
    (cos_a, sin_a), (cos_b, sin_b) = a.unbind(-1), b.unbind(-1)
    cos = cos_a * cos_b - sin_a * sin_b
    sin = sin_a * cos_b + cos_a * sin_b
    return cos @ numbers[..., 0].mT + sin @ numbers[..., 1].mT


def _asked(K: int) -> float:
    """The lead that is asked of the right answer when any one of K votes is lost: 0.4 for each vote over four.

    One random draw of K periods in twenty reaches it (K = 6, 7, 8; in fourteen for 10), and the best of 300 draws did
    330 times of 330. Six primes in a row reach 0.71 at most, where 0.8 is asked.
    """
    return 0.4 * (K - 4)


def _draw_operands(generator: Generator) -> dict:
    numbers = draw_size(generator, 90, 100)
    ends = torch.tensor([[0, 0], [numbers - 1, numbers - 1]])  # every other answer is as far from these as can be
    operands = torch.cat([ends, torch.randint(numbers, (200, 2), generator=generator)])
    return {"operands": operands, "answers": 2 * numbers - 1, "K": 6}


def _are_waves(_: dict, votes: Tensor) -> str | None:
    """The stage at which each vote must be one cosine over the answers: v[n - 1] + v[n + 1] = c v[n], at most 1."""
    votes = votes.double()
    middle, beside = votes[..., 1:-1].flatten(1), (votes[..., :-2] + votes[..., 2:]).flatten(1)
    c = (middle * beside).sum(1, keepdim=True) / middle.square().sum(1, keepdim=True).clamp_min(1e-12)
    missed, tallest = (beside - c * middle).abs().amax(1), votes.abs().amax((1, 2))
    if missed.max() > 1e-3:
        k = int(missed.argmax())
        return (
            f"vote {k} is not one wave over the answers: the two neighbours of every value of a wave add up to a fixed "
            f"multiple of it, and here they are up to {missed[k]:.2g} off"
        )
    if tallest.max() > 1 + 1e-3:
        k = int(tallest.argmax())
        return f"vote {k} reaches {tallest[k]:.3g}; a cosine is at most 1, so that no vote is louder than another"
    if tallest.min() < 0.9:
        k = int(tallest.argmin())
        return f"vote {k} is at most {tallest[k]:.2g}; a cosine is 1 at the right answer"
    return None


def _leads(inputs: dict, votes: Tensor) -> tuple[Tensor, Tensor]:
    """By how much each sum's right answer leads the next best, with all votes and without each, and how far that one is
    off: (1 + K, problems) each.
    """
    votes, due = votes.double(), inputs["operands"].sum(1).to(votes.device)
    left = torch.cat([votes.sum(0)[None], votes.sum(0) - votes])
    right = left.gather(2, due.expand(len(left), -1)[..., None])[..., 0]
    rival = left.scatter(2, due.expand(len(left), -1)[..., None], -torch.inf).max(2)
    return right - rival.values, (rival.indices - due).abs()


def _all_right(inputs: dict, votes: Tensor) -> str | None:
    """The stage at which all votes together must be right."""
    operands = inputs["operands"].to(votes.device)
    leads, off = _leads(inputs, votes)
    if (right := (leads[0] > 1e-4).double().mean().item()) == 1:
        return None
    a, b = operands[operands[:, 0] > operands[:, 1]].mT
    told = f"with all votes {right:.0%} of the sums are right; all are asked for"
    if (votes.sum(0).argmax(1)[operands[:, 0] > operands[:, 1]] == a - b).double().mean() > 0.9:
        return f"{told}. The votes peak at a - b"
    if (tied := leads[0].abs() <= 1e-4).double().mean() > 0.5:
        return f"{told}: answers that are {off[0][tied].min()} apart get the same votes"
    return told


def _survives(inputs: dict, votes: Tensor) -> str | None:
    """The stage at which the others must be right whichever vote is lost."""
    leads, off = _leads(inputs, votes)
    right = (leads[1:] > 1e-4).double().mean(1)
    if right.min() == 1:
        return None
    k = int(right.argmin())
    far = off[1 + k][leads[1 + k] <= 1e-4].mode().values
    return (
        f"all sums are right with all votes, but without vote {k} only {right[k]:.0%} are: answers that are {far} "
        "apart look the same to the others, or nearly so"
    )


def _leads_enough(inputs: dict, votes: Tensor) -> str | None:
    """The stage at which no small noise may turn an answer, whichever vote is lost."""
    leads, off = _leads(inputs, votes)
    least, asked = leads[1:].min().item(), _asked(len(votes))
    if reaches("lead without a vote", least, asked):
        return None
    k, problem = divmod(int(leads[1:].argmin()), leads.shape[1])
    return (
        f"all sums are right, but without vote {k} a right answer leads by only {least:.3g}, over one that is "
        f"{off[1 + k, problem]} away; {asked:.2g} is asked for"
    )


@summit(
    draw=_draw_operands,
    shape=lambda inputs: (inputs["K"], len(inputs["operands"]), inputs["answers"]),
    stages=(_are_waves, _all_right, _survives, _leads_enough),
    seconds=4,
    others={"K": 8},
    now="whichever period is taken from your adder, the others still add",
)
def redundant_votes(operands: Tensor, answers: int, K: int) -> Tensor:
    generator, best = torch.Generator().manual_seed(0), -1.0
    off = torch.arange(1, answers)
    for _ in range(500):
        drawn = 2 + 28 * torch.rand(K, 1, generator=generator)
        lead = 1 - torch.cos(2 * math.pi * off / drawn)
        worst = (lead.sum(0) - lead.amax(0)).min().item()
        if worst > best:
            best, periods = worst, drawn
    turn = 2 * math.pi / periods.to(operands.device)
    numbers = torch.arange(answers, device=operands.device)
    a, b, n = turn * operands[:, 0], turn * operands[:, 1], turn * numbers
    cos = a.cos() * b.cos() - a.sin() * b.sin()
    sin = a.sin() * b.cos() + a.cos() * b.sin()
    return cos[:, :, None] * n.cos()[:, None] + sin[:, :, None] * n.sin()[:, None]
