"""Exercises on networks: thresholds that balance, equal training accuracy, a loss that asks for steady logits."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

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
