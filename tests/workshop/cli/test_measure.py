"""``measure`` lists tables, makes one, makes what is missing, and says what is wrong with what it was given."""

from commands import called

from companion.core import measuring
from companion.core.measuring import measurements, read_table
from companion.workshop.cli import measure


def test_without_a_name_every_table_is_listed_with_its_size(capsys):
    assert called("measure") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(measurements())
    assert all(" rows, " in line and "changed" not in line for line in lines)


def test_a_table_is_made_where_it_was_asked_for(tmp_path, capsys):
    out = tmp_path / "facts.csv"
    name = "facts-by-learning-rate"
    assert called("measure", name, "--scale", "smoke", "--seeds", 1, 2, "--out", out) == 0
    table = read_table(out)
    assert table.columns["seed"] == [1, 1, 1, 2, 2, 2]
    assert table.header["command"] == f"python -m companion measure {name} --seeds 1 2 --scale smoke"
    assert f"{out}: 6 rows in" in capsys.readouterr().out


def test_what_is_missing_is_made_and_nothing_else(monkeypatch):
    made = []
    monkeypatch.setattr(measuring, "MEASURED", measuring.MEASURED / "nowhere")
    monkeypatch.setattr(measure, "measure", lambda name, **_: made.append(name))
    monkeypatch.setattr(measure, "read_table", lambda _: measuring.Table({"minutes": "0"}, {"seed": [0]}))
    assert called("measure", "--missing") == 0
    assert made == list(measurements())
