"""What is measured in lesson 10 while its recipes train, or after: accuracy, sensitivity, robustness, sharpness."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from companion.core.arguments import at_least
from companion.core.measuring import Row, measurement
from companion.core.recipe import TIMES, Recipe, recipe
from companion.core.training import seeded
from companion.topics.sensitivity.data import (
    CORRUPTIONS,
    another,
    corrupted,
    cube,
    digits,
    patches,
    truth_table,
    windows,
)
from companion.topics.sensitivity.model import ClassifierConfig, one_hot
from companion.topics.sensitivity.probes import answers, changes, largest_curvature, noisy_parts, rise_under_noise
from companion.topics.sensitivity.recipes import DECAYS, LENGTHS, RIVALS, WIDE, fit
from companion.topics.sensitivity.tasks import TRAINED, draw_tokens, examples, function_of, table_of_sums

MARKS = 30  # of a training run
WINDOWS = 60  # of the training text, whose words are changed
NOISES = (0.25, 0.5, 1.0)  # standard deviations added to one patch
NUDGE = 0.1  # added to a token's one-hot vector, in sums
SHAKEN = 0.02  # the noise on weights


def measured(
    chosen: Recipe, measure: Callable[[nn.Module], Tensor], *, marks: int | Sequence[int] = MARKS, seed: int = 0
) -> tuple[nn.Module, Tensor]:
    """Train a recipe and measure the model at its marks and at the end: the model, and (marks + 1, figures).

    ``chosen``: the recipe.
    ``measure``: of the model, a row of figures.
    ``marks``: the steps before which it is measured; or how many marks, equally far apart from the first step on.
    ``seed``: of weights and batches.

    Raises ValueError for a number of marks that does not divide the steps.
    """
    if isinstance(marks, int):
        at_least(marks=(marks, 1))
        if chosen.schedule.steps % marks:
            raise ValueError(f"marks = {marks}: must divide the {chosen.schedule.steps} steps")
        marks = range(0, chosen.schedule.steps, chosen.schedule.steps // marks)
    with seeded(seed):
        model, history = chosen.train(seed=seed, each=measure, every=marks)
    return model, torch.stack([*history.looks, measure(model)])


def right(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """The share of right answers."""
    return (answers(model, x) == labels).double().mean()


def of_function(task: str, config: ClassifierConfig, many: int) -> Callable[[nn.Module], Tensor]:
    """Measures accuracy on the training set, sensitivity, and accuracy on fresh strings without noise."""
    tokens, labels = (each[:400] for each in examples(task, config.length, many))
    fresh = draw_tokens(task, 500, config.length, 3)
    held, asked = one_hot(fresh, config.features), function_of(task, config.length)(fresh)
    copies = one_hot(another(fresh[:64], config.features, generator=4), config.features)
    x = one_hot(tokens, config.features)
    return lambda model: torch.stack(
        [right(model, x, labels), changes(model, held[:64], copies).double().mean(), right(model, held, asked)]
    )


def of_images() -> Callable[[nn.Module], Tensor]:
    """Measures accuracy on the training digits, on the others, and, on training digits as Vasudeva et al. (2025,
    arXiv:2403.06925) do, sensitivity to each of the `NOISES` on a patch.
    """
    images, labels = digits()
    x, held = patches(images[:TRAINED]), patches(images[TRAINED:])
    copies = [noisy_parts(x[:150], std, generator=5) for std in NOISES]
    return lambda model: torch.stack(
        [
            right(model, x[:400], labels[:400]),
            right(model, held, labels[TRAINED:]),
            *(changes(model, x[:150], each).double().mean() for each in copies),
        ]
    )


def of_words(config: ClassifierConfig) -> Callable[[nn.Module], Tensor]:
    """Measures accuracy on training windows, on the others, and, on training windows as Vasudeva et al. (2025,
    arXiv:2403.06925) do, how often the answer changes with another word at each place.
    """
    tokens, labels = windows(config.length, config.features)
    train = len(tokens) * 3 // 4
    x = one_hot(tokens, config.features)
    looked = x[:WINDOWS]
    copies = one_hot(another(tokens[:WINDOWS], config.features, generator=6), config.features)
    return lambda model: torch.cat(
        [
            torch.stack([right(model, x[:train], labels[:train]), right(model, x[train:], labels[train:])]),
            changes(model, looked, copies).double().mean(0),
        ]
    )


def of_pairs(config: ClassifierConfig, pairs: int | None = None) -> Callable[[nn.Module], Tensor]:
    """Measures accuracy on training pairs, on those held out, and how often the answer changes under noise of `NUDGE`
    on one of a training pair's two vectors; on every fourth pair where so many ``pairs`` are for training.
    """
    tokens, labels, train, held = table_of_sums(config.classes, pairs)
    some = slice(None, None, None if pairs is None else 4)
    x, held_out = (one_hot(tokens[part][some], config.features) for part in (train, held))
    noisy = noisy_parts(x, NUDGE, generator=7)
    return lambda model: torch.stack(
        [
            right(model, x, labels[train][some]),
            right(model, held_out, labels[held][some]),
            changes(model, x, noisy).double().mean(),
        ]
    )


def measure_of(name: str, scale: str = "course") -> Callable[[nn.Module], Tensor]:
    """What is measured of a recipe for a task, digits, text or sums while it trains."""
    chosen, task = recipe(name, scale), name.split("-")[1]
    if task in ("digits", "wide"):
        return of_images()
    if task in ("text", "sums"):
        return {"text": of_words, "sums": of_pairs}[task](chosen.config, **chosen.task)
    return of_function(config=chosen.config, **chosen.task)


FUNCTION = ("training_accuracy", "sensitivity", "clean_accuracy")
IMAGES = ("training_accuracy", "held_out_accuracy", *(f"noise_{std:g}" for std in NOISES))
WORDS = ("training_accuracy", "held_out_accuracy", *(f"word_{place}" for place in range(1, 25)))
CURVES = {  # networks, and what is measured of them
    "labels": (RIVALS, FUNCTION),
    "features": (RIVALS, FUNCTION),
    "clean": (RIVALS[:1], FUNCTION),
    "writes": (RIVALS, FUNCTION),
    "random": (RIVALS, FUNCTION),
    "digits": ((*RIVALS, "cnn", "augmented", "steadied"), IMAGES),
    "wide": (WIDE, IMAGES),
    "text": (RIVALS, WORDS),
    "sums": (tuple(DECAYS), ("training_accuracy", "held_out_accuracy", "sensitivity")),
}
WITH_FLIPS = ("labels", "sparse")
# The LSTM's rivals have each bit's place; these LSTMs of the sparse parity are told it, too, or a shuffled one. They
# find the parity if FOUND of new strings are right at the end, in two of three seeds; untold and shuffled must fail.
LSTMS_TOLD = {"lstm-told": "places", "lstm-shuffled": "shuffled"}
FOUND = 0.95
WITHOUT_LSTM = ("transformer", "mlp")  # an LSTM takes hours of 40 tokens; of noisy bits it is in another table
ROBUST = ("transformer", "augmented", "steadied")
DRIFT = "in the middle of a run rounding moves the step at which something is learned"
RISE = (*range(0, 2000, 40), *range(2000, 20_000, 400))  # steps of sums at which they are measured: more while it groks
PUBLISHED = {"sums-113": ("sums", RISE)}  # tables at a task's published size, and marks


def curve(table: str, seed: int, scale: str, network: str) -> list[Row]:
    """Measure a network at the start and after each of so many parts of its training.

    ``table``: of `CURVES` or `PUBLISHED`.
    ``network``: of the task's in `CURVES`.
    ``seed``, ``scale``: of the training.
    """
    task, marks = PUBLISHED.get(table, (table, MARKS))
    marks = 3 if scale == "smoke" else marks
    (chosen,) = trained_for(table, scale, [network])
    _, rows = measured(chosen, measure_of(chosen.name, chosen.scale), marks=marks, seed=seed)
    return [{"mark": mark, **dict(zip(CURVES[task][1], row, strict=True))} for mark, row in enumerate(rows.tolist())]


def trained_for(table: str, scale: str, networks: Sequence[str]) -> list[Recipe]:
    """Return what is trained for a table: of one in `PUBLISHED`, but for a trial, at the scale paper."""
    task, _ = PUBLISHED.get(table, (table, MARKS))
    scale = "paper" if table in PUBLISHED and scale == "course" else scale
    return [recipe(f"sensitivity-{task}-{network}", scale) for network in networks]


for _table in (*CURVES, *PUBLISHED):
    _task, _ = PUBLISHED.get(_table, (_table, MARKS))
    _networks, _published = CURVES[_task][0], _table in PUBLISHED
    measurement(
        f"sensitivity-{_table}",
        f"accuracy and sensitivity of the task '{_task}'{', at its published size,' * _published} through training, by "
        f"{', '.join(_networks)}",
        cells=[{"network": network} for network in _networks],
        recipes=partial(trained_for, _table, networks=_networks),
        seeds=(0, 1, 2),
        tolerance=math.inf if _published else 0.15,
        because="it is measured on a GPU, where other batches are drawn" if _published else DRIFT,
        gpu=_published,
    )(partial(curve, _table))


def on_flipped(config: ClassifierConfig, task: str, many: int) -> Callable[[nn.Module], Tensor]:
    """Measures what `of_function` does, and on which share of the flipped labels the answer is the flipped one: what is
    known by heart, and not by the rule.
    """
    tokens, labels = examples(task, config.length, many)
    flipped = labels != function_of(task, config.length)(tokens)
    measure, x = of_function(task, config, many), one_hot(tokens[flipped], config.features)
    return lambda model: torch.cat([measure(model), right(model, x, labels[flipped])[None]])


def equally_long(task: str, network: str, times: int, scale: str) -> Recipe:
    """Return the recipe of a ``network`` for a ``task``, at a ``scale``, for so many ``times`` the transformer's steps,
    whatever steps it has elsewhere. Those of `LSTMS_TOLD` are the LSTM's, but for what stands beside its bits.
    """
    steps = recipe(f"sensitivity-{task}-transformer", scale).longer(times).schedule.steps
    plan = recipe(f"sensitivity-{task}-{'lstm' if network in LSTMS_TOLD else network}", scale).with_(steps=steps)
    if network in LSTMS_TOLD:
        plan = plan.with_(config=replace(plan.config, told=LSTMS_TOLD[network]))
    return plan


def parity_of_40(network: str, scale: str) -> Recipe:
    """Return the recipe of a ``network`` for the sparse parity: but for a trial, at the scale paper."""
    return recipe(f"sensitivity-sparse-{network}", "paper" if scale == "course" else scale)


def along(
    plan: Recipe, marks: int, seed: int, measures: Callable[..., Callable[[nn.Module], Tensor]] = on_flipped
) -> list[Row]:
    """Train by a ``plan`` and measure at the start and after each of ``marks`` parts of the training.

    ``seed``: of weights and batches.
    ``measures``: `of_function`, or `on_flipped`, which measures one thing more.
    """
    _, rows = measured(plan, measures(config=plan.config, **plan.task), marks=marks, seed=seed)
    steps, figures = plan.schedule.steps, (*FUNCTION, "flipped_labels")[: rows.shape[1]]
    return [
        {"steps": steps, "step": mark * steps // marks} | dict(zip(figures, row, strict=True))
        for mark, row in enumerate(rows.tolist())
    ]


@measurement(
    "sensitivity-budgets",
    "noisy labels of two rules, by three networks with equal steps: 1, 3 and 10 times the transformer's, and all along;"
    " once, of the sparse parity, by LSTMs that are told each bit's place, or a shuffled one",
    cells=[
        *(
            {"task": task, "network": network, "times": times}
            for task in WITH_FLIPS
            for network in RIVALS
            for times in TIMES
        ),
        *({"task": "sparse", "network": network, "times": 1} for network in LSTMS_TOLD),
    ],
    recipes=lambda scale: [
        *(equally_long(task, network, 1, scale) for task in WITH_FLIPS for network in RIVALS),
        *(equally_long("sparse", network, 1, scale) for network in LSTMS_TOLD),
    ],
    tolerance=0.15,
    because=DRIFT,
)
def labels_by_budget(seed: int, scale: str, task: str, network: str, times: int) -> list[Row]:
    """Train a network and measure it at the start and after each of so many parts of its training (`on_flipped`)."""
    return along(equally_long(task, network, times, scale), 3 if scale == "smoke" else MARKS, seed)


@measurement(
    "sensitivity-trap",
    "a random function of four noisy bits, by transformer and MLP with equal steps: the lesson's, and 3 times as many",
    cells=[{"network": network, "times": times} for network in WITHOUT_LSTM for times in (1, 3)],
    recipes=lambda scale: [equally_long("features", network, 1, scale) for network in WITHOUT_LSTM],
    tolerance=0.15,
    because=DRIFT,
)
def trap_by_budget(seed: int, scale: str, network: str, times: int) -> list[Row]:
    """Train a network on noisy bits and measure it at the start and after each of so many parts (`of_function`)."""
    plan = equally_long("features", network, times, scale)
    return along(plan, 3 if scale == "smoke" else MARKS, seed, of_function)


@measurement(
    "sensitivity-parity-of-40",
    "noisy labels of the parity of 4 of 40 bits, the published size, by a transformer and an MLP with equal steps",
    cells=[{"network": network} for network in WITHOUT_LSTM],
    recipes=lambda scale: [parity_of_40(network, scale) for network in WITHOUT_LSTM],
    tolerance=math.inf,
    because="it is measured on a GPU, where other batches are drawn",
    gpu=True,
)
def labels_at_published_size(seed: int, scale: str, network: str) -> list[Row]:
    """Train a network and measure it at the start and after each tenth of its training (`on_flipped`)."""
    return along(parity_of_40(network, scale), 10, seed)


@measurement(
    "sensitivity-robust",
    "trained on digits: accuracy under six corruptions, the Hessian's largest eigenvalue, the rise under noise",
    cells=[{"network": network} for network in ROBUST],
    recipes=lambda scale: [recipe(f"sensitivity-digits-{network}", scale) for network in ROBUST],
    tolerance=0.15,
    because="the eigenvalue of a trained network moves by a tenth with its rounding, and accuracies by some images",
)
def robust(seed: int, scale: str, network: str) -> list[Row]:
    """Train a network on digits and measure accuracy on images held out under each of the `CORRUPTIONS`, the Hessian's
    largest eigenvalue and the loss's rise under noise on the weights, both on 200 training images.
    """
    with seeded(seed):  # a loss may draw noise
        model, _ = recipe(f"sensitivity-digits-{network}", scale).train(seed=seed)
    images, labels = digits()
    x, y, held, asked = patches(images[:200]), labels[:200], images[TRAINED:], labels[TRAINED:]
    row = {kind: right(model, patches(corrupted(held, kind, generator=0)), asked).item() for kind in CORRUPTIONS}
    row["curvature"] = largest_curvature(lambda: fit(model, x, y), model, generator=0)
    return [row | {"rise": rise_under_noise(lambda: fit(model, x, y), model, SHAKEN, generator=0)}]


@measurement(
    "sensitivity-sharpness",
    "transformers trained on all strings of 3 to 5 bits: share right, loss, and its rise under noise on the weights",
    cells=[{"bits": n, "function": kind} for n in LENGTHS for kind in ("parity", "majority")],
    recipes=lambda scale: [
        recipe(f"sensitivity-{kind}-{n}", scale) for n in LENGTHS for kind in ("parity", "majority")
    ],
    seeds=range(10),
    tolerance=0.01,
    because="losses near 0 and their rises are compared as they are",
    quick=True,
)
def sharp(seed: int, scale: str, bits: int, function: str) -> list[Row]:
    """Train a transformer on all strings and measure the share right, the loss, and its rise under noise of `SHAKEN`
    on the weights.
    """
    model, _ = recipe(f"sensitivity-{function}-{bits}", scale).train(seed=seed)
    n = model.config.length
    x, labels = one_hot(cube(n), 2), truth_table(function, n)
    with torch.no_grad():
        loss = fit(model, x, labels).item()
    rise = rise_under_noise(lambda: fit(model, x, labels), model, SHAKEN, generator=seed)
    return [{"accuracy": right(model, x, labels).item(), "loss": loss, "rise": rise}]
