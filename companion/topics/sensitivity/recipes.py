"""Recipes of lesson 10: sparse functions under noise, digits, two manuals, parity against majority, and grokking, each
by a transformer and its rivals.

Sizes are ours, but for those of the networks on words; the sources train on CIFAR-10, ImageNet, MRPC and QQP (Vasudeva
et al. 2025, arXiv:2403.06925) or on longer strings (Bhattamishra et al. 2023, arXiv:2211.12316), and the scale
``paper`` stands for theirs. What they train on is in `companion.topics.sensitivity.tasks`, what is measured meanwhile
in `companion.topics.sensitivity.measured`.
"""

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.core.recipe import register
from companion.core.training import Schedule
from companion.topics.sensitivity.model import KINDS, Classifier, ClassifierConfig
from companion.topics.sensitivity.tasks import TASKS, of_cube, of_digits, of_sums, of_task, of_text

RIVALS = ("transformer", "lstm", "mlp")
WIDE = ("transformer", "cnn", "mlp")  # on digits, at the larger size
DECAYS = {"decay": 1.0, "no-decay": 0.0}  # of weights, in sums
LENGTHS = (3, 4, 5)  # of strings for parity and majority
AUGMENTED = 0.5  # the noise that training adds to one patch
SHARE = 0.5  # of the loss, that asks for steady logits


def fit(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy."""
    return F.cross_entropy(model(x), labels)


def with_noisy_part(x: Tensor) -> Tensor:
    """Each input with N(0, AUGMENTED^2) on one of its vectors; the draw is the CPU's global generator's, on every
    device.
    """
    here = F.one_hot(torch.randint(x.shape[1], (len(x),)), x.shape[1])[..., None]
    return x + AUGMENTED * (here * torch.randn_like(x, device="cpu")).to(x)


def fit_noisy(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of inputs with noise on a patch: augmentation."""
    return fit(model, with_noisy_part(x), labels)


def fit_steadily(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """(1 - p) cross-entropy + p times the mean squared change of logits under noise on a patch, p = `SHARE`: the
    regulariser of Vasudeva et al. (2025, arXiv:2403.06925; by their code).
    """
    plain = model(x)
    return (1 - SHARE) * F.cross_entropy(plain, labels) + SHARE * F.mse_loss(model(with_noisy_part(x)), plain)


def _config(kind: str, length: int, features: int, classes: int = 2, width: int = 32) -> ClassifierConfig:
    """About as many weights for each kind: an LSTM, read at its last place, has one layer, an MLP is four times as
    wide.
    """
    if kind == "lstm":
        return ClassifierConfig(kind, length, features, classes, width, layers=1, readout="last")
    return ClassifierConfig(kind, length, features, classes, 4 * width if kind == "mlp" else width)


def _deep(kind: str) -> ClassifierConfig:
    """Four layers of 256, as Vasudeva et al. (2025, arXiv:2403.06925) have for words; the MLP, ours, stays small."""
    config = _config(kind, 24, 400)
    return config if kind == "mlp" else replace(config, width=256, layers=4, heads=8)


_classifier = partial(register, model=Classifier, loss=fit)
TINY = Schedule(steps=150, batch=16, lr=1e-2, warmup=5)
for task, (vocabulary, many, steps) in TASKS.items():
    for kind in RIVALS:
        config, late = _config(kind, 16, vocabulary), kind == "lstm"
        schedule = Schedule(steps * (3 if late else 1), 64, 3e-3, warmup=20)
        published = _config(kind, 40, vocabulary, width=256), Schedule(20_000, 256, 1e-4)
        if task == "sparse":
            config, large = (replace(_config(kind, n, 2, width=64), heads=4) for n in (20, 40))
            # both rivals are late here, and at the transformer's rate the LSTM does not begin in time
            schedule = Schedule(steps * (1 if kind == "transformer" else 3), 100, 3e-3 if late else 1e-3, warmup=20)
            published = replace(large, layers=4), Schedule(40_000, 500, 1e-3)
        _classifier(
            f"sensitivity-{task}-{kind}",
            f"the lesson's task '{task}', by the {kind} (lesson 10)",
            sampler=of_task,
            smoke=(
                _config(kind, 6, vocabulary, width=8),
                replace(TINY, steps=TINY.steps * (3 if late else 1)),
                {"task": task, "many": 64},
            ),
            course=(config, schedule, {"task": task, "many": many}),
            paper=(*published, {"task": task, "many": 40_000 if task == "sparse" else 10_000}),
        )
TRAINED_FOR_IT = {"augmented": ("transformer", fit_noisy), "steadied": ("transformer", fit_steadily)}
for name, (kind, loss) in ({kind: (kind, fit) for kind in KINDS} | TRAINED_FOR_IT).items():
    _classifier(
        f"sensitivity-digits-{name}",
        f"handwritten digits as 16 patches, by the {kind}{'' if name == kind else ', ' + name} (lesson 10)",
        sampler=of_digits,
        loss=loss,
        smoke=(_config(kind, 16, 4, 10, 8), TINY),
        course=(_config(kind, 16, 4, 10), Schedule(900 if kind == "lstm" else 300, 64, 3e-3, warmup=20)),
        paper=(_config(kind, 16, 4, 10, 256), Schedule(10_000, 128, 1e-4)),
    )
for kind in WIDE:
    _classifier(
        f"sensitivity-wide-{kind}",
        f"handwritten digits, by the {kind}, twice as wide and four times as long (lesson 10)",
        sampler=of_digits,
        smoke=(_config(kind, 16, 4, 10, 8), TINY),
        course=(replace(_config(kind, 16, 4, 10, 64), heads=4), Schedule(1200, 64, 1e-3, warmup=20)),
        paper=(_config(kind, 16, 4, 10, 256), Schedule(10_000, 128, 1e-4)),
    )
for kind in RIVALS:
    _classifier(
        f"sensitivity-text-{kind}",
        f"which of two manuals 24 words are from, by the {kind} (lesson 10)",
        sampler=of_text,
        smoke=(_config(kind, 24, 400, width=8), TINY),
        course=(_deep(kind), Schedule(150, 32, 3e-3 if kind == "mlp" else 3e-4, warmup=10)),
        paper=(_deep(kind), Schedule(2000, 32, 1e-4)),
    )
for kind in ("parity", "majority"):
    for n in LENGTHS:
        _classifier(
            f"sensitivity-{kind}-{n}",
            f"the {kind} of {n} bits, by the transformer (lesson 10)",
            sampler=of_cube,
            smoke=(_config("transformer", 3, 2, width=8), TINY, {"kind": kind}),
            course=(_config("transformer", n, 2), Schedule(700, 32, 3e-3, warmup=50), {"kind": kind}),
            paper=(_config("transformer", n, 2, width=128), Schedule(10_000, 1024, 3e-4), {"kind": kind}),
        )
for kind, decay in DECAYS.items():
    _classifier(
        f"sensitivity-sums-{kind}",
        f"a + b modulo 59 from three fifths of the table, weight decay {decay:g}: grokking (lesson 10)",
        sampler=of_sums,
        smoke=(_config("transformer", 2, 5, 5, 8), replace(TINY, decay=decay)),
        course=(ClassifierConfig("transformer", 2, 59, 59, 128, 1, 4), Schedule(3600, 128, 1e-3, 50, decay=decay)),
        # over 20,000 steps the rate falls to 0: in sum as much as in the 10,000 published ones, where it stays
        paper=(
            ClassifierConfig("transformer", 2, 113, 113, 128, 1, 4),
            Schedule(20_000, 3830, 1e-3, decay=decay),
            {"pairs": 3830},
        ),
    )
