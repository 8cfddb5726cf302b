"""The table of what runs measured: a run takes the place of the one before, and another seed adds its own networks."""

from companion.lesson.claims import statements
from companion.workshop.cli.evidence import add, table_of_runs

LESSON = "01-attention-basics"
SEEDS, CONSTRUCTION = "keys-carry-it", "trigram"  # an experiment of three seeds, a theorem


def entry(seed: int, **numbers: dict) -> dict:
    measured = {SEEDS: {"ours": [0.5 + seed]}, CONSTRUCTION: {"exact": [1.0], "fails": [0.0]}}
    return {"lesson": LESSON, "seed": seed, "evidence": measured | numbers}


def rows(root):
    return {(row["claim"], row["seed"]): (row["ours"], row["exact"], row["fails"]) for row in table_of_runs(root)}


def test_a_run_takes_the_place_of_the_one_before(tmp_path):
    (tmp_path / "tests/measured").mkdir(parents=True)
    assert table_of_runs(tmp_path) == []
    assert len(statements(LESSON)[SEEDS].evidence.ours) == 3
    add([entry(0)], tmp_path)
    first = {(SEEDS, "0"): ("0.5", "", ""), (CONSTRUCTION, "0"): ("", "1", "0")}
    assert rows(tmp_path) == first
    add([entry(1)], tmp_path)
    assert rows(tmp_path) == first | {(SEEDS, "1"): ("1.5", "", "")}, "only what is one of several seeds"
    add([entry(0, **{SEEDS: {"ours": [0.25, 1e-9]}})], tmp_path)
    assert rows(tmp_path)[SEEDS, "0"] == ("0.25 1e-09", "", "")
    assert rows(tmp_path)[SEEDS, "1"] == ("1.5", "", "")
