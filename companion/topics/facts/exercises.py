"""The exercises of lesson 07, factual recall."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.bars import reaches, stays_within
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.facts.data import counts as counted
from companion.topics.facts.data import every_fact, random_world


def _draw_linear(generator: Generator) -> dict:
    batch, words, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 7), draw_size(generator, 3, 4)
    return {
        "counts": torch.randint(0, 3, (batch, words), generator=generator).double(),
        "w": draw_normal(generator, words),
        "W": draw_normal(generator, answers, words),
        "answer": torch.randint(answers, (batch,), generator=generator),
    }


@exercise(draw=_draw_linear, now="gradient descent can now learn facts by your own gradient")
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


@exercise(draw=_draw_table, now="you can now tell what the relation alone is worth")
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


def _draw_edit(generator: Generator) -> dict:
    """More keys than dimensions, or fewer, so that some directions are no key's."""
    d, out = draw_size(generator, 5, 7), draw_size(generator, 3, 4)
    n = draw_size(generator, 3, d - 2) if generator.initial_seed() % 2 else draw_size(generator, 2 * d, 2 * d + 3)
    keys = draw_normal(generator, n, d)
    return {
        "W": draw_normal(generator, out, d),
        "keys": keys * torch.linspace(0.5, 2, n).to(keys)[:, None],
        "fact": draw_size(generator, 1, n - 2),
        "value": draw_normal(generator, out),
    }


@exercise(draw=_draw_edit, now="you can now change one thing that a matrix knows, and the others least")
def edit_fact(W: Tensor, keys: Tensor, fact: int, value: Tensor) -> Tensor:
    key = keys[fact]
    reads = torch.linalg.pinv(keys.mT @ keys) @ key
    reads = reads / (reads @ key)
    return W + torch.outer(value - W @ key, reads)


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


def _begins_at_the_start(_: dict, film: Tensor) -> str | None:
    """The stage at which the first frame must be the start; after a first step, of .1 to 3, it may be."""
    first, last = (film[at].abs().max().item() for at in (0, -1))
    if not first:
        return "the first frame is all zero, and there both gradients are 0; the start is 1e-5 everywhere"
    if (film == film[0]).all():
        told = f"all frames are alike: each has entries up to {first:.2g}, and the start is 1e-5 everywhere"
        grown = "; was the same tensor appended each time? Make a new one at each step"
        return told + (grown if first > 1e-2 else "")
    low, high = film[0].min().item(), film[0].max().item()
    if stays_within("distance of the first frame from 1e-5, in 1e-5", max(1e5 * high - 1, 1 - 1e5 * low), 0.5):
        return None
    if last <= 1e-3 < first:
        return f"the film runs backwards: its first frame has entries up to {first:.2g}, its last up to {last:.2g}"
    entries = f"of {low:.2g}" if low == high else f"from {low:.2g} to {high:.2g}"
    return f"the first frame has entries {entries}; the start is 1e-5 everywhere"


def _right(inputs: dict, film: Tensor) -> float:
    """The mean probability of the right answer to the new sentences, in the last frame."""
    p = _logits(inputs["_counts"], film[-1:])[0].softmax(-1)
    return p.gather(1, inputs["_answer"][:, None]).mean().item()


def _ends_with_the_facts(inputs: dict, film: Tensor) -> str | None:
    right = _right(inputs, film)
    if reaches("probability of the right answer in the last frame", right, 0.9):
        return None
    told = f"in the last frame the right answer has a probability of {right:.2f}, and 0.9 is asked for"
    if _right(inputs, film.roll(-1, 1)) >= 0.9:
        return f"{told}; w is the first row of each frame, and must be the last"
    if (largest := film[-1].abs().max().item()) < 0.1:
        return f"{told}; nothing has grown: the largest entry is {largest:.2g}"
    loss, level = _losses(inputs, film[-1:]).item(), math.log(inputs["_each"])
    if abs(loss / level - 1) <= 0.05:
        return (
            f"{told}; the film ends on the plateau: the loss is {loss:.2f}, and {level:.2f} where a model knows what "
            "is asked and not about whom"
        )
    return f"{told}; the loss is {loss:.2g} there"


def _feeds_each_other(_: dict, film: Tensor) -> str | None:
    W, w = film[:, :-1].square().sum(1), film[:, -1].square()
    kept, of_w, of_W = W - w, w[-1] - w[0], W[-1] - W[0]
    if stays_within("drift of what descent keeps", ((kept - kept[0]).abs().max() / w[-1].max()).item(), 0.02):
        return None
    factors = (of_w / of_W)[of_w > 0.1 * of_w.max()]
    alike = factors.max() - factors.min() < 0.1 * factors.min()
    if alike and not 0.9 < factors.mean() < 1.1:
        return (
            f"w squared has grown {factors.mean():.2g} times as much as the sum of W squared, word by word; with one "
            "small step for both they grow alike"
        )
    return (
        f"for some word the sum of W squared less w squared drifts by {(kept - kept[0]).abs().max() / w[-1].max():.2g} "
        "of the largest w squared; descent on all sentences keeps it, in small steps that are the same for W and w"
    )


def _losses(inputs: dict, film: Tensor) -> Tensor:
    """The loss of each frame on the sentences that are taught."""
    logits = _logits(inputs["counts"], film)
    return torch.stack([F.cross_entropy(each, inputs["answer"]) for each in logits])


def _clock(inputs: dict) -> tuple[Tensor, int]:
    """The largest |w| of a descent in half steps from 1e-5, step by step: it grows, and so tells how far a run is,
    whatever its steps. And after how many of them the loss is below .05.
    """
    counts, answer = inputs["counts"], inputs["answer"]
    both, sizes, steps, loss = torch.full((inputs["answers"] + 1, counts.shape[1]), 1e-5).to(counts), [], 0, math.inf
    while loss > 0.04:
        sizes.append(both[-1].abs().max())
        loss = F.cross_entropy((counts * both[-1]) @ both[:-1].mT, answer).item()
        steps += loss >= 0.05
        both = both - 0.5 * saw_gradient.answer(counts, both[-1], both[:-1], answer)
    return torch.stack(sizes).cummax(0).values, steps


def _lies_evenly(inputs: dict, film: Tensor) -> str | None:
    """The stage at which the frames must lie evenly over the steps before the loss falls below .05, however long the
    run goes on, and leave none of these steps out: so the film shows the loss rest for as long as it does.

    How far a frame is in that part is off by at most .038 where right films have steps of .1 to 3, stop at .1 to .001
    or after 1,000 to 5,000 steps and have 80 to 120 frames; by .25 and more where frames lie on a square, a root or a
    logarithm of the steps.

    The longest way from a frame to the next exceeds the usual one by at most .034 of that part in the same films.
    """
    losses = _losses(inputs, film)
    if (rise := losses.diff().max().item()) and not stays_within("rise of the loss between two frames", rise, 0.01):
        return f"the loss rises by {rise:.2g} from one frame to the next"
    before = int((losses >= 0.05).sum())
    if before < 2:
        return f"only the first of {len(film)} frames comes before the loss falls below .05"
    sizes, steps = _clock(inputs)
    at = torch.searchsorted(sizes, film[:before, -1].abs().amax(1).to(inputs["counts"])).double()
    shown, even = (at - at[0]) / (at[-1] - at[0]).clamp_min(1), torch.linspace(0, 1, before).to(at)
    if not stays_within("how far off a frame is", (shown - even).abs().max().item(), 0.14):
        worst = int((shown - even).abs().argmax())
        return (
            f"the frames do not show evenly what descent in equal steps does: of the {before} before the loss falls "
            f"below .05, frame {worst} has the loss that descent has after {shown[worst]:.0%} of the steps there, not "
            f"after {even[worst]:.0%}"
        )
    falls = [steps] if before < len(film) else []
    ways = torch.cat([at, torch.tensor(falls).to(at)]).diff() / steps
    longest, usual = int(ways.argmax()), ways.median().item()
    if stays_within("what a film leaves out", ways[longest].item() - usual, 0.08):
        return None
    return (
        f"the film leaves out a part of the descent: of the steps before the loss falls below .05, {ways[longest]:.0%} "
        f"pass between frame {longest}, where it is {losses[longest]:.2g}, and the next, where it is "
        f"{losses[longest + 1]:.2g}; between others as a rule {usual:.1%}"
    )


@summit(
    draw=_draw_film,
    shape=lambda inputs: (inputs["frames"], inputs["answers"] + 1, inputs["counts"].shape[1]),
    stages=(_begins_at_the_start, _ends_with_the_facts, _feeds_each_other, _lies_evenly),
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
