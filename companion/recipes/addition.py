"""Recipes of lesson 04: adders that differ in where their number embeddings come from.

Published setting (Zhou et al. 2024, arXiv:2406.03445): GPT-2-XL, 48 layers, fine-tuned on sums of operands up to 260, against the same from
scratch. Ours is what a CPU affords: a few layers, number embeddings from a text that counts in place of pre-training, 80 % of the pairs.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.baselines.addition import fourier_embeddings, ppmi_embeddings, with_rms
from companion.models.addition import Adder, AdderConfig
from companion.recipes import Recipe
from companion.samplers.addition import STEPS, batch_of, cooccurrences, counting, sums
from companion.training import Schedule

Source = Literal["scratch", "random", "counting", "by-one", "skipping", "cosines"]
SKIPS = {"counting": STEPS, "by-one": {1: 1.0}, "skipping": {2: 1 / 3, 5: 1 / 3, 10: 1 / 3}}
SOURCES = ("scratch", "random", *SKIPS, "cosines")


def embeddings_from(
    source: Source, numbers: int, width: int, *, rms: float = 0.1, power: float = 0.5, lines: int = 200_000
) -> Float[Tensor, "numbers width"]:
    """Embeddings of the numbers 0 .. numbers - 1, in float64, scaled to ``rms``: 'random'; 'cosines' of five periods; or from a text that
    counts by 1, 2, 5 and 10 ('counting'), by 1 alone ('by-one'), or by 2, 5 and 10 ('skipping'), its singular values to a ``power``.

    Raises ValueError for another source.
    """
    if source not in (*SKIPS, "random", "cosines"):
        raise ValueError(f"source = {source!r}: must be one of {', '.join(SOURCES[1:])}")
    if source == "random":
        table = torch.randn(numbers, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    elif source == "cosines":
        table = fourier_embeddings(numbers, width)
    else:
        found = cooccurrences(counting(lines, numbers, steps=SKIPS[source]), numbers)
        table = F.pad(ppmi_embeddings(found, min(width, numbers), power=power), (0, max(0, width - numbers)))
    return with_rms(table, rms)


def cross_entropy(model, operands, answers):
    """Mean over problems."""
    return F.cross_entropy(model(operands), answers)


def _scales(
    name: str, source: Source, about: str, course: tuple[int, int, int, Schedule], *, rms: float = 0.1, power: float = 0.5
) -> dict[str, Recipe]:
    """Sizes are (numbers, width, layers); a text that counts by tens needs more than 110 answers, so smoke has 60 numbers."""
    sizes = {
        "smoke": (60, 128, 1, Schedule(steps=60, batch=64, lr=1e-2, warmup=5, bfloat16=course[3].bfloat16)),
        "course": course,
        "paper": (261, 768, 12, Schedule(steps=20_000, batch=1024, lr=3e-4, warmup=500)),
    }
    return {scale: _recipe(name, scale, source, *size, rms=rms, power=power, about=about) for scale, size in sizes.items()}


def _recipe(
    name: str,
    scale: str,
    source: Source,
    numbers: int,
    width: int,
    layers: int,
    schedule: Schedule,
    *,
    rms: float,
    power: float,
    about: str,
):
    config = AdderConfig(numbers, width, layers, heads=4, frozen=source != "scratch")
    training, _ = sums(numbers)

    def build():
        return Adder(config, None if source == "scratch" else embeddings_from(source, config.answers, width, rms=rms, power=power))

    def draw(batch, generator):
        return tuple(batch_of(training, batch, generator))

    return Recipe(name, scale, build, draw, cross_entropy, schedule, about)


RMS = (0.03, 0.3, 1.0)  # beside 0.1, the others' choice
LIVE = Schedule(steps=450, batch=256, lr=1e-3, warmup=45)
RECIPES = (
    {
        "addition": _scales(
            "addition",
            "counting",
            "operands up to 260 on counting embeddings (lesson 04)",
            (261, 128, 2, Schedule(3000, 256, 1e-3)),
            rms=0.3,
        ),
        "addition-filters": _scales(
            "addition-filters",
            "counting",
            "operands up to 99, with a width that leaves room for filters in logit space (lesson 04)",
            (100, 256, 4, Schedule(360, 256, 1e-3, warmup=60)),
        ),
        "addition-wide": _scales(
            "addition-wide",
            "counting",
            "operands up to 260, with a width that leaves room for filters in logit space (lesson 04)",
            (261, 528, 4, Schedule(2000, 128, 5e-4, bfloat16=True)),
            rms=1.0,
            power=0.75,
        ),
    }
    | {
        f"addition-{source}": _scales(
            f"addition-{source}", source, f"operands up to 99, embeddings: {source} (lesson 04)", (100, 128, 2, LIVE)
        )
        for source in SOURCES
    }
    | {
        f"addition-rms-{rms}": _scales(
            f"addition-rms-{rms}",
            "counting",
            f"operands up to 99, counting embeddings of rms {rms} (lesson 04)",
            (100, 128, 2, LIVE),
            rms=rms,
        )
        for rms in RMS
    }
)
