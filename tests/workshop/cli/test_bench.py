"""``bench`` lists tasks and layers, and benches a layer from a file."""

from commands import called

from companion.core.measuring import read_table

LAYER = """
from torch import nn


class Shift(nn.Linear):
    def __init__(self, width):
        super().__init__(width, width)

    def forward(self, x):
        return super().forward(nn.functional.pad(x, (0, 0, 1, 0))[:, :-1])
"""


def test_without_a_layer_tasks_and_layers_are_listed(capsys):
    assert called("bench") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11 and lines[-1].startswith("layers: softmax, linear, gated, delta, lstm, or FILE.py:NAME")
    assert any(line.startswith("recall ") and "(pairs: 4, 8, 16, 32)" in line for line in lines)


def test_a_layer_of_ones_own_is_benched_by_one_command(tmp_path, capsys):
    file, out = tmp_path / "my_layer.py", tmp_path / "shift.csv"
    file.write_text(LAYER, encoding="utf-8")
    words = ["--tasks", "hops", "--seeds", "0", "--scale", "smoke", "--out", str(out)]
    assert called("bench", f"{file}:Shift", *words) == 0
    said = capsys.readouterr().out
    assert "hops 1: Shift " in said and f"Table and picture: {out}" in said
    assert "10 steps" in said and "may still be learned with more steps or a larger width" in said
    assert read_table(out).values("size") == [1, 2, 3] and out.with_suffix(".png").is_file()
