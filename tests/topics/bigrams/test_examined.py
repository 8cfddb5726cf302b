"""``examine induction`` finds the head that was written into a tiny GPT-2, and says what is wrong with its input."""

import re
import shutil
import socket
from argparse import Namespace

import pytest
from PIL import Image
from tiny_gpt2 import save_tiny_gpt2
from tiny_induction import save_tiny_induction

from companion.workshop.cli import examine


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_tiny_induction(tmp_path_factory.mktemp("saved") / "gpt2")


def arguments(folder, out=None) -> Namespace:
    return Namespace(topic="induction", folder=str(folder), out=out)


def printed(capsys) -> tuple[tuple[float, float], dict[str, tuple[float, float]], tuple[float, float], dict]:
    """Losses; prefix matching and copying of each head, best first; what the best costs and the others at most; p(the)
    and p(country) by where was cut.
    """
    text = capsys.readouterr().out
    first, second = re.search(r"loss ([\d.]+) the first time, ([\d.]+) the second", text).groups()
    heads = re.findall(r"^ +(\d\.\d) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)
    best, most = re.search(r"\n +\d\.\d +([+-][\d.]+)\n +others .* average, ([+-][\d.]+) at most", text).groups()
    cuts = re.findall(r"^ *(nowhere|layer \d) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)
    return (
        (float(first), float(second)),
        {name: (float(prefix), float(copied)) for name, prefix, copied in heads},
        (float(best), float(most)),
        {name: (float(rival), float(country)) for name, rival, country in cuts},
    )


def test_it_finds_the_head_that_was_written(saved, capsys, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("went to the network"))
    assert examine.main(arguments(saved)) == 0
    (first, second), heads, (best, others), _ = printed(capsys)
    assert second < first / 2
    assert next(iter(heads)) == "1.1"
    assert heads["1.1"][0] > 0.5
    assert heads["1.1"][1] > 0.9
    assert all(prefix < 0.1 and copied < 0.2 for name, (prefix, copied) in heads.items() if name != "1.1")
    assert best > 2
    assert abs(others) < 0.1


def test_it_finds_the_global_bigram(saved, capsys):
    assert examine.main(arguments(saved)) == 0
    *_, cuts = printed(capsys)
    rivals = {name: rival > country for name, (rival, country) in cuts.items()}
    assert rivals == {"nowhere": True, "layer 0": True, "layer 1": False}


def test_where_none_was_written_none_is_found(tmp_path, capsys):
    assert examine.main(arguments(save_tiny_induction(tmp_path / "gpt2", induction=False))) == 0
    (first, second), heads, _, _ = printed(capsys)
    assert second > 0.9 * first
    assert max(prefix for prefix, _ in heads.values()) < 0.1


def test_it_draws_the_scores(saved, tmp_path, capsys):
    out = tmp_path / "new folder/heads.png"
    assert examine.main(arguments(saved, str(out))) == 0
    assert f"The scores are drawn in {out}\n" in capsys.readouterr().out
    with Image.open(out) as image:
        image.verify()
    assert [path.name for path in out.parent.iterdir()] == ["heads.png"]
    assert examine.main(arguments(saved, str(out / "below.png"))) == 1
    assert f"examine induction: out = '{out}/below.png': cannot be written (" in capsys.readouterr().out


def test_words_that_are_no_single_tokens_are_not_compared(tmp_path, capsys):
    folder = save_tiny_gpt2(tmp_path / "gpt2", head=True)
    assert examine.main(arguments(folder)) == 0
    assert "its tokenizer has no single tokens for the words that would compete" in capsys.readouterr().out


def test_bad_input_is_named(saved, tmp_path, capsys):
    damaged = shutil.copytree(saved, tmp_path / "gpt2")
    (damaged / "config.json").write_text('{"model_type": "bert"}')
    for given, message in (
        (arguments("gpt2"), "folder = 'gpt2': no such folder; must be one on this machine"),
        (arguments(damaged), f"{damaged}: model_type = 'bert'; must be gpt2, gpt_neox or llama"),
    ):
        assert examine.main(given) == 2
        (line,) = capsys.readouterr().out.splitlines()
        assert line == f"examine induction: {message}" or line.startswith(f"examine induction: {message} ")
