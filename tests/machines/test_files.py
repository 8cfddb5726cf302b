"""Files that are broken or foreign: each case is one from somebody's machine. It is named, with the place in it, and
costs itself alone.
"""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from commands import called
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sample_lesson import FACTS, NAME, checkout

from companion.core.files import FileError, read_text
from companion.workshop.cli import run, setup, site, work
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.notebooks import as_notebook, node

OTHER = "08-tripling"
CELLS = [new_markdown_cell("# Größe", id="head"), new_code_cell("x = 1", id="x"), new_code_cell("x", id="y")]
WHOLE = nbformat.writes(new_notebook(cells=CELLS, metadata={"companion": FACTS})).encode()
CONFLICT = WHOLE.replace(b'   "id": "x"', b'<<<<<<< HEAD\n   "id": "x"\n=======\n   "id": "z"\n>>>>>>> theirs', 1)


def changed(change) -> bytes:
    """The notebook, with its JSON ``change``d in place."""
    notebook = json.loads(WHOLE)
    change(notebook)
    return json.dumps(notebook, indent=1).encode()


NO_NOTEBOOKS = {
    "a merge conflict": (CONFLICT, r"git has left a merge conflict in it \(line \d+, cell 2\)"),
    "half a download": (WHOLE[:-160], r"it breaks off \(line \d+, cell 3\)"),
    "a comma lost": (WHOLE.replace(b'"x",', b'"x"', 1), r"it is no JSON: Expecting ',' delimiter \(line \d+, cell 2\)"),
    "empty": (b"", "it is empty"),
    "a full disk's zeros": (bytes(4096), "it holds nothing but zeros"),
    "an editor's Latin-1": (WHOLE.decode().encode("latin-1"), "it is not UTF-8 from cell 1 on"),
    "a pointer of Git LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\n",
        "it is a Git LFS pointer",
    ),
    "a zip": (b"PK\x03\x04...", "it is a zip archive"),
    "a page that says 404": (b"<!DOCTYPE html><p>404", "it is a web page, not the file"),
    "a list": (b"[]", "it is JSON, but not a notebook"),
    "format 3": (b'{"nbformat": 3, "worksheets": []}', "it is of format 3; JupyterLab can save it"),
    "nested too deeply": (b"[" * 100_000, "it is nested too deeply"),
    "cells that are none": (changed(lambda all: all.update(cells=None)), "its cells are not a list"),
    "a cell that is none": (
        changed(lambda all: all["cells"].insert(1, None)),
        "its cell 2 is neither code nor markdown nor raw text",
    ),
    "a source of null": (changed(lambda all: all["cells"][2].update(source=None)), "its cell 3 has no source"),
}
NOTEBOOKS = {
    "a mark of byte order": b"\xef\xbb\xbf" + WHOLE,
    "UTF-16": WHOLE.decode().encode("utf-16"),
    "UTF-16 without a mark": WHOLE.decode().encode("utf-16-le"),
    "Windows' line ends": WHOLE.replace(b"\n", b"\r\n"),
    "ids lost": changed(lambda all: [cell.pop("id") for cell in all["cells"]]),
    "ids twice": changed(lambda all: [cell.update(id="same") for cell in all["cells"]]),
    "metadata of null": changed(lambda all: [part.update(metadata=None) for part in (*all["cells"], all)]),
    "outputs lost": changed(lambda all: [cell.pop("outputs", None) for cell in all["cells"]]),
    "no format": changed(lambda all: all.pop("nbformat")),
    "NaN in an output": changed(lambda all: all["cells"][1].update(metadata={"x": float("nan")})),
}


@pytest.mark.parametrize(("data", "why"), NO_NOTEBOOKS.values(), ids=NO_NOTEBOOKS)
def test_what_is_no_notebook_any_more_says_why_and_where(data, why):
    with pytest.raises(FileError, match=f"^{why}"):
        as_notebook(data)


@pytest.mark.parametrize("data", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_what_an_editor_has_lost_is_made_good(tmp_path, data):
    (tmp_path / "a.ipynb").write_bytes(data)
    found = node(tmp_path / "a.ipynb")
    nbformat.validate(found)
    assert [cell.source for cell in found.cells] == ["# Größe", "x = 1", "x"]
    assert len({cell.id for cell in found.cells}) == 3


TEXT = 'student,note\nJörg,"größer"\n'
TEXTS = {
    "a mark of byte order": b"\xef\xbb\xbf" + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16 without a mark": TEXT.encode("utf-16-le"),
    "Windows-1252": TEXT.encode("cp1252"),
    "Windows' line ends": TEXT.replace("\n", "\r\n").encode(),
}
NO_TEXTS = {
    "a merge conflict": (
        f"a\n<<<<<<< HEAD\n{TEXT}=======\n>>>>>>> theirs\n".encode(),
        r"a merge conflict in it \(line 2",
    ),
    "a picture": (b"\x89PNG\r\n", "it is a picture"),
    "half a letter": (TEXT.encode()[: TEXT.encode().rindex("ß".encode()) + 1], "or breaks off"),
    "bytes": (b"student\n\x81", "is neither UTF-8 nor UTF-16 nor Windows-1252"),
}


@pytest.mark.parametrize("data", TEXTS.values(), ids=TEXTS)
def test_a_text_is_read_in_whatever_program_it_was_written(tmp_path, data):
    (tmp_path / "roster.csv").write_bytes(data)
    assert read_text(tmp_path / "roster.csv") == TEXT


@pytest.mark.parametrize(("data", "why"), NO_TEXTS.values(), ids=NO_TEXTS)
def test_what_is_no_text_is_named(tmp_path, data, why):
    (tmp_path / "roster.csv").write_bytes(data)
    with pytest.raises(FileError, match=f"^roster.csv: .*{why}"):
        read_text(tmp_path / "roster.csv")


def folder(path):
    path.unlink()
    path.mkdir()


def loop(path):
    path.unlink()
    path.symlink_to(path.name)


DAMAGE = {
    "a merge conflict": (lambda path: path.write_bytes(CONFLICT), "git has left a merge conflict in it"),
    "no cells": (
        lambda path: path.write_text(path.read_text().replace('"cells"', '"cell"')),
        "cannot be read as a notebook",
    ),
    "metadata lost": (lambda path: path.write_text('{"cells": [], "metadata": {}}'), "the notebook has no cells"),
    "a folder": (folder, "cannot be read (Is a directory)"),
    "a loop": (loop, "cannot be read ("),
}


@pytest.fixture
def two(tmp_path):
    """A checkout with two lessons, which are released."""
    checkout(tmp_path)
    checkout(tmp_path, name=OTHER)
    assert called("release", root=tmp_path) == 0
    return tmp_path


@pytest.mark.parametrize(("damage", "why"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_lesson_costs_itself_alone(two, capsys, damage, why):
    kept = {path: path.read_bytes() for path in (two / "lessons").rglob("*") if path.is_file()}
    damage(two / f"solutions/{OTHER}/{OTHER}.ipynb")
    capsys.readouterr()
    for words in ([], ["07"]):
        assert called("release", *words, root=two) == 1
        said = capsys.readouterr().out
        assert why in said and f"Released {NAME}\n" in said, said
    assert {path: path.read_bytes() for path in kept} == kept, "the other's footer leads where it led"
    executed = two / "run"
    executed.mkdir()
    for name in (NAME, OTHER):
        shutil.copy(two / f"lessons/{name}/{name}.ipynb", executed)
    entries = [{"lesson": name, "errors": [], "claims": []} for name in (NAME, OTHER)]
    (executed / "report.json").write_text(json.dumps({"lessons": entries}))
    assert site.unfit(two, executed) == []
    assert [chapter.name for chapter in site.course(two, executed, ()).chapters] == [NAME, OTHER]
    (executed / f"{OTHER}.ipynb").write_bytes(CONFLICT)
    assert f"lacks {OTHER}" in site.unfit(two, executed)[0]

    damage(two / f"lessons/{OTHER}/{OTHER}.ipynb")
    assert called("progress", root=two) == 0
    said = capsys.readouterr().out
    assert why in said and f"{NAME}  " in said
    assert called("progress", "--reset", "07", "--yes", root=two) == 0
    assert OTHER not in (two / "work/README.md").read_text()
    assert work.refresh(two, answers=True) == [f"{all_lessons(two, 'lessons')[1].damage()}. The other lessons open."]


def test_a_lesson_in_utf_16_is_copied_as_jupyterlab_can_open_it(two):
    path = two / f"lessons/{NAME}/{NAME}.ipynb"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-16")
    assert work.refresh(two) == []
    copy = two / f"work/{NAME}/{NAME}.ipynb"
    assert copy.read_text(encoding="utf-8") == path.read_text(encoding="utf-16")
    copy.write_text(copy.read_text(encoding="utf-8"), encoding="utf-16")
    assert work.outdated(two)[0].startswith(f"{NAME}.ipynb in work/{NAME} is in utf-16, which JupyterLab cannot open")


def test_lost_metadata_are_no_older_version(two):
    work.refresh(two)
    copy = two / f"work/{NAME}/{NAME}.ipynb"
    for lost in ({}, {"companion": None}, {"companion": {}}, {"companion": "0.4"}):
        copy.write_text(json.dumps(json.loads(copy.read_text()) | {"metadata": lost}))
        assert work.made_with(copy) == "" and work.outdated(two) == []


@pytest.mark.weekly  # it starts three kernels
def test_a_foreign_kernel_runs_and_a_damaged_lesson_takes_nobody_along(two, monkeypatch, capsys):
    spec = two / "jupyter/kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["false", "{connection_file}"], "display_name": "another", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(two / "jupyter"))
    for name, metadata in ((NAME, {"kernelspec": {"name": "conda-env-course-py"}}), (OTHER, {})):
        path = two / f"solutions/{name}/{name}.ipynb"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"metadata": metadata}))
    checkout(two, name="09-last")
    (two / "solutions/09-last/09-last.ipynb").write_bytes(CONFLICT)
    reports = []
    monkeypatch.setattr(run, "_say", lambda entry: reports.append((two / "out/report.json").is_file()))
    assert called("run", "--scale", "smoke", "--out", two / "out", root=two) == 1
    entries = json.loads((two / "out/report.json").read_text())["lessons"]
    assert [len(entry["claims"]) for entry in entries] == [1, 1, 0]
    assert "09-last.ipynb cannot be read as a notebook: git has left" in entries[2]["errors"][0]
    assert reports == [False, True, True], "it is written after each lesson"


PROJECT = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
MARKS = '<<<<<<< HEAD\nversion = "0.4.0"\n=======\nversion = "0.5.0"\n>>>>>>> theirs\n'
NO_PROJECTS = {
    "a merge conflict": (PROJECT.replace('version = "0.4.0"\n', MARKS), r"git has left a merge conflict .*\(line 7\)"),
    "half a list": (PROJECT[: PROJECT.index('    "gguf')], r"Invalid value \(at its end, line 26\)"),
    "a comma lost": (PROJECT.replace('0.9",\n', '0.9"\n', 1), r"Unclosed array \(at line 27"),
    "half a table": (PROJECT[: PROJECT.index("dependencies")], "ends in line 12, without dependencies"),
    "extras lost": (PROJECT[: PROJECT.index("site = [")], "must have the extra 'site'"),
    "no requirement": (PROJECT.replace("numpy>=", "numpy=>"), "Expected .* numpy=>1.26"),
    "empty": ("", "ends in line 0, without name"),
}


@pytest.mark.parametrize(("text", "why"), NO_PROJECTS.values(), ids=NO_PROJECTS)
def test_a_damaged_project_is_named_before_anything_is_installed(tmp_path, monkeypatch, text, why):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=f"^pyproject.toml: {why}"):
        setup.ensure(("site",), ["site"], root=tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "constraints.txt").write_text(MARKS, encoding="utf-8")
    with pytest.raises(FileError, match=r"^constraints.txt: git has left a merge conflict in it \(line 1\)"):
        setup.install(tmp_path / ".venv", (), tmp_path)
