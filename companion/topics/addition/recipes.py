"""Recipes of lesson 04: adders that differ in where their number embeddings come from.

Published setting (Zhou et al. 2024, arXiv:2406.03445): GPT-2-XL, 48 layers, fine-tuned on sums of operands up to 260,
against the same from scratch. Ours is what a CPU affords: a few layers, number embeddings from a text that counts in
place of pre-training, 80 % of the pairs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.core.recipe import Recipe, recipe, register
from companion.core.training import Schedule
from companion.topics.addition.baselines import fourier_embeddings, narrowed, ppmi_embeddings, with_rms
from companion.topics.addition.data import STEPS, batch_of, cooccurrences, counting, sums
from companion.topics.addition.fourier import band_filter, high_waves, longest_period, low_waves
from companion.topics.addition.model import Adder, AdderConfig
from companion.topics.addition.probes import filtered, read_out

Source = Literal["scratch", "random", "counting", "by-one", "skipping", "cosines"]
SKIPS = {"counting": STEPS, "by-one": {1: 1.0}, "skipping": {2: 1 / 3, 5: 1 / 3, 10: 1 / 3}}
SOURCES = ("scratch", "random", *SKIPS, "cosines")


def embeddings_from(
    source: Source, numbers: int, width: int, *, rms: float = 0.1, power: float = 0.5, lines: int = 200_000
) -> Float[Tensor, "numbers width"]:
    """Embeddings of the numbers 0 .. numbers - 1, in float64, scaled to ``rms``: 'random'; 'cosines' of five periods;
    or from a text that counts by 1, 2, 5 and 10 ('counting'), by 1 alone ('by-one'), or by 2, 5 and 10 ('skipping'),
    its singular values to a ``power``.

    ``source``: where they come from.
    ``numbers``, ``width``: the size of the table.
    ``rms``: the root mean square of its entries.
    ``power``: of the singular values; above 1/2, strong directions count for more.
    ``lines``: how long the text is.

    Raises ValueError for another source.
    """
    if source not in (*SKIPS, "random", "cosines"):
        raise ValueError(f"source = {source!r}: must be one of {', '.join(SOURCES[1:])}")
    if source == "random":
        table = torch.randn(numbers, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    elif source == "cosines":
        table = fourier_embeddings(numbers, width)
    else:
        found = _counted(source, numbers, lines)
        table = F.pad(ppmi_embeddings(found, min(width, numbers), power=power), (0, max(0, width - numbers)))
    return with_rms(table, rms)


@cache
def _counted(source: Source, numbers: int, lines: int) -> Float[Tensor, "numbers numbers"]:
    """How often two numbers stand near each other in the text of ``source``, which is read once in a process."""
    return cooccurrences(counting(lines, numbers, steps=SKIPS[source]), numbers)


def answer_loss(model, operands, answers):
    """Cross-entropy of the right answer, the mean over problems: ``operands`` (batch, 2), ``answers`` (batch,)."""
    return F.cross_entropy(model(operands), answers)


def training_sums(config: AdderConfig):
    """Sums that are for training, with replacement: a function of (batch, generator) to operands and answers."""
    training, _ = sums(config.numbers)

    def draw(batch, generator):
        return tuple(batch_of(training, batch, generator))

    return draw


def ablations(problems: int) -> Callable[[Adder], None]:
    """What a filtered adder's rounded weights must still do well: ``problems`` sums for training, as the adder is, and
    with the slow or the fast waves taken from attention, from MLPs, and from both.
    """

    def calibrate(adder: Adder) -> None:
        training, _ = sums(adder.config.numbers)
        order = torch.randperm(len(training.operands), generator=torch.Generator().manual_seed(3))
        operands, read, n = training.operands[order[:problems]], read_out(adder), adder.config.answers
        cut = round(longest_period(n) / 2 * 50 / 260)
        adder(operands)
        bands = [band_filter(read, waves) for waves in (low_waves(n, cut), high_waves(n, cut))]
        for band, parts in product(bands, (["attention"], ["mlp"], ["attention", "mlp"])):
            with filtered(adder, **dict.fromkeys(parts, band)):
                adder(operands)

    return calibrate


def _adder(
    name: str,
    about: str,
    course: tuple[int, int, int, Schedule],
    *,
    source: Source = "counting",
    rms: float = 0.1,
    power: float = 0.5,
    frozen: bool | None = None,
    smoke_steps: int = 60,
    calibrate: Callable[[Adder], None] | None = None,
    stored: torch.dtype | None = None,
) -> None:
    """Register adders whose number embeddings come from ``source``, with ``rms`` and ``power`` as for
    `embeddings_from`, ``calibrate`` and ``stored`` as for `register`. They are ``frozen``, or trained along: unless
    told, only those from scratch are. ``course`` is (numbers, width, layers, schedule); a text that counts by tens
    needs more than 110 answers, so smoke has 60 numbers, and ``smoke_steps``; paper has the width of GPT-2-XL and a
    fourth of its layers.
    """
    keeps = source != "scratch" if frozen is None else frozen

    def config(numbers: int, width: int, layers: int) -> AdderConfig:
        return AdderConfig(numbers, width, layers, heads=4, frozen=keeps)

    def model(config: AdderConfig) -> Adder:
        if source == "scratch":
            return Adder(config, None)
        return Adder(config, embeddings_from(source, config.answers, config.width, rms=rms, power=power))

    *size, schedule = course
    register(
        name,
        about,
        model=model,
        sampler=training_sums,
        loss=answer_loss,
        smoke=(
            config(60, 128, 1),
            Schedule(steps=smoke_steps, batch=64, lr=1e-2, warmup=5, precision=schedule.precision),
        ),
        course=(config(*size), schedule),
        paper=(config(261, 1600, 12), Schedule(steps=20_000, batch=1024, lr=3e-4, warmup=500)),
        calibrate=calibrate,
        stored=stored,
    )


RMS = (0.03, 0.3, 1.0)  # beside 0.1, the others' choice
FACTORS = tuple(product(("random", "counting"), (0.02, 0.1), ("trained", "frozen")))  # content, rms, what becomes of it
LIVE = Schedule(steps=450, batch=256, lr=1e-3, warmup=45)
_adder(
    "addition",
    "operands up to 260 on counting embeddings (lesson 04)",
    (261, 128, 2, Schedule(3000, 256, 1e-3)),
    rms=0.3,
    stored=torch.int8,
)
_adder(
    "addition-filters",
    "operands up to 99, with a width that leaves room for filters in logit space (lesson 04)",
    (100, 256, 4, Schedule(360, 256, 1e-3, warmup=60)),
    calibrate=ablations(1500),
)
_adder(
    "addition-filters-640",
    "operands up to 99, with three channels for each answer, as in GPT-2-XL (lesson 04)",
    (100, 640, 4, Schedule(360, 256, 1e-3, warmup=60, precision="bfloat16")),
)
_adder(  # minutes of a GPU, hours of a CPU
    "addition-filters-1600",
    "operands up to 260, with three channels for each answer, as in GPT-2-XL (lesson 04)",
    (261, 1600, 4, Schedule(1500, 256, 2e-4, precision="bfloat16")),
    rms=1.0,
    power=0.75,
)
for _name, _steps in (("counting", 1500), ("scratch", 6000), ("scratch-long", 30_000)):
    _source = _name.removesuffix("-long")
    _adder(
        f"addition-260-{_name}",
        f"operands up to 260, embeddings: {_source}, {_steps} steps (lesson 04)",
        (261, 128, 2, Schedule(_steps, 128, 1e-3, precision="bfloat16")),
        source=_source,
        rms=0.3,
    )
for _source in SOURCES:
    _adder(
        f"addition-{_source}",
        f"operands up to 99, embeddings: {_source} (lesson 04)",
        (100, 128, 2, LIVE),
        source=_source,
        stored=torch.int8,
    )
for _rms in RMS:
    _adder(
        f"addition-rms-{_rms}",
        f"operands up to 99, counting embeddings of rms {_rms} (lesson 04)",
        (100, 128, 2, LIVE),
        rms=_rms,
    )
for _content, _rms, _fate in FACTORS:
    _adder(
        f"addition-factors-{_content}-{_rms}-{_fate}",
        f"operands up to 99, embeddings: {_content}, rms {_rms}, {_fate} (lesson 04)",
        (100, 128, 2, LIVE),
        source=_content,
        rms=_rms,
        frozen=_fate == "frozen",
        smoke_steps=120,  # short vectors that stay as they are let the loss fall slowly
    )
_adder(
    "addition-scratch-long",
    "operands up to 99, embeddings from scratch, ten times as long (lesson 04)",
    (100, 128, 2, replace(LIVE, steps=4500)),
    source="scratch",
)


def transplanted(embeddings: Float[Tensor, "numbers given"], scale: str = "course", *, rms: float = 0.1) -> Recipe:
    """The recipe ``addition-counting`` with the number embeddings of another model, frozen: the transplant of Zhou et
    al. (2024), section 4.2, who put those of a pretrained GPT-2 into a fresh one.

    Departures: they are brought to the adder's width (`narrowed`) and to ``rms``, and the adder has two layers.

    ``embeddings``: of the numbers 0, 1, .., at least as many as there are answers.
    ``scale``: of the recipe.
    ``rms``: the root mean square of the entries.

    Raises ValueError for fewer embeddings than answers.
    """
    plan = recipe("addition-counting", scale)
    config = plan.config
    if len(embeddings) < config.answers:
        raise ValueError(
            f"embeddings: has {len(embeddings)} rows; must have {config.answers}, one for each answer at scale {scale}"
        )
    table = with_rms(narrowed(embeddings[: config.answers], config.width), rms)
    return replace(plan, name="addition-transplanted", make=lambda config: Adder(config, table))
