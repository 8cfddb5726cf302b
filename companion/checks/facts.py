"""The exercises of lesson 07, factual recall.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.checks.exercise import Exercise, draw_normal, draw_size
from companion.probes import facts as probes

__all__ = ["conserved", "list_key", "plateau", "saw_gradient", "subject_memory"]


# -- plateau


def _draw_table(generator: Generator) -> dict:
    S, R, D = draw_size(generator, 5, 9), draw_size(generator, 2, 4), draw_size(generator, 2, 4)
    return {"table": torch.randint(D, (S, R), generator=generator), "answers": D}


def _shares(table: Tensor, answers: int) -> Tensor:
    return torch.nn.functional.one_hot(table, answers).double().mean(0)


def _entropy(shares: Tensor) -> Tensor:
    return -torch.special.xlogy(shares, shares).sum(-1)


plateau = Exercise(
    name="plateau",
    answer=lambda table, answers: _entropy(_shares(table, answers)).mean(),
    draw=_draw_table,
    mistakes={
        "log D holds only where all answers are equally frequent; take the entropy of the shares": (
            lambda table, answers: torch.tensor(float(answers), dtype=torch.float64).log()
        ),
        "entropies are in bits; take the natural logarithm, as cross-entropy does": (
            lambda table, answers: _entropy(_shares(table, answers)).mean() / torch.log(torch.tensor(2.0, dtype=torch.float64))
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


# -- subject_memory


def _draw_memory(generator: Generator) -> dict:
    S, R, D, d = draw_size(generator, 3, 5), draw_size(generator, 2, 4), draw_size(generator, 2, 3), draw_size(generator, 6, 8)
    table = torch.randint(D, (S, R), generator=generator) + D * torch.arange(R)
    return {"table": table, "E": draw_normal(generator, S, d), "U": draw_normal(generator, R * D, d)}


subject_memory = Exercise(
    name="subject_memory",
    answer=lambda table, E, U: U[table].sum(1).mT @ E,
    draw=_draw_memory,
    mistakes={
        "transposed: what is written stands left, what is read right": lambda table, E, U: E.mT @ U[table].sum(1),
        "only the answers of the first relation are written; a subject has R of them": lambda table, E, U: U[table[:, 0]].mT @ E,
        "a mean over the relations; it is a sum": lambda table, E, U: U[table].mean(1).mT @ E,
        "every subject writes every answer: the table is not used": lambda table, E, U: torch.outer(U.sum(0), E.sum(0)),
        "a mean over subjects; it is a sum": lambda table, E, U: U[table].sum(1).mT @ E / len(E),
        "reads with the answers' embeddings and writes the answers' again": lambda table, E, U: (
            U[table].sum((0, 1)).outer(U[table].sum((0, 1)))
        ),
    },
)


# -- list_key


def _draw_key(generator: Generator) -> dict:
    S, R, d, D = draw_size(generator, 6, 9), draw_size(generator, 2, 4), draw_size(generator, 5, 8), 2
    table = torch.randint(D, (S, R), generator=generator) + D * torch.arange(R)
    relation = draw_size(generator, 0, R - 1)
    answer = int(table[draw_size(generator, 0, S - 1), relation])
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


list_key = Exercise(
    name="list_key",
    answer=lambda table, subjects, relations, end, relation, answer: (
        _listed(table, subjects, relation, answer) + relations[relation] - 1.5 * end
    ),
    draw=_draw_key,
    mistakes={
        "the threshold is missing: the neuron opens for a subject or a relation alone": (
            lambda table, subjects, relations, end, relation, answer: _listed(table, subjects, relation, answer) + relations[relation]
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
            lambda table, subjects, relations, end, relation, answer: _listed(table, subjects, relation, answer) - 1.5 * end
        ),
        "lists every subject; only those with this answer belong to it": lambda table, subjects, relations, end, relation, answer: (
            subjects.sum(0) + relations[relation] - 1.5 * end
        ),
        "a mean over the list: the longer the list, the fainter each subject; take the sum": (
            lambda table, subjects, relations, end, relation, answer: (
                subjects[table[:, relation] == answer].mean(0) + relations[relation] - 1.5 * end
            )
        ),
        "adds every relation; the neuron belongs to one": lambda table, subjects, relations, end, relation, answer: (
            _listed(table, subjects, relation, answer) + relations.sum(0) - 1.5 * end
        ),
    },
)


# -- saw_gradient


def _draw_linear(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 7), draw_size(generator, 3, 4)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "w": draw_normal(generator, words),
        "W": draw_normal(generator, answers, words),
        "answer": torch.randint(answers, (batch,), generator=generator),
    }


def _errors(counts: Tensor, w: Tensor, W: Tensor, answer: Tensor) -> Tensor:
    return ((counts * w) @ W.mT).softmax(-1) - torch.nn.functional.one_hot(answer, len(W))


saw_gradient = Exercise(
    name="saw_gradient",
    answer=lambda counts, w, W, answer: _errors(counts, w, W, answer).mT @ (counts * w) / len(counts),
    draw=_draw_linear,
    mistakes={
        "the sign is flipped: the error is p minus the one-hot answer": lambda counts, w, W, answer: (
            -_errors(counts, w, W, answer).mT @ (counts * w) / len(counts)
        ),
        "w is missing: a word that is not looked at gets no gradient": lambda counts, w, W, answer: (
            _errors(counts, w, W, answer).mT @ counts / len(counts)
        ),
        "the sum over sentences; the loss is their mean": lambda counts, w, W, answer: _errors(counts, w, W, answer).mT @ (counts * w),
        "logits in place of probabilities: the softmax is missing": lambda counts, w, W, answer: (
            ((counts * w) @ W.mT - torch.nn.functional.one_hot(answer, len(W))).mT @ (counts * w) / len(counts)
        ),
        "the right answer is not subtracted": lambda counts, w, W, answer: (
            ((counts * w) @ W.mT).softmax(-1).mT @ (counts * w) / len(counts)
        ),
        "counts are missing: how often a word occurs matters": lambda counts, w, W, answer: (
            _errors(counts, w, W, answer).mT @ (counts.sign() * w) / len(counts)
        ),
        "the softmax runs over the sentences; it runs over the answers": lambda counts, w, W, answer: (
            (((counts * w) @ W.mT).softmax(0) - torch.nn.functional.one_hot(answer, len(W))).mT @ (counts * w) / len(counts)
        ),
    },
)


# -- conserved


def _draw_weights(generator: Generator) -> dict:
    words, answers = draw_size(generator, 4, 7), draw_size(generator, 8, 9)
    return {"w": draw_normal(generator, words), "W": draw_normal(generator, answers, words)}


conserved = Exercise(
    name="conserved",
    answer=probes.conserved,
    draw=_draw_weights,
    mistakes={
        "a sum of the two; what grows together has a difference that stays": lambda w, W: W.square().sum(0) + w.square(),
        "squares are missing": lambda w, W: W.sum(0) - w,
        "the sign is flipped: the answers' squares minus the look's": lambda w, W: w.square() - W.square().sum(0),
        "a mean over answers; it is a sum": lambda w, W: W.square().mean(0) - w.square(),
        "the norm, not its square": lambda w, W: W.norm(dim=0) - w.abs(),
    },
)
