"""The exercises of lesson 07, factual recall."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.facts.data import counts as counted
from companion.topics.facts.data import every_fact, random_world
from companion.topics.facts.probes import conserved


def _draw_linear(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 7), draw_size(generator, 3, 4)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "w": draw_normal(generator, words),
        "W": draw_normal(generator, answers, words),
        "answer": torch.randint(answers, (batch,), generator=generator),
    }


@exercise(draw=_draw_linear, now="gradient descent can now learn facts without autograd")
def saw_gradient(counts: Tensor, w: Tensor, W: Tensor, answer: Tensor) -> Tensor:
    looked = counts * w
    p = (looked @ W.mT).softmax(-1)
    errors = p - torch.nn.functional.one_hot(answer, len(W)).to(p)
    said = errors.mT @ looked / len(counts)
    look = ((errors @ W) * counts).mean(0)
    return torch.cat([said, look[None]])


def _draw_told(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 6, 9), draw_size(generator, 6, 8), draw_size(generator, 3, 5)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "answer": torch.randint(answers, (batch,), generator=generator),
        "answers": answers,
    }


@exercise(draw=_draw_told)
def signal(counts: Tensor, answer: Tensor, answers: int) -> Tensor:
    surprise = torch.nn.functional.one_hot(answer, answers).to(counts) - 1 / answers
    pull = surprise.mT @ counts / len(counts)
    return pull.norm(dim=0)


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


@exercise(draw=_draw_losses)
def rest(losses: Tensor, level: float, within: float) -> Tensor:
    longest = current = 0
    for loss in losses:
        current = current + 1 if abs(loss - level) <= within * level else 0
        longest = max(longest, current)
    return torch.tensor(longest)


def _draw_table(generator: Generator) -> dict:
    S, R, D = draw_size(generator, 5, 9), draw_size(generator, 2, 4), draw_size(generator, 2, 4)
    return {"table": torch.randint(D, (S, R), generator=generator), "answers": D}


@exercise(draw=_draw_table, now="you can now tell from a loss what a model knows")
def plateau(table: Tensor, answers: int) -> Tensor:
    shares = torch.nn.functional.one_hot(table, answers).double().mean(0)
    return torch.special.entr(shares).sum(-1).mean()


def _draw_votes(generator: Generator) -> dict:
    S, R, D, d = (
        draw_size(generator, 3, 5),
        draw_size(generator, 2, 4),
        draw_size(generator, 2, 3),
        draw_size(generator, 6, 8),
    )
    table = torch.randint(D, (S, R), generator=generator) + D * torch.arange(R)
    return {"table": table, "writes": draw_normal(generator, R * D, d)}


@exercise(draw=_draw_votes, now="a layer without any MLP can now store facts")
def both_vote(table: Tensor, writes: Tensor) -> Tensor:
    by_subject = writes[table].sum(1)
    by_relation = writes.unflatten(0, (table.shape[1], -1)).sum(1)
    return by_subject[:, None] + by_relation[None]


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


@exercise(draw=_draw_key, now="a neuron can now know what several subjects share")
def list_key(table: Tensor, subjects: Tensor, relations: Tensor, end: Tensor, relation: int, answer: int) -> Tensor:
    listed = table[:, relation] == answer
    return subjects[listed].sum(0) + relations[relation] - 1.5 * end


def _draw_right(generator: Generator) -> dict:
    models = draw_size(generator, 4, 6)
    answers = draw_size(generator, 3, 8)
    right = torch.rand(models, generator=generator, dtype=torch.float64)
    right[0], right[1], right[2] = 1, 1 / answers, 0.3 / answers
    return {"right": right, "facts": torch.randint(10, 999, (models,), generator=generator), "answers": answers}


@exercise(draw=_draw_right)
def bits(right: Tensor, facts: Tensor, answers: int) -> Tensor:
    right = right.clamp_min(1 / answers)
    wrong = 1 - right
    unsure = (torch.special.entr(right) + torch.special.entr(wrong)) / math.log(2)
    return facts * (math.log2(answers) - unsure - wrong * math.log2(answers - 1))


def _draw_film(generator: Generator) -> dict:
    facts = random_world(12, 3, 4, noise=5, generator=generator)
    taught, asked = (every_fact(facts, 6, rounds=rounds, generator=generator) for rounds in (16, 8))
    return {
        "counts": counted(taught.tokens, facts.words).double(),
        "answer": taught.answer,
        "answers": facts.all_answers,
        "frames": draw_size(generator, 80, 120),
        "_counts": counted(asked.tokens, facts.words).double(),
        "_answer": asked.answer,
        "_each": facts.answers,
    }


def _logits(counts: Tensor, film: Tensor) -> Tensor:
    """The logits of all sentences in each frame, (frames, sentences, answers)."""
    return (counts.to(film) * film[:, -1:]) @ film[:, :-1].mT


def _begins_near_zero(_: dict, film: Tensor) -> str | None:
    if not film[0].any():
        return "the first frame is all zero, and there both gradients are 0: begin at 1e-5"
    if (film == film[0]).all():
        return "all frames are alike: is one tensor changed in place, so that every frame shows its end?"
    if (largest := film[0].abs().max().item()) > 1e-3:
        return f"the first frame has entries up to {largest:.2g}; it must show the start, 1e-5 everywhere"
    return None


def _ends_with_the_facts(inputs: dict, film: Tensor) -> str | None:
    p = _logits(inputs["_counts"], film[-1:])[0].softmax(-1)
    due, each = inputs["_answer"], inputs["_each"]
    right = p.gather(1, due[:, None]).mean().item()
    if right >= 0.9:
        return None
    kind = p.unflatten(1, (-1, each)).sum(-1).gather(1, due[:, None] // each).mean().item()
    why = (
        "the film ends on the plateau, where the model knows what is asked and not about whom: go on until the loss is "
        "small"
        if kind > 0.7
        else "nothing has grown: does the run go on for long enough, and downhill?"
        if film[-1].abs().max() < 0.1
        else "is that the end of the run, and does it follow your gradient, downhill, in small steps?"
    )
    return f"in the last frame the right answer has a probability of {right:.2f}, and 0.9 is asked for; {why}"


def _feeds_each_other(_: dict, film: Tensor) -> str | None:
    kept = torch.stack([conserved(frame[-1], frame[:-1]) for frame in film])
    drift = ((kept - kept[0]).abs().max() / film[-1, -1].square().max()).item()
    if drift <= 0.02:
        return None
    return (
        f"for some word the sum of W squared less w squared drifts by {drift:.2g} of the largest w squared; descent in "
        "small steps keeps it: do W and w take the same small step, both at the old values, and neither anything else?"
    )


def _rests(inputs: dict, film: Tensor) -> str | None:
    """The stage at which the film must show the plateau for as long as it lasts: a seventh of the run and more."""
    logits, level = _logits(inputs["counts"], film), math.log(inputs["_each"])
    losses = torch.stack([F.cross_entropy(each, inputs["answer"]) for each in logits])
    if (rise := losses.diff().max().item()) > 0.01:
        return (
            f"the loss rises by {rise:.2g} from one frame to the next: are the frames in their order, the steps small?"
        )
    near = ((losses / level - 1).abs() <= 0.05).double().mean().item()
    if near >= 1 / 7:
        return None
    return (
        f"{near:.0%} of the frames lie on the plateau, where a run is for a fifth of its time: are they spread evenly?"
    )


@summit(
    draw=_draw_film,
    shape=lambda inputs: (inputs["frames"], inputs["answers"] + 1, inputs["counts"].shape[1]),
    stages=(_begins_near_zero, _ends_with_the_facts, _feeds_each_other, _rests),
    seconds=4,
    now="you can watch, frame by frame, what a model says before it knows",
)
def learn_facts(counts: Tensor, answer: Tensor, answers: int, frames: int) -> Tensor:
    both = torch.full((answers + 1, counts.shape[1]), 1e-5).to(counts)  # W, and w below it
    film, loss = [both], math.inf
    while loss > 0.03:
        W, w = both[:-1], both[-1]
        loss = torch.nn.functional.cross_entropy((counts * w) @ W.mT, answer)
        both = both - saw_gradient.answer(counts, w, W, answer)
        film.append(both)
    evenly = torch.linspace(0, len(film) - 1, frames).round().long()
    return torch.stack(film)[evenly]
