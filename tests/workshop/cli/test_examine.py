"""A command's figure goes where ``--out`` says, or is refused before anything is computed."""

import pytest

from companion.workshop.cli.examine import figure_file, keep


def test_only_a_png_is_a_place_for_a_figure(tmp_path):
    (tmp_path / "folder.png").mkdir()
    assert figure_file(None) is None
    assert figure_file("new/figure.png").name == "figure.png"
    for out in ("figure.svg", "figure", str(tmp_path / "folder.png")):
        with pytest.raises(ValueError, match=r"out = .*: must be a file that ends in \.png"):
            figure_file(out)


def test_it_says_where_the_figure_is_or_why_it_is_not(tmp_path, capsys):
    path = tmp_path / "new/figure.png"
    assert keep("waves", "The waves are", path, b"png") == 0
    assert (path.read_bytes(), capsys.readouterr().out) == (b"png", f"The waves are drawn in {path}\n")
    assert keep("waves", "The waves are", path / "below.png", b"png") == 1
    assert capsys.readouterr().out.startswith(f"waves: out = '{path}/below.png': cannot be written (")
