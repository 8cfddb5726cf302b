"""What lesson 04 shows of adders that it does not look into: how many sums they get right with other embeddings, or
trained for longer, and which errors they make without slow or fast waves; and how vectors that others trained for
numbers differ from those that count.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.checkpoints import shipped, weights_path
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.core.training import pick_device
from companion.topics.addition.data import embedded_numbers, embedded_rows, sums
from companion.topics.addition.fourier import (
    band_filter,
    basis,
    high_waves,
    longest_period,
    low_waves,
    peaks,
    spectrum,
)
from companion.topics.addition.model import Adder
from companion.topics.addition.probes import accuracies, contributions, filtered, modular_probe, read_out
from companion.topics.addition.recipes import FACTORS, RMS, SOURCES, embeddings_from, transplanted

OTHERS = [f"addition-{source}" for source in SOURCES if source not in ("scratch", "counting")]
OTHERS += [f"addition-rms-{rms}" for rms in RMS]
TABLES = {"counting": (199, 521), "glove": (199, 521, 1000), "minilm": (199, 341), "frequency": (199, 521, 1000)}
OF_NUMBERS = [{"vectors": vectors, "numbers": numbers} for vectors, sizes in TABLES.items() for numbers in sizes]
SHUFFLES = 100
CUT = 2000  # sums, at most, that adders are asked for while projections take directions away


def followed(name: str, scale: str = "course", *, parts: int = 1, seed: int = 0) -> Float[Tensor, "readings columns"]:
    """Train a recipe and read it at the start and after each of so many equal ``parts`` of its steps: the loss of the
    batch before (at the start, of the first), the share of the pairs not trained on that it adds, and the `spectrum` of
    its number embeddings.

    ``name``, ``scale``: of the recipe.
    ``parts``: how many; they must divide the steps.
    ``seed``: of weights and batches.

    Raises ValueError for another number of parts.
    """
    plan = recipe(name, scale)
    if parts < 1 or plan.schedule.steps % parts:
        raise ValueError(f"parts = {parts!r}: must be at least 1 and divide the {plan.schedule.steps} steps")
    every = plan.schedule.steps // parts

    @torch.no_grad()
    def reading(adder: Adder) -> Tensor:
        _, testing = sums(adder.config.numbers)
        right = accuracies(adder(testing.operands), testing.answers).exact
        return torch.tensor([right, *spectrum(adder.numbers.double())], dtype=torch.float64)

    adder, history = plan.train(seed=seed, each=reading, every=every)
    losses = torch.tensor([history.losses[0], *history.losses[every - 1 :: every]], dtype=torch.float64)
    return torch.cat([losses[:, None], torch.stack([*history.looks, reading(adder)])], dim=1)


@measurement(
    "addition-factors",
    "unseen sums that are right after 450 steps, by what embeddings say, how long they are and what becomes of them",
    cells=[dict(zip(("content", "rms", "fate"), kind, strict=True)) for kind in FACTORS],
    recipes=lambda scale: [recipe("addition-factors-{}-{}-{}".format(*kind), scale) for kind in FACTORS],
    tolerance=0.05,
    because="a run ends in the middle of learning, where another machine's rounding moves it by some sums",
)
def by_factors(seed: int, scale: str, content: str, rms: float, fate: str) -> list[Row]:
    """Measure the share of unseen sums that an adder gets right at the end of its training."""
    return [{"right": followed(f"addition-factors-{content}-{rms}-{fate}", scale, seed=seed)[-1, 1].item()}]


@measurement(
    "addition-from-scratch",
    "an adder from scratch while it trains ten times as long: loss, unseen sums, and how large each wave is",
    recipes=lambda scale: [recipe("addition-scratch-long", scale)],
    tolerance=0.05,
    because="losses below a hundredth are the chance of single batches, and runs drift apart by rounding",
)
def from_scratch(seed: int, scale: str) -> list[Row]:
    """Measure, at the start and after each tenth of the steps, the last loss, the share of unseen sums, and waves."""
    every = recipe("addition-scratch-long", scale).schedule.steps // 10
    readings = followed("addition-scratch-long", scale, parts=10, seed=seed).tolist()
    return [
        {"step": part * every, "loss": loss, "right": right} | {f"wave_{k}": size for k, size in enumerate(waves, 1)}
        for part, (loss, right, *waves) in enumerate(readings)
    ]


def _adders(*names: str) -> dict[str, Any]:
    """What `measurement` wants to know of a table with a model of each of these recipes."""
    return {
        "cells": [{"adder": name} for name in names],
        "recipes": lambda scale: [recipe(name, scale) for name in names],
    }


def trained(name: str, scale: str, seed: int) -> Adder:
    """Train an adder of this recipe and return it on the CPU."""
    adder, _ = recipe(name, scale).train(seed=seed)
    return adder.cpu().eval()


@measurement(
    "addition-scores",
    "shares of unseen sums right, from scratch and on counting embeddings (lesson 04)",
    tolerance=0.05,
    because="another machine rounds otherwise, which moves a model from scratch by some sums",
    **_adders("addition-scratch", "addition-counting"),
)
@measurement(
    "addition-scores-260",
    "the same with operands up to 260, from scratch after four times as many steps (lesson 04)",
    tolerance=0.1,
    because="another machine rounds otherwise, which moves a model from scratch by some hundreds of sums",
    **_adders("addition-260-counting", "addition-260-scratch"),
)
@measurement(
    "addition-scores-260-long",
    "the same from scratch, five times as long (lesson 04)",
    tolerance=0.1,
    because="another machine draws other batches, which moves a model by some sums",
    gpu=True,
    **_adders("addition-260-scratch-long"),
)
@measurement(
    "addition-scores-others",
    "shares of unseen sums right, on other embeddings and at other lengths (lesson 04)",
    tolerance=0.05,
    because="another machine rounds otherwise, which moves a model that is not done by some sums",
    seeds=[0],
    **_adders(*OTHERS),
)
def addition_scores(seed: int, scale: str, adder: str) -> list[Row]:
    """Return the shares of all sums that a trained adder was not trained on which it gets right, within 2, within 10,
    and wrong by a multiple of 10.
    """
    model = trained(adder, scale, seed)
    _, testing = sums(model.config.numbers)
    with torch.no_grad():
        off = (model(testing.operands).argmax(-1) - testing.answers).abs()
    names = {
        "exact": off == 0,
        "within_2": off <= 2,
        "within_10": off <= 10,
        "off_by_tens": (off > 0) & (off % 10 == 0),
    }
    return [{name: found.double().mean().item() for name, found in names.items()}]


@measurement(
    "addition-cuts",
    "right answers and kinds of errors of the shipped adders without bands of waves, beside two controls (lesson 04)",
    tolerance=0.05,
    because="an answer turns where two logits are nearly the same, and another machine rounds otherwise",
    **_adders("addition-filters"),
)
@measurement(
    "addition-cuts-640",
    "the same of adders with three channels for each answer, as in GPT-2-XL (lesson 04)",
    tolerance=0.3,
    because="another machine trains another adder, as another seed does",
    **_adders("addition-filters-640"),
)
@measurement(
    "addition-cuts-1600",
    "the same with operands up to 260 (lesson 04)",
    tolerance=0.3,
    because="another machine trains another adder, as another seed does",
    gpu=True,
    **_adders("addition-filters-1600"),
)
def addition_cuts(seed: int, scale: str, adder: str) -> list[Row]:
    """Measure an adder while projections take directions from what attention, MLPs or both write: those of slow waves,
    of fast ones, and of all but period 2 (Zhou et al. 2024, section 3.3 and appendix B); and how right it is if
    five waves of each sum's last logits are kept (figure 4b). On a GPU where there is one: the widest takes hours else.

    ``removed`` is "waves", or as many random directions, any of the "stream" or of those that the "logits" see; of the
    last logits, all but the strongest "waves", or all but "random" ones. The figures, over the sums that were held out,
    at most `CUT` of them, each eighth with a draw of its own, are the fractions of answers right and of parities right,
    and of the errors below 6 and that are multiples of 10.
    """
    there = weights_path(adder, scale, seed).is_file()  # an adder without weights is trained
    device = pick_device()
    model = (shipped(adder, scale, seed)[0] if there else trained(adder, scale, seed)).to(device)
    _, testing = sums(model.config.numbers)
    generator = torch.Generator().manual_seed(seed)
    eighths = torch.randperm(len(testing.answers), generator=generator)[:CUT].tensor_split(8)
    read, n, width = read_out(model), model.config.answers, model.config.width
    cut = round(longest_period(n) / 2 * 50 / 260)  # the first fifth, as published
    bands = {"slow": low_waves(n, cut), "fast": high_waves(n, cut), "not 2": range(1, longest_period(n) // 2)}
    spaces = {"stream": torch.eye(width), "logits": torch.linalg.svd(read, full_matrices=False).Vh.mT.cpu()}

    def row(band: str, modules: str, removed: str, answers: Callable[[Tensor], Tensor]) -> Row:
        off = torch.cat([answers(testing.operands[part].to(device)).cpu() - testing.answers[part] for part in eighths])
        wrong = off[off != 0]
        kinds = {"right": off == 0, "parity": off % 2 == 0, "below_6": wrong.abs() < 6, "tens": wrong % 10 == 0}
        shares = {name: found.double().mean().item() for name, found in kinds.items()}
        return {"band": band, "modules": modules, "removed": removed} | shares

    rows = [row("none", "attn+mlp", "waves", lambda operands: _answers_through(model, operands))]
    for band, modules in (*product(("slow", "fast"), ("attn", "mlp", "attn+mlp")), ("not 2", "attn+mlp")):
        keep = band_filter(read, bands[band])
        lost = width - round(keep.trace().item())

        def without(operands: Tensor, space: Tensor, lost: int = lost, modules: str = modules) -> Tensor:
            Q = space @ torch.linalg.qr(torch.randn(space.shape[1], lost, generator=generator)).Q
            return _answers_through(model, operands, modules, (torch.eye(width) - Q @ Q.mT).to(device))

        rows.append(row(band, modules, "waves", partial(_answers_through, model, modules=modules, keep=keep)))
        rows += [row(band, modules, name, partial(without, space=space)) for name, space in spaces.items()]

    def of_five(operands: Tensor, rank: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.no_grad():
            logits = model(operands).double().cpu()
        kept = [basis(n, 1 + rank(spectrum(each[:, None]))[:5]) for each in logits]
        return torch.stack([(each @ five.mT @ five).argmax() for each, five in zip(logits, kept, strict=True)])

    ranks = {
        "waves": partial(torch.argsort, descending=True),
        "random": lambda sizes: torch.randperm(len(sizes), generator=generator),
    }
    return rows + [row("not 5", "logits", name, partial(of_five, rank=rank)) for name, rank in ranks.items()]


@torch.no_grad()
def _answers_through(
    adder: Adder,
    operands: Int[Tensor, "problems two"],
    modules: str = "",
    keep: Float[Tensor, "width width"] | None = None,
) -> Int[Tensor, "problems"]:
    """The answers if what these modules write goes through a projection."""
    attention, mlp = (keep if kind in modules else None for kind in ("attn", "mlp"))
    with filtered(adder, attention=attention, mlp=mlp):
        return adder(operands).argmax(-1)


def vectors_of(name: str, numbers: int) -> Float[Tensor, "numbers channels"]:
    """Return the vectors of 0 .. numbers - 1, centred: "counting", as lesson 04's adders have them; one of
    `embedded_numbers`; or in one channel "frequency", minus the logarithm of a number's rank among GloVe's words, which
    by Zipf's law is about the logarithm of how often it is written.
    """
    if name == "counting":
        table = embeddings_from("counting", numbers, 128)
    elif name == "frequency":
        table = -(1 + embedded_rows("glove")[:numbers, None].double()).log()
    else:
        table = embedded_numbers(name)[:numbers].double()
    return table - table.mean(0)


def _in_random_order(table: Float[Tensor, "numbers channels"], seed: int) -> Float[Tensor, "numbers channels"]:
    return table[torch.randperm(len(table), generator=torch.Generator().manual_seed(seed))]


@measurement(
    "addition-spectra",
    "how far waves of period 10, 5, 3.3, 2.5 and 2 stand out in vectors of numbers that count and that others trained",
    cells=OF_NUMBERS,
    seeds=[0],
    quick=True,
    tolerance=0.02,
    because="singular vectors of nearly the same size are turned by rounding",
)
def spectra(seed: int, scale: str, vectors: str, numbers: int) -> list[Row]:  # noqa: ARG001 - the same at every scale
    """Return of each of these waves its size in the `spectrum` over what it is on average in shuffled tables, with the
    interval that 95 of 100 of these leave, and as much of its neighbours, the median of three on either side.
    """
    table = vectors_of(vectors, numbers)
    sizes = spectrum(table)
    shuffled = torch.stack([spectrum(_in_random_order(table, seed + shuffle)) for shuffle in range(SHUFFLES)])
    low, high = shuffled.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64), dim=0)
    ratios, rows = sizes / shuffled.mean(0), []
    for fifth in range(1, 6):
        place = longest_period(numbers) // 10 * fifth - 1
        beside = torch.cat([ratios[max(0, place - 3) : place], ratios[place + 1 : place + 4]]).median()
        found = {"peak": ratios[place], "low": sizes[place] / high[place], "high": sizes[place] / low[place]}
        rows.append(
            {"period": 10 / fifth} | {name: value.item() for name, value in (found | {"neighbours": beside}).items()}
        )
    return rows


MODULES = ("attention 1", "MLP 1", "attention 2", "MLP 2")  # of lesson 04's adders


PEAKS = {
    "tolerance": 0.5,
    "because": "how far a model has come at the end of its training depends on rounding",
    "recipes": lambda scale: [recipe(f"addition-{adder}", scale) for adder in ("scratch", "counting")],
}


@measurement(
    "addition-module-peaks",
    "how far waves of period 10, 5, 3.3, 2.5 and 2 stand out in each module's logits, untrained and after 450 and "
    "1,350 steps, on counting embeddings and from scratch",
    cells=[{"adder": adder, "times": times} for times in (0, 1, 3) for adder in ("counting", "scratch")],
    **PEAKS,
)
@measurement(
    "addition-module-peaks-long",
    "the same from scratch after 4,500 steps",
    cells=[{"adder": "scratch", "times": 10}],
    seeds=[0],
    **PEAKS,
)
def module_peaks(seed: int, scale: str, adder: str, times: int) -> list[Row]:
    """Measure in each module of an adder, trained so many ``times`` as long as in the lesson, the `peaks` of what it
    adds to the logits of all sums that were not trained on; one row for each period.
    """
    plan = recipe(f"addition-{adder}", scale)
    model = plan.longer(times).train(seed=seed)[0] if times else plan.model(seed)
    _, testing = sums(model.config.numbers)
    with torch.no_grad():
        added_by = contributions(model.eval(), testing.operands)[1:]
    rows = []
    for module, added in zip(MODULES, added_by, strict=False):
        found = peaks(spectrum(added.mT.double()), added.shape[-1])
        rows += [{"module": module, "period": 10 / k, "peak": peak} for k, peak in enumerate(found, 1)]
    return rows


@measurement(
    "addition-residues",
    "how often a linear map of a number's vector names its residue, of vectors that count and that others trained",
    cells=OF_NUMBERS,
    seeds=range(5),
    quick=True,
    tolerance=0.05,
    because="singular vectors of nearly the same size are turned by rounding, which turns a residue here and there",
)
def residues(seed: int, scale: str, vectors: str, numbers: int) -> list[Row]:  # noqa: ARG001 - the same at every scale
    """Measure the share of residues that are right in numbers that the map was not fitted on (`modular_probe`), and the
    same of the table in random order; a seed is a division into folds, and an order.
    """
    table = vectors_of(vectors, numbers)
    shuffled = _in_random_order(table, seed)
    return [
        {
            "modulus": modulus,
            "right": modular_probe(table, modulus, generator=seed),
            "shuffled": modular_probe(shuffled, modulus, generator=seed),
        }
        for modulus in (2, 5, 10, 3, 7)
    ]


TRANSPLANTS = [("glove", 1), ("glove shuffled", 1), ("glove centred", 1), ("minilm", 1), ("glove", 3)]


def _transplants(*kinds: tuple[str, int]) -> dict[str, Any]:
    """What `measurement` wants to know of a table of `transplants`."""
    return {
        "cells": [{"vectors": vectors, "times": times} for vectors, times in kinds],
        "recipes": lambda scale: [recipe("addition-counting", scale).longer(times) for _, times in kinds],
        "tolerance": 0.05,
        "because": "another machine rounds otherwise, which moves a model that is not done by some sums",
    }


@measurement(
    "addition-transplants",
    "unseen sums right on frozen vectors that others trained, beside the same in random order, and centred (lesson 04)",
    **_transplants(*TRANSPLANTS),
)
@measurement(
    "addition-transplants-long",
    "the same of GloVe's vectors, after ten times as many steps, and in random order after three times (lesson 04)",
    seeds=[0],
    **_transplants(("glove", 10), ("glove shuffled", 3)),
)
def transplants(seed: int, scale: str, vectors: str, times: int) -> list[Row]:
    """Measure an adder that is trained on vectors which are brought to its width and length, and stay as they are
    (`transplanted`): the share of unseen sums, and of the sums for training, that it gets right at the end.
    """
    name, _, change = vectors.partition(" ")
    table = embedded_numbers(name)[: recipe("addition-counting", scale).config.answers]
    table = {"": table, "centred": table - table.mean(0), "shuffled": _in_random_order(table, seed)}[change]
    plan = transplanted(table, scale).longer(times)
    adder, _ = plan.train(seed=seed)
    training, testing = sums(plan.config.numbers)
    with torch.no_grad():
        right, fitted = (accuracies(adder(side.operands), side.answers).exact for side in (testing, training))
    return [{"steps": plan.schedule.steps, "right": right, "fitted": fitted}]
