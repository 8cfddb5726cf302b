"""The score puts the known circuit first, and ways to a high score without one get none."""

from itertools import combinations

import pytest
import torch
from tiny_circuits import planted_runs, taught, triggered

from companion.core.circuits import Part
from companion.pretrained.circuits.parts import Circuit, part_name
from companion.pretrained.circuits.runs import RunReading, Runs
from companion.pretrained.circuits.scoring import check_shown, random_circuits, score

SIDES = ("keys", "queries", "values")
KNOWN = {1: ["0.1", "0.2"], 2: ["0.0", "0.2"]}  # what looks one back in lesson 01's decoders, by seed


def best(runs: Runs, size: int) -> list[str]:
    """The names of the circuit of heads that keeps most, of all that have this size."""
    heads = [part for part in runs.parts if part.head is not None]
    return Circuit(max(combinations(heads, size), key=lambda parts: runs.share(runs.run(Circuit(parts))))).names


@pytest.mark.parametrize("seed", KNOWN)
def test_of_lesson_01s_decoder_the_heads_that_look_back_and_after_come_first(seed):
    runs = taught(seed)
    _, cache = runs.model.run_with_cache(runs.prompts.clean[0], names="blocks.0.attn.hook_pattern")
    before = cache["blocks.0.attn.hook_pattern"].diagonal(-1, dim1=-2, dim2=-1).mean((0, 2))
    assert sorted(f"0.{head}" for head in before.topk(2).indices.tolist()) == KNOWN[seed]
    known = [*KNOWN[seed], "1.0", "1.1", "1.2", "1.3"]
    assert best(runs, 6) == known
    wired = {
        side: Circuit.read(f"{one} -> {two} by {side}" for one in known[:2] for two in known[2:]) for side in SIDES
    }
    kept = {side: runs.share(runs.run(circuit)) for side, circuit in wired.items()}
    assert kept["keys"] > 0.9 and abs(kept["queries"]) < 0.1 and abs(kept["values"]) < 0.1


def test_of_lesson_06s_decoder_the_wire_by_keys_comes_first():
    kept = {side: triggered().share(triggered().run(Circuit.read([f"0.0 -> 1.0 by {side}"]))) for side in SIDES}
    assert kept["keys"] == pytest.approx(1, abs=0.02) and abs(kept["queries"]) < 0.05 and abs(kept["values"]) < 0.05
    assert all(abs(triggered().share(triggered().run(Circuit.read([head])))) < 0.05 for head in ("0.0", "1.0"))


@pytest.mark.parametrize("kind", ["keys", "jump"])
def test_of_a_planted_llama_the_planted_pair_comes_first_and_its_wire(kind):
    runs, writer, reader = planted_runs(kind)
    of_reader = [Circuit.read([f"0.{head}", reader]) for head in range(runs.heads)]
    of_writer = [Circuit.read([writer, f"1.{head}"]) for head in range(runs.heads)]
    kept = [(runs.share(runs.run(circuit)), circuit.names) for circuit in (*of_reader, *of_writer)]
    assert max(kept)[1] == [writer, reader] and max(kept)[0] > 0.85
    by_side = {side: runs.share(runs.run(Circuit.read([f"{writer} -> {reader} by {side}"]))) for side in SIDES}
    assert max(by_side, key=by_side.get) == {"keys": "keys", "jump": "queries"}[kind]


def test_a_score_says_what_is_kept_and_what_stays_without_it():
    runs = taught()
    scored = score(runs, Circuit.read(["0.1", "0.2", "1.0", "1.1", "1.2", "1.3"]), random=20)
    row = scored.row()
    assert row["size"] == 6 and row["heads"] == 6 and row["mlps"] == 0 and row["pairs"] == 20
    assert row["faithfulness_low"] <= row["faithfulness"] <= row["faithfulness_high"] and row["faithfulness"] > 0.9
    assert abs(row["completeness"]) < 0.05 and row["empty"] == 0 and not row["flattens"]
    assert row["random"] <= row["random_best"] <= 1.05 and row["random_best"] == max(scored.random)
    assert row["accuracy"] == 1 and row["accuracy_low"] > 0.8


def test_random_circuits_have_the_same_size():
    runs, *_ = planted_runs("keys")
    drawn = random_circuits(runs, Circuit.read(["0.1", "1.1", "m0"]), 50)
    assert all(sum(part.head is None for part in each.parts) == 1 and len(set(each.parts)) == 3 for each in drawn)
    assert len({part_name(part) for each in drawn for part in each.parts}) == len(runs.parts)
    assert random_circuits(runs, Circuit((Part(0),)), 1, seed=1) == random_circuits(
        runs, Circuit((Part(0),)), 1, seed=1
    )


class Said(Runs):
    """Runs of which nothing is known but what they say."""

    def __init__(self, clean: list[float], corrupted: list[float]):
        self.clean, self.corrupted = (
            RunReading(torch.tensor(each), *2 * [torch.zeros(1)]) for each in (clean, corrupted)
        )


def test_what_a_model_does_not_show_cannot_be_scored():
    with pytest.raises(
        ValueError, match=r"does not show it: right ahead of wrong in 50% of 20 prompts \(95 % interval"
    ):
        check_shown(Said(10 * [1.0, -1.0], 20 * [0.0]))
    with pytest.raises(ValueError, match=r"corrupting changes too little: .* is on average 1.50 on clean"):
        check_shown(Said(10 * [1.0, 2.0], 10 * [2.0, 1.0]))
    assert check_shown(Said(10 * [1.0, 2.0], 20 * [0.0]))[0] == 1


def test_a_circuit_that_only_flattens_is_found_out(monkeypatch):
    runs = taught()
    kept = runs.clean._replace(probability=0.3 * runs.clean.probability)
    monkeypatch.setattr(runs, "run", lambda circuit: kept if circuit.parts else runs.corrupted)
    assert score(runs, Circuit.read(["0.1"]), random=1).flattens
