"""``examine numbers`` sees the waves that were planted in a tiny GPT-2, and says what is wrong with its input."""

import re
import shutil
from argparse import Namespace

import pytest
import torch
from PIL import Image
from tiny_gpt2 import NUMBERS, WIDTH, rewrite, save_tiny_gpt2

from companion.topics.addition import examined as addition
from companion.workshop.cli import examine


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_tiny_gpt2(tmp_path_factory.mktemp("saved") / "gpt2")


def arguments(folder, *, numbers=None, add=None, out=None) -> Namespace:
    return Namespace(topic="numbers", folder=str(folder), numbers=numbers, add=add, out=out)


def printed(capsys) -> tuple[str, list[float], dict[int, tuple[float, float, float]]]:
    """The whole text; periods, strongest first; the probes' shares: right, in shuffled order, by chance, for each
    modulus.
    """
    text = capsys.readouterr().out
    waves, probes = text.split("\nA linear map")
    periods = [float(row[0]) for row in re.findall(r"^ +([\d.]+) +([\d.]+)$", waves, re.MULTILINE)]
    rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)$", probes, re.MULTILINE)
    return text, periods, {int(m): tuple(map(float, shares)) for m, *shares in rows}


def beyond_chance(text: str) -> int:
    """How many waves exceed the null band."""
    return int(re.search(r"95 % of shuffles\); (\d+) waves? exceeds? it", text)[1])


def test_it_sees_the_planted_waves_and_no_others(saved, capsys):
    assert examine.main(arguments(saved)) == 0
    text, periods, probes = printed(capsys)
    assert text.startswith(f"{saved}: ' 0' to ' 199', one token each, embeddings of width {WIDTH}\n")
    assert "The 8 strongest of 100 waves" in text
    assert periods[:4] == [10, 5, 2, 2.5]
    assert len(periods) == 8
    assert beyond_chance(text) == 4
    assert "Ranks: period 10 is number 1, period 5 is number 2, period 2.5 is number 4, period 2 is number 3\n" in text
    assert list(probes) == [2, 5, 10, 3, 7]
    assert all(probes[m][0] == 1 for m in (2, 5, 10))
    for m, (right, shuffled, chance) in probes.items():
        assert chance == pytest.approx(1 / m, abs=0.005)
        spread = 4 * (chance * (1 - chance) / NUMBERS) ** 0.5
        assert abs(shuffled - chance) < spread
        assert m in (2, 5, 10) or abs(right - chance) < spread


def test_where_nothing_is_planted_nothing_is_seen(saved, tmp_path, capsys):
    folder = shutil.copytree(saved, tmp_path / "noise")
    noise = lambda wte: torch.randn(wte.shape, generator=torch.Generator().manual_seed(1))  # noqa: E731
    rewrite(folder / "model.safetensors", lambda tensors: {"wte.weight": noise(tensors["wte.weight"])})
    assert examine.main(arguments(folder, numbers=150)) == 0
    text, _, probes = printed(capsys)
    assert "' 0' to ' 149'" in text
    assert beyond_chance(text) <= 1
    assert "period 10 is number " in text
    assert " (in the band)" in text
    assert all(right < chance + 4 * (chance * (1 - chance) / 150) ** 0.5 for right, _, chance in probes.values())


def test_it_draws_the_spectrum_where_somebody_says_where(saved, tmp_path, capsys, monkeypatch):
    out = tmp_path / "new folder/spectrum.png"
    out.parent.mkdir()
    out.write_text("an older one")
    monkeypatch.setattr(addition, "_picture", lambda *_: pytest.fail("drawn, though nobody asked"))
    assert examine.main(arguments(saved)) == 0
    monkeypatch.undo()
    assert examine.main(arguments(saved, out=str(out))) == 0
    assert f"The spectrum is drawn in {out}\n" in capsys.readouterr().out
    with Image.open(out) as image:
        image.verify()
        assert image.width > 800
    assert [path.name for path in out.parent.iterdir()] == ["spectrum.png"], "nothing is left beside it"


def test_an_adder_learns_on_them(saved, capsys):
    assert examine.main(arguments(saved, add="smoke")) == 0
    text = capsys.readouterr().out
    rows = re.findall(r"^ +(these|shuffled) +(\d+) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)
    assert [(name, steps) for name, steps, *_ in rows] == [("these", "60"), ("shuffled", "60")]
    (these, near), (shuffled, _) = ((float(right), float(within)) for *_, right, within in rows)
    assert near >= these
    assert these > shuffled


def test_an_adder_needs_a_number_for_each_answer(saved, capsys):
    assert examine.main(arguments(saved, numbers=50, add="smoke")) == 2
    assert (
        capsys.readouterr().out
        == "examine numbers: embeddings: has 50 rows; must have 119, one for each answer at scale smoke\n"
    )


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(saved, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert examine.main(arguments(saved, out=str(tmp_path / "file/spectrum.png"))) == 1
    assert f"examine numbers: out = '{tmp_path}/file/spectrum.png': cannot be written (" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"numbers": 5}, "numbers = 5: must be at least 20"),
        ({"numbers": 500}, "its tokenizer reads ' 200' as ['Ġ20', '0'], not as one token; numbers = 500"),
    ],
)
def test_bad_input_is_named(saved, capsys, changes, message):
    assert examine.main(arguments(saved, **changes)) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("examine numbers: ")
    assert message in line


def test_a_name_on_the_hub_is_no_folder(capsys):
    assert examine.main(arguments("gpt2")) == 2
    assert capsys.readouterr().out.startswith(
        "examine numbers: folder = 'gpt2': no such folder; must be one on this machine"
    )


def test_a_truncated_file_is_named(saved, tmp_path, capsys):
    folder = shutil.copytree(saved, tmp_path / "gpt2")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    assert examine.main(arguments(folder)) == 2
    assert f"examine numbers: {weights}: not a safetensors file, or a truncated one" in capsys.readouterr().out
