"""``circuit`` lists behaviours, scores a circuit from a file, finds one, draws it, and says what is wrong."""

import json

import pytest
from tiny_llama import save_tiny_llama

from companion.__main__ import parser
from companion.core.checkpoints import weights_path
from companion.pretrained.circuits.behaviours import BEHAVIOURS
from companion.pretrained.circuits.runs import draw_pairs
from companion.workshop.cli import circuit

FILE = """
def behaviour(random):
    words = random.sample(range(32), 10)
    other = [words[3], *words[1:3], words[0], *words[4:]]
    return [*words, *words[:1]], [*other, *words[:1]], [words[1]], [words[4]]

circuit = {circuit}
"""
CIRCUIT = ["0.1", "0.2", "1.0", "1.1", "1.2", "1.3"]
MODEL = str(weights_path("attention-two-layers", seed=1))


def run(*words: str) -> int:
    return circuit.main(parser().parse_args(["circuit", *words]))


def write(tmp_path, circuit=CIRCUIT, text=FILE) -> str:
    file = tmp_path / "mine.py"
    file.write_text(text.format(circuit=circuit), encoding="utf-8")
    return str(file)


def test_without_a_file_the_behaviours_are_listed(capsys):
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BEHAVIOURS) and lines[4].startswith("capitals          'The capital of Norway is'")


def test_a_circuit_of_ones_own_is_scored_and_drawn(tmp_path, capsys):
    out = tmp_path / "circuit.png"
    words = ["--model", MODEL, "--prompts", "20", "--random", "2", "--out", str(out)]
    assert run(write(tmp_path), *words) == 0
    said = capsys.readouterr().out
    assert f"mine, {MODEL}: right ahead of wrong in 100% of 20 prompts" in said and "2 random circuits" in said
    assert "It does not only flatten" in said and f"It is drawn in {out}." in said and "It is not all" not in said
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_whole_model_scores_best_and_is_found_out(tmp_path, capsys):
    everything = [f"{layer}.{head}" for layer in range(2) for head in range(4)]
    assert run(write(tmp_path, everything), "--model", MODEL, "--prompts", "10", "--random", "1") == 0
    said = capsys.readouterr().out
    assert "1.00 (1.00 to 1.00)" in said and "No other circuit has as many heads and MLPs" in said


SCORED = {
    "heads": 1,
    "mlps": 0,
    "accuracy": 1,
    "pairs": 9,
    "completeness": 0.3,
    "empty": 0,
    "stored": None,
    "size": 1,
    "wires": 2,
}
SCORED |= {f"{name}_{end}": 1.2 for name in ("accuracy", "faithfulness", "completeness") for end in ("low", "high")}
SCORED |= {"model_mlps": 2, "probability": 0.1, "whole_probability": 0.6, "whole_first": 1, "flattens": 0}
SCORED |= {"behaviour": "b", "model": "m", "parts": 8, "faithfulness": 1.2, "random": 0, "random_best": 0, "first": 0}


def test_a_circuit_that_flattens_or_says_more_is_told():
    lines = circuit.report(SCORED | {"flattens": 1, "empty": -0.001}, 3)
    assert "-0.00" not in lines[-4]
    assert (
        "It only flattens what the model says" in lines[-3] and "p = 0.10, where the model gives it 0.60" in lines[-3]
    )
    assert lines[1].split()[:2] == ["parts", "wires"] and lines[3].split()[2:4] == ["1", "2"]
    assert lines[-2].startswith("It says more than the model") and "without it 30% of the difference" in lines[-1]


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({"faithfulness": 0.27}, "It keeps 0.27, and does not say the answer: p = 0.10 of 0.60."),
        ({"random_best": 1.2}, "keeps as much: it says nothing about these parts."),
        ({"random_best": 1.2, "mlps": 2}, "nothing about these heads, for no other circuit has that many MLPs."),
        ({"random_best": 1.2, "mlps": 2, "heads": 0}, "No other circuit has as many heads and MLPs"),
        ({"random_best": 0.6}, "The best random circuit of its size keeps 50% as much"),
    ],
)
def test_what_a_score_is_worth_is_told(of, message):
    assert message in "\n".join(circuit.report(SCORED | of, 3)) and message not in "\n".join(circuit.report(SCORED, 3))


def test_a_board_reads_one_line(tmp_path, capsys):
    assert run(write(tmp_path), "--model", MODEL, "--prompts", "10", "--random", "1", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert row["circuit"] == CIRCUIT and row["size"] == 6 and row["faithfulness"] > 0.9 and row["behaviour"] == "mine"


def test_a_small_circuit_is_found(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(write(tmp_path, []), "--model", MODEL, "--prompts", "20", "--find", "60", "--random", "1") == 0
    said, last = (lines := capsys.readouterr().out.splitlines())[3], lines[-1]
    assert said.startswith("the found circuit")
    assert last.startswith("circuit = [") and {"0.2", "1.0"} <= set(json.loads(last.removeprefix("circuit = ")))


def test_what_is_searched_on_is_not_scored_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored, draw = [], circuit.draw
    monkeypatch.setattr(circuit, "draw", lambda *words, **more: scored.append((words, more)) or draw(*words, **more))
    few = FILE.replace(
        "range(32), 10)",
        "range(32), 10)\n    random = random.__class__(random.randrange({many}))\n"
        "    words = random.sample(range(32), 10)",
    )
    for many, code in ((20, 0), (15, 2)):
        file = write(tmp_path, text=few.replace("{many}", str(many)))
        assert run(file, "--model", MODEL, "--prompts", "40", "--find", "3", "--random", "1") == code
    [(words, more)] = scored
    assert len(more["without"]) == 10 and "100% of 10 prompts" in (said := capsys.readouterr()).out
    assert "7 pairs to search on are too few; must be at least 8" in said.err
    with pytest.raises(ValueError, match="draws 5 different pairs beside the 15 that were searched on"):
        draw_pairs(words[1], 10, without=draw_pairs(words[1], 15, seed=2))
    assert not set(draw_pairs(words[1], 10, without=more["without"])) & set(more["without"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("behaviour = 'capital'", "behaviour = 'capital'; must be a function, or one of "),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("behaviour = 'capitals'\ncircuit = ['m0']", "is a text, and TokenModel has no tokenizer"),
        (FILE.format(circuit=["7.0"]), "'7.0': there is no such head; the model has heads up to 1.3"),
        (FILE.format(circuit=["0.0", "00.0"]), "'0.0' and '00.0' name the same part; must be named once"),
        (FILE.format(circuit=[]), "wrong.py': circuit = []; must name its parts"),
        ("behaviour = 'capitals'\ncircuits = ['m0']", "wrong.py': has no `circuit`; must name its parts"),
        ("circuit = ['m0']", "has no `behaviour`; must define it, as a function or one of "),
        ("circuit = ['m0']\nbehaviour = f()", "NameError: name 'f' is not defined, line 2 of wrong.py"),
        ("circuit = [\nx = 3 3", "SyntaxError: "),
        (
            "circuit = ['0.1']\ndef behaviour(random):\n    return x",
            "circuit: behaviour: raises an error: NameError: name",
        ),
        ("circuit = ['0.1']\ndef behaviour():\n    return 3", "but 1 was given, line 2 of wrong.py"),
        (
            "circuit = ['0.1']\ndef behaviour(random):\n    return [1], [2], [3], [4]",
            "draws 1 pair; must draw at least 8",
        ),
        (
            "circuit = ['0.1']\ndef behaviour(random):\n    return 1, 2, 3, 4",
            "returned (1, 2, 3, 4); must be (clean prompt",
        ),
        (FILE.replace("[words[1]], [words[4]]", "[words[4]], [words[1]]").format(circuit=["0.0"]), "does not show it"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, capsys, text, message):
    file = tmp_path / "wrong.py"
    file.write_text(text, encoding="utf-8")
    assert run(str(file), "--model", MODEL, "--prompts", "10") == 2
    said = capsys.readouterr().err
    assert said.startswith("circuit: ") and message in said and said.count("circuit: ") == 1


def test_a_model_that_is_not_there_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    assert run("capitals") == 2 and "`python3 -m companion fetch smollm2`" in capsys.readouterr().err
    assert run("capitals", "--model", "nowhere.safetensors") == 2 and "nowhere.safetensors" in capsys.readouterr().err
    assert run("capitals", "--model", MODEL) == 2 and "none is stored for 'capitals'" in capsys.readouterr().err
    assert run("capital") == 2 and "must be a Python file that exists, or one of capitals" in capsys.readouterr().err


def test_a_folder_that_shows_nothing_is_said(tmp_path, capsys):
    folder = save_tiny_llama(tmp_path / "llama")
    assert run("days in a row", "--model", str(folder), "--prompts", "10") == 2
    assert "circuit: " in capsys.readouterr().err
