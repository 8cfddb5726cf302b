"""``examine regression`` reads a run of Garg et al.'s form, and tells a model that learned from one that has not."""

import re
import socket
from argparse import Namespace

import pytest
import torch
from PIL import Image
from tiny_regressor import POINTS, SIZES, Theirs, save_tiny_run

from companion.topics.regression.data import prompts
from companion.topics.regression.examined import ASKED
from companion.workshop.cli import examine


def arguments(folder, *, kappa=1.0, out=None) -> Namespace:
    return Namespace(topic="regression", folder=str(folder), kappa=kappa, out=out)


@pytest.fixture(scope="module")
def learned():
    """Theirs, trained until it beats the answer 0; from the course's start, as GPT-2's takes far longer."""
    model = Theirs()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.dim() == 2:
                fan_in = weights.shape[0] if ".h." in name else weights.shape[1]
                additions = 2 * SIZES["n_layer"] if "c_proj" in name else 1
                weights.normal_(std=(fan_in * additions) ** -0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(320):
        sample = prompts(64, POINTS, SIZES["n_dims"], generator=100 + step)
        optimizer.zero_grad()
        (model(sample.xs, sample.ys) - sample.ys).square().mean().backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def saved(learned, tmp_path_factory):
    return save_tiny_run(tmp_path_factory.mktemp("saved") / "pretrained", learned)


def numbers(line: str) -> list[float]:
    return [float(word) for word in line.split()]


def printed(capsys) -> tuple[str, list[list[float]], list[list[float]]]:
    """The whole text; the rows of the table of errors; those of the layers after the first."""
    text = capsys.readouterr().out
    errors, rest = text.split("\nThe output resembles")
    rows = [numbers(line) for line in errors.splitlines() if re.fullmatch(r" +\d+( +[\d.]+){4}", line)]
    layers = [numbers(line) for line in rest.splitlines() if re.fullmatch(r" +\d( +[\d.]+){5}", line)]
    return text, rows, layers


def test_it_sees_what_the_model_has_learned(saved, learned, capsys, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("went to the network"))
    assert examine.main(arguments(saved)) == 0
    text, rows, layers = printed(capsys)
    assert text.startswith(f"{saved}: 3 layers of 2 heads, width 32; d = 2, 7 examples and a query\n")
    sample = prompts(ASKED, POINTS, SIZES["n_dims"], generator=0)
    with torch.no_grad():
        expected = (learned(sample.xs, sample.ys) - sample.ys).square().mean(0) / sample.ys.square().mean()
    assert [row[0] for row in rows] == list(range(POINTS))
    for row, value in zip(rows, expected.tolist(), strict=True):
        assert row[1] == pytest.approx(value, abs=2e-5)
    assert [row[2] for row in rows[3:]] == [0] * (POINTS - 3), "least squares is exact from d examples on"
    assert rows[-1][1] < 0.7
    assert [row[0] for row in layers] == [1, 2, 3]
    assert layers[-1][1] < 0.9 * layers[0][1]
    rates = re.findall(r"^ +(model|conjugate gradient)((?: +(?:-?[\d.]+|-)){4})$", text, re.MULTILINE)
    assert [name for name, _ in rates] == ["model", "conjugate gradient"]


def test_where_nothing_was_learned_nothing_is_seen(tmp_path, capsys):
    assert examine.main(arguments(save_tiny_run(tmp_path / "untrained"))) == 0
    _, rows, layers = printed(capsys)
    assert all(row[1] > 0.6 for row in rows)
    assert all(row[1] > 0.7 for row in layers)


def test_the_condition_number_reaches_the_prompts(saved, capsys):
    assert examine.main(arguments(saved, kappa=25.0)) == 0
    _, steep, _ = printed(capsys)
    assert examine.main(arguments(saved)) == 0
    _, flat, _ = printed(capsys)
    assert steep[-1][1] > flat[-1][1]


def test_it_draws_the_similarities(saved, tmp_path, capsys):
    out = tmp_path / "new folder/similarities.png"
    assert examine.main(arguments(saved, out=str(out))) == 0
    assert f"The similarities are drawn in {out}\n" in capsys.readouterr().out
    with Image.open(out) as image:
        image.verify()
    assert [path.name for path in out.parent.iterdir()] == ["similarities.png"]
    assert examine.main(arguments(saved, out=str(out / "below.png"))) == 1
    assert f"examine regression: out = '{out}/below.png': cannot be written (" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "changes", "message"),
    [
        ("nowhere", {}, "folder = 'nowhere': no such folder; must be one on this machine"),
        (None, {"kappa": 0.5}, "kappa = 0.5: must be finite and at least 1"),
        (None, {"kappa": float("nan")}, "kappa = nan: must be finite and at least 1"),
    ],
)
def test_bad_input_is_named(saved, capsys, folder, changes, message):
    assert examine.main(arguments(folder or saved, **changes)) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"examine regression: {message}")
