"""A command's figure goes where ``--out`` says, or is refused before anything is computed."""

from argparse import Namespace

from companion.workshop.cli import examine


def test_only_a_png_is_a_place_for_a_figure(tmp_path, capsys):
    (tmp_path / "folder.png").mkdir()
    for out in ("figure.svg", "figure", str(tmp_path / "folder.png")):
        assert examine.main(Namespace(topic="induction", folder=str(tmp_path), out=out)) == 2
        assert capsys.readouterr().out == f"examine induction: out = {out!r}: must be a file that ends in .png\n"
