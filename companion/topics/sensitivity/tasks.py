"""What is trained on in lesson 10: fixed sets of examples, so that there is a training accuracy to compare at."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from companion.topics.sensitivity.baselines import best_under_noise
from companion.topics.sensitivity.data import (
    Sparse,
    cube,
    digits,
    last_write,
    patches,
    strings,
    truth_table,
    turned,
    windows,
    writes,
)
from companion.topics.sensitivity.model import ClassifierConfig, one_hot

TASKS = {  # tokens, examples, steps of training
    "labels": (2, 800, 600),
    "features": (2, 24_000, 1500),
    "clean": (2, 24_000, 1500),
    "writes": (3, 600, 600),
    "random": (2, 150, 600),
    "sparse": (2, 5000, 3000),
}
FLIPPED, BLURRED = 0.1, 0.2  # of the labels; of the bits, where these are noisy
FLIPPED_PARITIES = 0.05  # of the labels of a sparse parity, as Bhattamishra et al. (2023, arXiv:2211.12316) flip them
TRAINED = 1200  # of the 1,797 digits


@cache
def trapped(k: int = 4, p: float = BLURRED) -> Tensor:
    """Find the first random function of k bits that differs at two values or more from the best answer that noise
    leaves.
    """
    tables = (truth_table("random", k, generator=seed) for seed in range(1000))
    return next(table for table in tables if (table != best_under_noise(table, p)).sum() >= 2)


@cache
def function_of(task: str, n: int) -> Callable[[Tensor], Tensor]:
    """Return what is to be learned without noise: a function of n tokens."""
    if task == "writes":
        return last_write
    if task in ("features", "clean"):
        table = trapped()
    else:
        table = truth_table("parity", 4 if n == 40 else 3) if task == "sparse" else truth_table("majority", 3)
    places = torch.randperm(n, generator=torch.Generator().manual_seed(n))[: len(table).bit_length() - 1]
    return Sparse(table, places)


def draw_tokens(task: str, many: int, n: int, seed: int) -> Tensor:
    """Strings of a task, without noise.

    ``task``: one of `TASKS`.
    ``many``, ``n``: how many strings, and tokens in each.
    ``seed``: of the draw.
    """
    return (writes if task == "writes" else strings)(many, n, generator=seed)


@cache
def examples(task: str, n: int, many: int) -> tuple[Tensor, Tensor]:
    """Draw the training set of a task: tokens and labels, with its noise."""
    tokens = draw_tokens(task, many, n, 1)
    labels = function_of(task, n)(tokens)
    if task == "random":
        return tokens, strings(many, 1, generator=2)[:, 0]
    if task == "features":
        return turned(tokens, BLURRED, generator=2), labels
    flipped = FLIPPED_PARITIES if task == "sparse" else FLIPPED
    return (tokens, labels) if task == "clean" else (tokens, turned(labels, flipped, generator=2))


def batches(
    load: Callable[[], tuple[Tensor, Tensor]], vocabulary: int = 0, *, whole: bool = False
) -> Callable[[int, torch.Generator], tuple[Tensor, Tensor]]:
    """Random examples of the set that ``load`` gives, or each time the ``whole`` of it; tokens of a ``vocabulary``
    become `one_hot` vectors.
    """

    @cache
    def there(device):
        return [each.to(device) for each in load()]  # once: an example that is picked there need not travel

    def draw(batch, generator):
        x, labels = there(generator.device)
        chosen = slice(None) if whole else torch.randint(len(x), (batch,), generator=generator, device=generator.device)
        return one_hot(x[chosen], vocabulary) if vocabulary else x[chosen], labels[chosen]

    return draw


def of_task(config: ClassifierConfig, task: str, many: int):
    """Batches of a task's training set."""
    return batches(lambda: examples(task, config.length, many), config.features)


def of_digits(config: ClassifierConfig):  # noqa: ARG001 - images have one size
    """Batches of the training digits, as patches."""
    return batches(lambda: (patches(digits()[0][:TRAINED]), digits()[1][:TRAINED]))


def of_text(config: ClassifierConfig):
    """Batches of the first three quarters of the windows."""

    def load():
        tokens, labels = windows(config.length, config.features)
        train = len(tokens) * 3 // 4
        return tokens[:train], labels[:train]

    return batches(load, config.features)


def of_cube(config: ClassifierConfig, kind: str):
    """Batches of all strings, and their parity or majority."""
    return batches(lambda: (cube(config.length), truth_table(kind, config.length)), 2)


def of_sums(config: ClassifierConfig, pairs: int | None = None):
    """Batches of the training pairs of `table_of_sums`: of just so many ``pairs``, all of them in every one."""
    tokens, labels, train, _ = table_of_sums(config.classes, pairs)
    return batches(lambda: (tokens[train], labels[train]), config.classes, whole=pairs is not None)


@cache
def table_of_sums(modulus: int, pairs: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return all pairs, their sums modulo a number, which pairs are for training, and which are held out, so that no
    answer can be had by swapping.

    About three fifths are for training, a + b and b + a alike; or just so many ``pairs``, drawn from all as Nanda et
    al. (2023, arXiv:2301.05217) draw 3,830 of 113 x 113, and a pair is then held out if b + a is not among them,
    either.
    """
    tokens = torch.cartesian_prod(torch.arange(modulus), torch.arange(modulus))
    drawn = torch.rand(modulus, modulus, generator=torch.Generator().manual_seed(0))
    if pairs is None:
        drawn = drawn.triu()
        train = drawn + drawn.triu(1).mT < 0.6
    else:
        train = drawn <= drawn.flatten().kthvalue(pairs).values
    return tokens, tokens.sum(1) % modulus, train.flatten(), ~(train | train.mT).flatten()
