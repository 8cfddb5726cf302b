"""Lessons come from solutions, the same byte for byte, or not at all."""

import sys

import nbformat
import pytest
from commands import called
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image
from sample_lesson import FACTS, NAME, PICTURE, checkout, notebook

from companion import __version__
from companion.workshop.cli.lessons import LessonError, select_lessons

LESSON = f"lessons/{NAME}/{NAME}.ipynb"


def run(root, *lessons: str, check: bool = False) -> int:
    return called("release", *lessons, *["--check"] * check, root=root)


def test_a_lesson_has_neither_answers_nor_hidden_tests_nor_outputs(tmp_path):
    assert run(checkout(tmp_path)) == 0
    text = (tmp_path / LESSON).read_text(encoding="utf-8")
    for secret in ("return 2 * x", "SOLUTION", "HIDDEN", "double(3)", "solved\\n", "3.99"):
        assert secret not in text
    lesson = nbformat.reads(text, as_version=4)
    assert lesson.cells[3].source == "def double(x):\n    # your code here\n    raise NotImplementedError"
    assert lesson.metadata.companion == FACTS | {"notebook": NAME, "version": __version__}
    assert [cell.id for cell in lesson.cells] == [*(cell.id for cell in notebook().cells), "footer"]
    assert all(cell.execution_count is None and not cell.outputs for cell in lesson.cells if cell.cell_type == "code")
    assert (tmp_path / LESSON).with_name("figure.png").read_bytes() == PICTURE
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    named = {"README.md", "figure.png", "thumbnail.png", "pyproject.toml", f"{NAME}.ipynb"}
    assert left == named, "no database, nothing temporary"


def test_it_is_the_same_byte_for_byte(tmp_path, capsys):
    run(checkout(tmp_path))
    before = (tmp_path / LESSON).read_bytes()
    capsys.readouterr()
    assert run(tmp_path) == 0
    assert capsys.readouterr().out == f"Released {NAME}\n"
    assert (tmp_path / LESSON).read_bytes() == before


def test_check_names_what_differs_and_writes_nothing(tmp_path, capsys):
    run(checkout(tmp_path))
    (tmp_path / f"lessons/{NAME}/.ipynb_checkpoints").mkdir()
    (tmp_path / f"lessons/{NAME}/.ipynb_checkpoints/x.ipynb").write_text("what JupyterLab leaves is no difference")
    assert run(tmp_path, check=True) == 0

    edited = (tmp_path / LESSON).read_text().replace("the end", "The End")
    (tmp_path / LESSON).write_text(edited)
    (tmp_path / LESSON).with_name("figure.png").unlink()
    (tmp_path / LESSON).with_name("notes.txt").write_text("mine")
    (tmp_path / "lessons/README.md").write_text("# Mine")
    capsys.readouterr()
    assert run(tmp_path, check=True) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"lessons/{NAME}/figure.png: is missing",
        f"lessons/{NAME}/notes.txt: comes from no solution",
        f"{LESSON}: differs in cell 7",
        "lessons/README.md: differs",
        "4 differences; run `release`",
    ]
    assert (tmp_path / LESSON).read_text() == edited


def test_one_lesson_leaves_the_others_alone(tmp_path):
    checkout(checkout(tmp_path), name="08-tripling")
    run(tmp_path)
    for name in (NAME, "08-tripling"):
        (tmp_path / f"lessons/{name}/{name}.ipynb").write_text("edited")
    assert run(tmp_path, "08") == 0
    assert (tmp_path / LESSON).read_text() == "edited"
    assert (tmp_path / "lessons/08-tripling/08-tripling.ipynb").read_text() != "edited"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exercise": "    return 2 * x\n    ### BEGIN SOLUTION"}, "nested begin solution"),
        ({"closing": "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"}, "non-solution cell"),
        ({"closing": "### BEGIN HIDDEN TESTS\nassert True\n### END HIDDEN TESTS"}, "non-grade cell"),
    ],
)
def test_a_lesson_that_cannot_be_made_is_named_and_nothing_is_written(tmp_path, capsys, changes, message):
    run(checkout(tmp_path))
    before = (tmp_path / LESSON).read_bytes()
    checkout(tmp_path, name="08-broken", **changes)
    assert run(tmp_path) == 1
    out = capsys.readouterr().out
    assert "release: 08-broken: nbgrader could not make it" in out
    assert message in out
    assert (tmp_path / LESSON).read_bytes() == before
    assert not (tmp_path / "lessons/08-broken").exists()


def test_a_fact_that_is_missing_is_named(tmp_path, capsys):
    path = checkout(tmp_path) / f"solutions/{NAME}/{NAME}.ipynb"
    path.write_text(path.read_text().replace('"needs": [', '"need": [').replace('"question"', '"answer"'))
    assert run(tmp_path) == 1
    assert (
        capsys.readouterr().out
        == f"release: {NAME}: the notebook's metadata 'companion' must have question (str), needs (list)\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"machine_seconds": 2',
            '"machine_seconds": "2"',
            "the notebook's metadata 'companion' must have machine_seconds",
        ),
        ("| Time |", "| Duration |", "the first cell must have one row `| Time | |`, into which `release` writes"),
    ],
)
def test_where_no_minutes_can_be_written_it_is_named(tmp_path, capsys, old, new, message):
    path = checkout(tmp_path, two=True) / f"solutions/{NAME}/{NAME}-further.ipynb"
    path.write_text(path.read_text().replace(old, new))
    assert run(tmp_path) == 1
    assert capsys.readouterr().out.startswith(f"release: {NAME}-further: {message}")


def test_minutes_are_counted_and_written_and_nobody_types_them(tmp_path, capsys):
    path = checkout(tmp_path) / f"solutions/{NAME}/{NAME}.ipynb"
    text = path.read_text()
    stated = "*Difficulty 2/5 · importance 5/5 · 20 minutes · the hard part: two.*"
    path.write_text(text.replace("## A claim about two", f"## A claim about two\\n\\n{stated}"))
    line = f"solutions/{NAME}/{NAME}.ipynb: the time is not the 25 minutes that are counted; `release` writes it"
    assert run(tmp_path, check=True) == 1
    assert capsys.readouterr().out.splitlines()[0] == line
    assert run(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[0] == line
    row = "| Time | about 25 minutes for you; 2 s of one core for the machine |"
    for each in (path, tmp_path / LESSON):
        lesson = nbformat.read(each, as_version=4)
        assert lesson.metadata.companion.minutes == 25
        assert lesson.cells[0].source.endswith(row)
    assert ".ipynb)** · 25 min<br>" in (tmp_path / "lessons/README.md").read_text()
    assert ".ipynb)** · 25 min<br>" in (tmp_path / "README.md").read_text()
    assert run(tmp_path, check=True) == 0


def test_the_start_page_maps_the_lessons(tmp_path):
    run(checkout(tmp_path))
    start, _, letters = (tmp_path / "lessons/README.md").read_text(encoding="utf-8").partition("\n## Notation\n")
    assert letters.count("\n| $") == 10
    row = start.splitlines()[-1]
    assert row == (
        f'| <img src="{NAME}/thumbnail.png" width="340" alt="Doubling">'
        f"<br>**[07 Doubling]({NAME}/{NAME}.ipynb)** · 5 min<br>What is twice a number?"
        "<br>*In the end you halve it again.*<br>First: a number |  |"
    )


def test_a_lesson_has_a_small_picture_the_answered_one_where_it_is(tmp_path, capsys):
    folder = checkout(tmp_path) / f"solutions/{NAME}"
    (folder / "figure.png").unlink()
    source = folder / f"{NAME}.ipynb"
    source.write_text(
        source.read_text(encoding="utf-8").replace("about 5 minutes", "about 4 minutes"), encoding="utf-8"
    )
    assert run(tmp_path) == 1
    said = capsys.readouterr().out
    assert f"figure.png is missing; `run {NAME} --pictures` draws it; then `release` again" in said
    assert "5 minutes" in said, "what was written before is told"
    Image.new("RGB", (1200, 600), "blue").save(folder / "figure.png")
    assert run(tmp_path) == 0
    small = tmp_path / f"lessons/{NAME}/thumbnail.png"

    def shown() -> tuple:
        with Image.open(small) as there:
            return there.size, there.convert("RGB").getpixel((9, 9))

    assert shown() == ((480, 240), (0, 0, 255))
    Image.effect_noise((1600, 1200), 90).convert("RGB").save(folder / "answer.png")
    capsys.readouterr()
    assert run(tmp_path, check=True) == 1
    line = f"solutions/{NAME}/thumbnail.png: was made from another picture than answer.png; `release` makes it"
    assert capsys.readouterr().out.splitlines()[0] == line
    assert shown()[0] == (480, 240), "nothing was written"
    assert run(tmp_path) == 0
    width, height = shown()[0]
    assert width == height * 4 / 3
    assert small.stat().st_size <= 40_000
    assert run(tmp_path, check=True) == 0


def test_the_readme_has_the_lessons(tmp_path, capsys):
    readme = checkout(tmp_path) / "README.md"
    assert run(tmp_path, check=True) == 1
    assert "README.md: its table of lessons is out of date; `release` writes it" in capsys.readouterr().out
    assert run(tmp_path) == 0
    assert readme.read_text() == (
        "before\n<!-- lessons -->\n| | |\n|---|---|\n"
        f'| <img src="lessons/{NAME}/thumbnail.png" width="340" alt="Doubling">'
        f"<br>**[07 Doubling](lessons/{NAME}/{NAME}.ipynb)** · 5 min<br>What is twice a number?"
        "<br>*In the end you halve it again.* |  |\n<!-- /lessons -->\nafter\n"
    )
    readme.write_text("no place for it")
    with pytest.raises(ValueError, match="has no <!-- lessons -->"):
        run(tmp_path)


def test_a_lesson_leads_to_its_neighbours(tmp_path, capsys):
    for name in ("06-adding", "08-doubling-back"):
        checkout(tmp_path, name=name)
    run(checkout(tmp_path))
    last = [
        nbformat.read(tmp_path / f"lessons/{name}/{name}.ipynb", as_version=4).cells[-1].source
        for name in ("06-adding", NAME, "08-doubling-back")
    ]
    before, after, every = (
        "Before: [06 Doubling](../06-adding/06-adding.ipynb)",
        "Next: [08 Doubling](../08-doubling-back/08-doubling-back.ipynb)",
        "[All lessons](../README.md) · [Notation](../README.md#notation)",
    )
    assert last[1] == f"{before} · {after} · {every}"
    assert last[0] == f"Next: [07 Doubling](../{NAME}/{NAME}.ipynb) · {every}"
    assert last[2].startswith("Before: [07") and last[2].endswith(every)
    assert run(tmp_path, "07") == 0
    assert run(tmp_path, check=True) == 0, "one lesson made alone has the same neighbours"
    capsys.readouterr()
    assert run(checkout(tmp_path, name="09-trebling"), "09") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Released 09-trebling; what is named above is written now",
        "lessons/08-doubling-back/08-doubling-back.ipynb: the lesson before or after it has changed; run `release 08`",
    ]
    assert run(tmp_path, "08", "09") == 0
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "Released 08-doubling-back, 09-trebling; what is named above is written now"
    )


def test_the_second_notebook_is_made_like_the_first_and_both_lead_to_each_other(tmp_path):
    assert run(checkout(tmp_path, two=True)) == 0
    path = (tmp_path / LESSON).with_name(f"{NAME}-further.ipynb")
    text = path.read_text(encoding="utf-8")
    assert "return 2 * x" not in text and "raise NotImplementedError" in text and "3.99" not in text
    lesson, further = (nbformat.read(each, as_version=4) for each in (tmp_path / LESSON, path))
    assert further.metadata.companion.notebook == f"{NAME}-further"
    assert further.metadata.companion.version == __version__
    assert not [cell for cell in further.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    every = "[All lessons](../README.md) · [Notation](../README.md#notation)"
    assert lesson.cells[-1].source == f"[Further]({NAME}-further.ipynb) · {every}"
    back = f"Back to the lesson: [07 Doubling]({NAME}.ipynb)"
    assert further.cells[-1].source == f"{back} · {every}"
    start = (tmp_path / "lessons/README.md").read_text()
    assert f"<br>First: a number<br>[Further]({NAME}/{NAME}-further.ipynb) · 5 min |" in start
    assert run(tmp_path, check=True) == 0
    path.write_text(text.replace("print('further')", "print('changed')"))
    assert run(tmp_path, check=True) == 1


def test_a_hidden_part_in_the_second_notebook_is_refused(tmp_path, capsys):
    path = checkout(tmp_path, two=True) / f"solutions/{NAME}/{NAME}-further.ipynb"
    path.write_text(path.read_text().replace("print('further')", "### BEGIN HIDDEN TESTS\\n### END HIDDEN TESTS"))
    assert run(tmp_path) == 1
    assert "non-grade cell" in capsys.readouterr().out


def test_on_colab_a_lesson_installs_the_companion_and_elsewhere_nothing(tmp_path):
    assert run(checkout(tmp_path, repository="someone/course")) == 0
    cell = nbformat.read(tmp_path / LESSON, as_version=4).cells[1]
    assert cell.metadata.tags == ["colab"]
    assert cell.metadata.jupyter.source_hidden
    what = '"transformers-as-algorithms[lessons] @ git+https://github.com/someone/course"'
    assert f"%pip install -q {what}" in cell.source
    shell = InteractiveShell()
    installed = []
    shell.register_magic_function(installed.append, "line", "pip")
    shell.run_cell(cell.source).raise_error()
    assert installed == [], "not on Colab"
    sys.modules["google.colab"] = sys
    try:
        shell.run_cell(cell.source).raise_error()
    finally:
        del sys.modules["google.colab"]
    assert installed == [f"install -q {what}"]


def test_a_lesson_is_chosen_by_number_name_or_part_of_it(tmp_path):
    checkout(checkout(tmp_path), name="08-doubling-back")
    names = lambda *words: [lesson.name for lesson in select_lessons(list(words), tmp_path)]  # noqa: E731
    assert names() == [NAME, "08-doubling-back"]
    assert names("08") == names("back") == ["08-doubling-back"]
    assert names("back", "7-") == [NAME, "08-doubling-back"], "in the course's order"
    assert names(NAME) == [NAME]
    with pytest.raises(
        LessonError, match=r"^LESSON = '9': there is no such lesson; there is 07-doubling, 08-doubling-back$"
    ):
        names("9")
    with pytest.raises(
        LessonError, match=r"^LESSON = 'doubling': fits more than one; there is 07-doubling, 08-doubling-back$"
    ):
        names("doubling")
