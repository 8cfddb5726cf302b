"""What decides lesson 04's verdicts and stands in a measured table is that table's."""

from functools import partial
from math import log2

import pytest
import torch
from stored_evidence import ADDITION, evidence, of_tables, seen

from companion.core.measuring import measured_table
from companion.lesson.claims import statements
from companion.topics.addition.fourier import peaks, spectrum
from companion.topics.addition.recipes import embeddings_from


def _cut(column, band, modules, removed, table):
    """What a table of lesson 04's cuts has of three models, in points."""
    found = measured_table(table).where(band=band, modules=modules, removed=removed).columns[column]
    return [100 * each for each in found]


def _minus(one, other):
    return [a - b for a, b in zip(one, other, strict=True)]


def _beyond(chance, column, band, modules, table):
    """How much larger a share is without waves than by chance, in points."""
    return [each - chance for each in _cut(column, band, modules, "waves", table)]


def _rather(band, one, other, table):
    """How many more of the right answers a band costs in one kind of module than in the other, in points."""
    return _minus(*(_cut("right", band, modules, "waves", table) for modules in (other, one)))


def _cost(band, table):
    """The right answers that a band costs in all modules, in points."""
    return _minus(*(_cut("right", each, "attn+mlp", "waves", table) for each in ("none", band)))


CUTS = {  # lesson 04's claims, in points: at operands up to 260, and by what follows the table's name up to 99
    "without-slow-waves": (partial(_beyond, 10, "tens", "slow", "mlp"), "-640"),
    "small-errors": (partial(_beyond, 2, "below_6", "fast", "attn"), ""),
    "slow-waves-needed": (partial(_cost, "slow"), None),
    "fast-waves-needed": (partial(_cost, "fast"), None),
    "mlp-low": (partial(_rather, "slow", "mlp", "attn"), "-640"),
    "attention-high": (partial(_rather, "fast", "attn", "mlp"), "-640"),
    "one-wave-parity": (partial(_beyond, 50, "parity", "not 2", "attn+mlp"), "-640"),
    "five-waves-suffice": (partial(_beyond, 0.2, "right", "not 5", "logits"), "-640"),
}
FEWER = {"small-errors": 3, "five-waves-suffice": 0.3}  # points more that chance has up to 99


@pytest.mark.parametrize("id", CUTS)
def test_the_seeds_of_lesson_04_are_of_the_tables_of_cuts(id):
    measure, size = CUTS[id]
    tables = ["addition-cuts-1600", *([] if size is None else [f"addition-cuts{size}"])]
    found = evidence(ADDITION, id, *tables)
    assert found.ours == pytest.approx(measure(tables[0]), abs=0.06)
    for other, table in zip(found.beside, tables[1:], strict=True):
        assert other.ours == pytest.approx([each - FEWER.get(id, 0) for each in measure(table)], abs=0.06)


@pytest.mark.parametrize("size", ["", "-640", "-1600"])
def test_the_adders_that_are_cut_add(size):
    assert min(_cut("right", "none", "attn+mlp", "waves", f"addition-cuts{size}")) >= 99


LEADS = ("addition-scores-260", "addition-scores-260-long", "addition-scores", "addition-transplants")


@pytest.mark.parametrize(("place", "to"), [(0, "-260"), (1, "")])
def test_the_lead_of_counting_is_of_the_tables_of_scores(place, to):
    counting = measured_table(f"addition-scores{to}").where(adder=f"addition{to}-counting").columns["exact"]
    long = to and "-long"
    scratch = measured_table(f"addition-scores{to}{long}").where(adder=f"addition{to}-scratch{long}").columns["exact"]
    leads = [100 * (ours - other) for ours, other in zip(counting, scratch, strict=True)]
    found = evidence(ADDITION, "counting-helps", *LEADS)
    assert (found, *found.beside)[place].ours == pytest.approx(leads, abs=0.06 if not to else 0.01)


def test_the_lead_of_glove_is_of_the_tables_of_transplants_and_of_scores():
    scratch = measured_table("addition-scores").where(adder="addition-scratch").columns["exact"]
    glove = measured_table("addition-transplants").where(vectors="glove", times=1).columns["right"]
    leads = [100 * (ours - other) for ours, other in zip(glove, scratch, strict=True)]
    found = evidence(ADDITION, "counting-helps", *LEADS)
    assert found.beside[1].ours == pytest.approx(leads, abs=0.06)


def test_the_near_errors_of_lesson_04_are_of_the_table_of_scores():
    rows = measured_table("addition-scores-260-long").rows
    near = [(row["within_2"] - row["exact"]) / (1 - row["exact"]) - 4 / 520 for row in rows]  # 4 wrong answers of 520
    found = evidence(ADDITION, "scratch-errors-are-near", "addition-scores-260-long")
    assert found.ours == pytest.approx(near, abs=1e-3)


def test_the_peaks_of_lesson_04_are_of_the_table_from_scratch():
    rows = measured_table("addition-from-scratch").where(step=4500).rows
    scratch = [max(peaks(torch.tensor([row[f"wave_{k}"] for k in range(1, 101)]), 199)) for row in rows]
    at_10, at_5, _, at_2_5, _ = peaks(spectrum(embeddings_from("counting", 199, 128)), 199)
    leads = [min(at_10, at_5, at_2_5) - peak for peak in scratch]
    assert evidence(ADDITION, "fourier-features", "addition-from-scratch").ours == pytest.approx(leads, abs=2e-3)


def test_the_peaks_of_modules_are_of_their_table():
    table = measured_table("addition-module-peaks")

    def largest(adder, times, seed):
        rows = table.where(adder=adder, times=times, seed=seed).rows
        return max(row["peak"] for row in rows if row["period"] in (10, 5, 2.5, 2))

    def lead(times, seed):
        return log2(largest("counting", times, seed) / largest("scratch", times, seed))

    found = evidence(ADDITION, "peaks-come-with-the-vectors", "addition-module-peaks")
    assert found.ours == pytest.approx([lead(3, seed) - lead(0, seed) for seed in range(3)], abs=6e-3)


@pytest.mark.parametrize(
    ("id", "tables"),
    [
        ("real-peaks", [("glove", 1000), ("glove", 521), ("minilm", 341)]),
        ("frequency-peaks", [("frequency", 1000)]),
    ],
)
def test_the_peaks_of_real_vectors_are_of_the_table_of_spectra(id, tables):
    found = evidence(ADDITION, id, "addition-spectra")
    for size, (vectors, numbers) in zip((found, *found.beside), tables, strict=True):
        rows = measured_table("addition-spectra").where(vectors=vectors, numbers=numbers).rows
        least = min((row for row in rows if row["period"] in (10, 5, 2)), key=lambda row: row["peak"])
        assert size.ours == pytest.approx([log2(least["peak"])], abs=2e-3)
        assert size.interval == pytest.approx([log2(least["low"]), log2(least["high"])], abs=2e-3)


NO_COUNTING = {"scratch-errors-are-near", "real-peaks", "frequency-peaks"}


def test_every_evidence_on_counting_vectors_says_that_they_stand_in():
    judged = {id: each.evidence for id, each in statements(ADDITION).items() if each.evidence}
    words = "vectors from a text that counts for those of GPT-2"
    on_counting = {
        id
        for id, found in judged.items()
        if all(words in each.stand_in for each in (found, *found.beside) if "GloVe" not in each.of)
    }
    assert on_counting == set(judged) - NO_COUNTING


@pytest.mark.parametrize(("lesson", "id", "field"), of_tables(lambda lesson: lesson == ADDITION))
def test_an_invented_figure_of_a_table_is_seen(lesson, id, field, monkeypatch):
    assert seen(globals(), lesson, id, field, monkeypatch), "no test compares it with its table"
