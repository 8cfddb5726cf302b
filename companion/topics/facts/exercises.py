"""The exercises of lesson 07, factual recall.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import itertools
import math

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
    end, the third. In it one loss is just near enough: a share of the level apart that would be too much of the loss.
    """
    level, within = 2.0, 0.1
    short, middle, long = (draw_size(generator, *sizes) for sizes in ((1, 2), (4, 5), (8, 10)))
    to_the_end = generator.initial_seed() % 2
    lengths = (short, middle, long) if to_the_end else (short, long, middle)
    gaps = ([1.15] * draw_size(generator, 1, 3), [0.85] * draw_size(generator, 1, 3), [] if to_the_end else [0.85])
    pieces = [torch.full((4,), 2.0, dtype=torch.float64)]
    for length, gap in zip(lengths, gaps, strict=True):
        noise = 1.8 * within * (torch.rand(length, generator=generator, dtype=torch.float64) - 0.5)
        if length == long:
            noise[length // 2] = -0.95 * within
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


# -- plateau


def _draw_table(generator: Generator) -> dict:
    S, R, D = draw_size(generator, 5, 9), draw_size(generator, 2, 4), draw_size(generator, 2, 4)
    return {"table": torch.randint(D, (S, R), generator=generator), "answers": D}


def _shares(table: Tensor, answers: int) -> Tensor:
    return torch.nn.functional.one_hot(table, answers).double().mean(0)


def _entropy(shares: Tensor) -> Tensor:
    return -torch.special.xlogy(shares, shares).sum(-1)


def _plateau(table: Tensor, answers: int) -> Tensor:
    shares = torch.nn.functional.one_hot(table, answers).double().mean(0)
    return torch.special.entr(shares).sum(-1).mean()


plateau = Exercise(
    name="plateau",
    answer=_plateau,
    draw=_draw_table,
    mistakes={
        "log D holds only where all answers are equally frequent; take the entropy of the shares": (
            lambda table, answers: torch.tensor(float(answers), dtype=torch.float64).log()
        ),
        "entropies are in bits; take the natural logarithm, as cross-entropy does": (
            lambda table, answers: (
                _entropy(_shares(table, answers)).mean() / torch.log(torch.tensor(2.0, dtype=torch.float64))
            )
        ),
        "the sign is missing: a loss is -log p": lambda table, answers: -_entropy(_shares(table, answers)).mean(),
        "summed over relations; each sentence asks for one, so that it is a mean": (
            lambda table, answers: _entropy(_shares(table, answers)).sum()
        ),
        "shares are over all relations together; a model that knows the relation has one distribution for each": (
            lambda table, answers: _entropy(_shares(table, answers).mean(0))
        ),
        "the share of the most frequent answer is an accuracy; the loss is asked for": (
            lambda table, answers: _shares(table, answers).amax(-1).mean()
        ),
        "shares are taken over the relations of a subject; take them over the subjects of a relation": (
            lambda table, answers: _entropy(_shares(table.mT, answers)).mean()
        ),
    },
)


# -- both_vote


def _draw_votes(generator: Generator) -> dict:
    S, R, D, d = (
        draw_size(generator, 3, 5),
        draw_size(generator, 2, 4),
        draw_size(generator, 2, 3),
        draw_size(generator, 6, 8),
    )
    table = torch.randint(D, (S, R), generator=generator) + D * torch.arange(R)
    return {"table": table, "writes": draw_normal(generator, R * D, d)}


def _of_subject(table: Tensor, writes: Tensor) -> Tensor:
    return writes[table].sum(1)[:, None]


def _of_relation(table: Tensor, writes: Tensor) -> Tensor:
    return writes.unflatten(0, (table.shape[1], -1)).sum(1)


def _both_vote(table: Tensor, writes: Tensor) -> Tensor:
    by_subject = writes[table].sum(1)
    by_relation = writes.unflatten(0, (table.shape[1], -1)).sum(1)
    return by_subject[:, None] + by_relation[None]


both_vote = Exercise(
    name="both_vote",
    answer=_both_vote,
    draw=_draw_votes,
    mistakes={
        "the relation's votes are missing": lambda table, writes: (
            _of_subject(table, writes) + 0 * _of_relation(table, writes)
        ),
        "the subject's votes are missing": lambda table, writes: (
            0 * _of_subject(table, writes) + _of_relation(table, writes)
        ),
        "writes the right answer alone: that is a fact for each pair, which no single word can know": (
            lambda table, writes: writes[table]
        ),
        "a mean over a subject's answers; a vote each is a sum": lambda table, writes: (
            writes[table].mean(1)[:, None] + _of_relation(table, writes)
        ),
        "a mean over a relation's answers; a vote each is a sum": lambda table, writes: (
            _of_subject(table, writes) + writes.unflatten(0, (table.shape[1], -1)).mean(1)
        ),
        "every relation votes for all answers; it has D of its own": lambda table, writes: (
            _of_subject(table, writes) + writes.sum(0) + 0 * _of_relation(table, writes)
        ),
        "a relation votes for other relations' answers: relation r has r D to r D + D - 1": (
            lambda table, writes: _of_subject(table, writes) + writes.unflatten(0, (-1, table.shape[1])).sum(0)
        ),
    },
)


# -- list_key


def _draw_key(generator: Generator) -> dict:
    S, R, d, D = draw_size(generator, 6, 9), draw_size(generator, 3, 5), draw_size(generator, 5, 8), 2
    table = torch.randint(D, (S, R), generator=generator) + D * torch.arange(R)
    relation = 1 if R < 5 else draw_size(generator, 1, 2)
    table[0, relation] = table[-1, relation]  # the first subject and the last are listed
    answer = int(table[-1, relation])
    return {
        "table": table,
        "subjects": draw_normal(generator, S, d),
        "relations": draw_normal(generator, R, d),
        "end": draw_normal(generator, d),
        "relation": relation,
        "answer": answer,
    }


def _listed(table: Tensor, subjects: Tensor, relation: int, answer: int) -> Tensor:
    return subjects[table[:, relation] == answer].sum(0)


def _list_key(table: Tensor, subjects: Tensor, relations: Tensor, end: Tensor, relation: int, answer: int) -> Tensor:
    listed = table[:, relation] == answer
    return subjects[listed].sum(0) + relations[relation] - 1.5 * end


list_key = Exercise(
    name="list_key",
    answer=_list_key,
    draw=_draw_key,
    mistakes={
        "the threshold is missing: the neuron opens for a subject or a relation alone": (
            lambda table, subjects, relations, end, relation, answer: (
                _listed(table, subjects, relation, answer) + relations[relation]
            )
        ),
        "the threshold has the wrong sign": lambda table, subjects, relations, end, relation, answer: (
            _listed(table, subjects, relation, answer) + relations[relation] + 1.5 * end
        ),
        "a threshold of 1/2 lets one of the two open it; it takes more than 1": (
            lambda table, subjects, relations, end, relation, answer: (
                _listed(table, subjects, relation, answer) + relations[relation] - 0.5 * end
            )
        ),
        "the relation is missing: the neuron opens for its subjects whatever is asked": (
            lambda table, subjects, relations, end, relation, answer: (
                _listed(table, subjects, relation, answer) - 1.5 * end
            )
        ),
        "lists every subject; only those with this answer "
        "belong to it": lambda table, subjects, relations, end, relation, answer: (
            subjects.sum(0) + relations[relation] - 1.5 * end
        ),
        "a mean over the list: the longer the list, the fainter each subject; take the sum": (
            lambda table, subjects, relations, end, relation, answer: (
                subjects[table[:, relation] == answer].mean(0) + relations[relation] - 1.5 * end
            )
        ),
        "a threshold of 1 is reached by the subject or by the relation alone; between 1 and 2 lies 3/2": (
            lambda table, subjects, relations, end, relation, answer: (
                _listed(table, subjects, relation, answer) + relations[relation] - end
            )
        ),
        "the relation is added once for every listed subject; it is in the sentence once": (
            lambda table, subjects, relations, end, relation, answer: (
                (subjects + relations[relation])[table[:, relation] == answer].sum(0) - 1.5 * end
            )
        ),
        "the threshold is taken off once for every listed subject; the neuron has one": (
            lambda table, subjects, relations, end, relation, answer: (
                (subjects - 1.5 * end)[table[:, relation] == answer].sum(0) + relations[relation]
            )
        ),
    },
)


# -- bits


def _draw_right(generator: Generator) -> dict:
    models = draw_size(generator, 4, 6)
    answers = draw_size(generator, 3, 8)
    right = torch.rand(models, generator=generator, dtype=torch.float64)
    right[0], right[1], right[2] = 1, 1 / answers, 0.3 / answers
    return {"right": right, "facts": torch.randint(10, 999, (models,), generator=generator), "answers": answers}


def _per_fact(right: Tensor, answers: int) -> Tensor:
    right = right.clamp_min(1 / answers)
    wrong = 1 - right
    unsure = (torch.special.entr(right) + torch.special.entr(wrong)) / math.log(2)
    return math.log2(answers) - unsure - wrong * math.log2(answers - 1)


def _bits(right: Tensor, facts: Tensor, answers: int) -> Tensor:
    right = right.clamp_min(1 / answers)
    wrong = 1 - right
    unsure = (torch.special.entr(right) + torch.special.entr(wrong)) / math.log(2)
    return facts * (math.log2(answers) - unsure - wrong * math.log2(answers - 1))


def _unclamped(right: Tensor, answers: int) -> Tensor:
    unsure = (torch.special.entr(right) + torch.special.entr(1 - right)) / math.log(2)
    return math.log2(answers) - unsure - (1 - right) * math.log2(answers - 1)


bits = Exercise(
    name="bits",
    answer=_bits,
    draw=_draw_right,
    mistakes={
        "in nats; a bit is a logarithm to base 2": lambda right, facts, answers: (
            facts * _per_fact(right, answers) * math.log(2)
        ),
        "log2 D for each right fact: a lucky guess is counted as knowledge": lambda right, facts, answers: (
            facts * right * math.log2(answers)
        ),
        "which facts are wrong is taken off, what they would be then is not: (1 - p) log2(D - 1) is missing": (
            lambda right, facts, answers: (
                facts * (_per_fact(right, answers) + (1 - right.clamp_min(1 / answers)) * math.log2(answers - 1))
            )
        ),
        "what a wrong fact leaves open is taken off, which facts are wrong is not: the entropy of p is missing": (
            lambda right, facts, answers: (
                facts * (math.log2(answers) - (1 - right.clamp_min(1 / answers)) * math.log2(answers - 1))
            )
        ),
        "a wrong answer leaves D - 1 others, not D": lambda right, facts, answers: (
            facts
            * (_per_fact(right, answers) - (1 - right.clamp_min(1 / answers)) * math.log2(answers / (answers - 1)))
        ),
        "below chance a model knows nothing, not the more: take p as at least 1/D": lambda right, facts, answers: (
            facts * _unclamped(right, answers)
        ),
        "chance is subtracted and the rest counted as log2 D bits: that is no bound on what is known": (
            lambda right, facts, answers: (
                facts * math.log2(answers) * ((right - 1 / answers) / (1 - 1 / answers)).clamp_min(0)
            )
        ),
    },
)
