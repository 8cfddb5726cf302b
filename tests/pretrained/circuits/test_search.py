"""The search finds the circuit that is there, and goes on where it was stopped."""

import json

import pytest
from refusals import refusals
from tiny_circuits import planted_runs, taught

from companion.pretrained.circuits.search import attribution, find_circuit


def test_attributions_add_up_to_about_the_whole_difference():
    runs, writer, reader = planted_runs("keys")
    given = dict(zip(map(str, runs.parts), attribution(runs).tolist(), strict=True))
    whole = (runs.clean.difference - runs.corrupted.difference).mean().item()
    assert sum(given.values()) == pytest.approx(whole, rel=0.35)
    assert max(given, key=given.get) == f"Part(layer=1, head={reader[2:]})"
    assert len(attribution(taught())) == 8  # without MLPs


def test_the_known_circuit_is_found():
    assert find_circuit(taught()).names == ["0.1", "0.2", "1.0", "1.1", "1.2", "1.3"]
    runs, writer, reader = planted_runs("jump")
    assert find_circuit(runs).names == [writer, reader]


def test_a_search_that_was_stopped_goes_on(tmp_path, monkeypatch):
    kept, runs = tmp_path / "kept.json", taught()
    tried, run = [], runs.run
    monkeypatch.setattr(runs, "run", lambda circuit: tried.append(circuit) or run(circuit))
    whole = find_circuit(runs)
    monkeypatch.setattr(
        runs, "run", lambda circuit: stop() if len(stopped) == 5 else stopped.append(circuit) or run(circuit)
    )
    stopped = []

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_circuit(runs, kept=kept)
    assert json.loads(kept.read_text())["tried"] == 5
    again = []
    monkeypatch.setattr(runs, "run", lambda circuit: again.append(circuit) or run(circuit))
    assert find_circuit(runs, kept=kept) == whole and len(again) == len(tried) - 5 and not kept.exists()


def test_a_budget_ends_it():
    assert len(find_circuit(taught(), budget=2).parts) > 6


test_what_cannot_be_sought_is_refused = refusals(
    ({"keep": 1.0}, "keep = 1.0: must be between 0 and 1"),
    ({"budget": 0}, "budget = 0: must be at least 1"),
    of=lambda wrong: find_circuit(taught(), **wrong),
)
