"""Exercises of lesson 07 on how facts are learned: `saw_gradient`, `signal`, `rest`."""

import itertools

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- saw_gradient


def _draw_linear(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 7), draw_size(generator, 3, 4)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "w": draw_normal(generator, words),
        "W": draw_normal(generator, answers, words),
        "answer": torch.randint(answers, (batch,), generator=generator),
    }


def _saw_gradient(counts: Tensor, w: Tensor, W: Tensor, answer: Tensor) -> Tensor:
    looked = counts * w
    p = (looked @ W.mT).softmax(-1)
    errors = p - torch.nn.functional.one_hot(answer, len(W)).to(p)
    said = errors.mT @ looked / len(counts)
    look = ((errors @ W) * counts).mean(0)
    return torch.cat([said, look[None]])


def _errors(counts: Tensor, w: Tensor, W: Tensor, answer: Tensor) -> Tensor:
    return ((counts * w) @ W.mT).softmax(-1) - torch.nn.functional.one_hot(answer, len(W))


def _rows(errors: Tensor, W: Tensor, heard: Tensor, counts: Tensor) -> Tensor:
    """Both gradients from the ``errors``, W's with what is ``heard`` of each word, w's with its ``counts``."""
    return torch.cat([errors.mT @ heard, ((errors @ W) * counts).sum(0)[None]]) / len(counts)


saw_gradient = Exercise(
    name="saw_gradient",
    answer=_saw_gradient,
    draw=_draw_linear,
    mistakes={
        "the sign is flipped: the error is p minus the one-hot answer": lambda counts, w, W, answer: _rows(
            -_errors(counts, w, W, answer), W, counts * w, counts
        ),
        "w is missing: a word that is not looked at gets no gradient": lambda counts, w, W, answer: _rows(
            _errors(counts, w, W, answer), W, counts, counts
        ),
        "w is there twice: the logits have it, the gradient in W once more, not twice": lambda counts, w, W, answer: (
            _rows(_errors(counts, w, W, answer), W, counts * w * w, counts)
        ),
        "the sum over sentences; the loss is their mean": lambda counts, w, W, answer: (
            len(counts) * _rows(_errors(counts, w, W, answer), W, counts * w, counts)
        ),
        "logits in place of probabilities: the softmax is missing": lambda counts, w, W, answer: _rows(
            (counts * w) @ W.mT - torch.nn.functional.one_hot(answer, len(W)), W, counts * w, counts
        ),
        "the right answer is not subtracted": lambda counts, w, W, answer: _rows(
            ((counts * w) @ W.mT).softmax(-1), W, counts * w, counts
        ),
        "counts are missing: how often a word occurs matters": lambda counts, w, W, answer: _rows(
            _errors(counts, w, W, answer), W, counts.sign() * w, counts.sign()
        ),
        "the softmax runs over the sentences; it runs over the answers": lambda counts, w, W, answer: _rows(
            ((counts * w) @ W.mT).softmax(0) - torch.nn.functional.one_hot(answer, len(W)), W, counts * w, counts
        ),
        "the last row has w in it: a logit's derivative in w is counts times W": lambda counts, w, W, answer: _rows(
            _errors(counts, w, W, answer), W, counts * w, counts * w
        ),
        "the last row does not count how often a word occurs": lambda counts, w, W, answer: _rows(
            _errors(counts, w, W, answer), W, counts * w, torch.ones_like(counts)
        ),
        "the last row comes first: W's gradient, then w's": lambda counts, w, W, answer: _saw_gradient(
            counts, w, W, answer
        ).roll(1, 0),
    },
)


# -- signal


def _draw_told(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 6, 9), draw_size(generator, 6, 8), draw_size(generator, 3, 5)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "answer": torch.randint(answers, (batch,), generator=generator),
        "answers": answers,
    }


def _surprise(answer: Tensor, answers: int) -> Tensor:
    return torch.nn.functional.one_hot(answer, answers).double() - 1 / answers


def _signal(counts: Tensor, answer: Tensor, answers: int) -> Tensor:
    surprise = torch.nn.functional.one_hot(answer, answers).to(counts) - 1 / answers
    pull = surprise.mT @ counts / len(counts)
    return pull.norm(dim=0)


signal = Exercise(
    name="signal",
    answer=_signal,
    draw=_draw_told,
    mistakes={
        "the guess 1/answers is not subtracted: what every word says teaches nothing": lambda counts, answer, answers: (
            torch.nn.functional.one_hot(answer, answers).double().mT @ counts / len(counts)
        ).norm(dim=0),
        "summed over sentences; it is their mean": lambda counts, answer, answers: (
            _surprise(answer, answers).mT @ counts
        ).norm(dim=0),
        "the square of the length; take the length": lambda counts, answer, answers: (
            (_surprise(answer, answers).mT @ counts / len(counts)).square().sum(0)
        ),
        "divided by how often the word comes up; a rare word learns slowly, and that is the point": (
            lambda counts, answer, answers: (
                _surprise(answer, answers).mT @ counts / counts.sum(0).clamp_min(1e-300)
            ).norm(dim=0)
        ),
    },
)


# -- rest


def _draw_losses(generator: Generator) -> dict:
    """Three stretches near the level, parted by losses somewhat above and below; the longest is the second or, to the
    end, the third.
    """
    level, within = 2.0, 0.1
    short, middle, long = (draw_size(generator, *sizes) for sizes in ((1, 2), (4, 5), (8, 10)))
    to_the_end = generator.initial_seed() % 2
    lengths = (short, middle, long) if to_the_end else (short, long, middle)
    gaps = ([1.15] * draw_size(generator, 1, 3), [0.85] * draw_size(generator, 1, 3), [] if to_the_end else [0.85])
    pieces = [torch.full((4,), 2.0, dtype=torch.float64)]
    for length, gap in zip(lengths, gaps, strict=True):
        noise = 1.8 * within * (torch.rand(length, generator=generator, dtype=torch.float64) - 0.5)
        pieces += [1 + noise, torch.tensor(gap, dtype=torch.float64)]
    return {"losses": level * torch.cat(pieces), "level": level, "within": within}


def _near(losses: Tensor, level: float, within: float) -> Tensor:
    return (losses - level).abs() <= within * level


def _stretches(near: Tensor) -> list[int]:
    """The lengths of the unbroken stretches."""
    return [sum(run) for here, run in itertools.groupby(near.tolist()) if here] or [0]


def _rest(losses: Tensor, level: float, within: float) -> Tensor:
    longest = current = 0
    for loss in losses:
        current = current + 1 if abs(loss - level) <= within * level else 0
        longest = max(longest, current)
    return torch.tensor(longest)


def _before_a_break(losses: Tensor, level: float, within: float) -> Tensor:
    near = _near(losses, level, within)
    return torch.tensor(max([0, *_stretches(near)[: -1 if near[-1] else None]]))


rest = Exercise(
    name="rest",
    answer=_rest,
    draw=_draw_losses,
    mistakes={
        "counts all snapshots near the level; only an unbroken stretch is a rest": lambda losses, level, within: _near(
            losses, level, within
        ).sum(),
        "the first stretch; a later one may be longer": lambda losses, level, within: torch.tensor(
            _stretches(_near(losses, level, within))[0]
        ),
        "the last stretch; an earlier one may be longer": lambda losses, level, within: torch.tensor(
            _stretches(_near(losses, level, within))[-1]
        ),
        "a stretch that lasts to the end is left out": _before_a_break,
        "everything below the level counts too; a loss that has gone on falling rests no longer": (
            lambda losses, level, within: torch.tensor(max(_stretches(losses <= (1 + within) * level)))
        ),
        "everything above the level counts too; the loss must have come down to it": lambda losses, level, within: (
            torch.tensor(max(_stretches(losses >= (1 - within) * level)))
        ),
        "`within` is relative: the distance allowed is within times the level": lambda losses, level, within: (
            torch.tensor(max(_stretches((losses - level).abs() <= within)))
        ),
        "from the first snapshot near the level to the last; in between the loss was elsewhere": (
            lambda losses, level, within: (
                _near(losses, level, within).nonzero().aminmax().max
                - _near(losses, level, within).nonzero().aminmax().min
                + 1
            )
        ),
    },
)
