"""A lesson has the form that a person finishes: short, drawn, half of it doing, one summit, and the picture at its head
answered at its end.
"""

import ast
import re
from copy import deepcopy
from itertools import pairwise

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.cli.minutes import ASKED, STATED, count_words, exercises, minutes, prose, tags

LESSONS = all_lessons(folder="lessons")
BESIDE = [path for lesson in LESSONS for path in lesson.beside.values()]
NOTICE = re.compile(r"\*Notice:?\*:?(.*?)(?=\n\s*\n|\Z)", re.DOTALL)


def hints(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """The numbers of the hints to each exercise, in order."""
    found = []
    for cell in notebook.cells:
        places = [match.start() for match in STATED.finditer(cell.source)] if cell.cell_type == "markdown" else []
        for start, end in pairwise([*places, len(cell.source)]):
            found.append(re.findall(r"<summary>Hint (\d)", cell.source[start:end]))
    return found


def believed(notebook: nbformat.NotebookNode) -> list[int]:
    """How many rows each call of ``claims.believe`` has."""
    trees = [ast.parse(cell.source) for cell in notebook.cells if "claims.believe(" in cell.source]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [len(call.args[0].keys) for call in calls if ast.unparse(call.func) == "claims.believe"]


def unseen(notebook: nbformat.NotebookNode) -> list[str]:
    """The cells whose predictions nobody is shown: what asks is a cell's last expression, and asks once."""
    asking = [cell for cell in notebook.cells if cell.cell_type == "code" and ASKED.search(cell.source)]
    last = [ast.get_source_segment(cell.source, ast.parse(cell.source).body[-1]) for cell in asking]
    return [
        cell.id
        for cell, said in zip(asking, last, strict=True)
        if [len(ASKED.findall(text)) for text in (cell.source, said)] != [1, 1]
    ]


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What keeps a lesson from the form, each with its limit."""
    stated, spent = exercises(notebook), minutes(notebook, notebook.metadata.companion.machine_seconds)
    words, predictions = count_words(prose(notebook)), sum(len(ASKED.findall(cell.source)) for cell in notebook.cells)
    notices = [count_words([said]) for cell in notebook.cells for said in NOTICE.findall(cell.source)]
    tagged = [tag for cell in notebook.cells for tag in tags(cell)]
    steep = [number for number, (difficulty, _) in enumerate(stated, 1) if difficulty >= 4]
    one_to_six = [[rows] for rows in range(1, 7)]
    asked = sum(time for _, time in stated)
    wrong = {
        f"{len(notebook.cells)} cells; at most 60": len(notebook.cells) > 60,
        f"{words} words of prose; at most 3,000": words > 3000,
        f"{tagged.count('schematic')} cells tagged schematic; at least 2": tagged.count("schematic") < 2,
        f"{len(stated)} exercises; 4 or 5": len(stated) not in (4, 5),
        f"difficulty 4 or more in {steep}; in the last exercise, the summit, alone": steep != [len(stated)],
        f"{asked} minutes of exercises; at most 65": asked > 65,
        f"hints {hints(notebook)}; to each exercise 1, 2, 3, 4": any(each != list("1234") for each in hints(notebook)),
        f"{predictions} predictions; 4 or 5": predictions not in (4, 5),
        f"no prediction is shown, or more than one, by {unseen(notebook)}": bool(unseen(notebook)),
        f"{spent.total:.0f} minutes in all; at most 120": spent.total > 120,
        f"{spent.doing:.0f} of {spent.total:.0f} minutes are doing; at least half": spent.doing < spent.total / 2,
        f"a Notice of {max(notices, default=0)} words; at most 60": max(notices, default=0) > 60,
        f"{believed(notebook)} rows of what to believe; one table of 1 to 6": believed(notebook) not in one_to_six,
    }
    wrong |= {f"{tagged.count(tag)} cells tagged {tag}; one": tagged.count(tag) != 1 for tag in ("figure", "answer")}
    return [fault for fault, is_wrong in wrong.items() if is_wrong]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_has_the_form(lesson):
    assert not faults(nbformat.read(lesson.source, as_version=4))


@pytest.mark.parametrize("path", BESIDE, ids=lambda path: path.stem)
def test_the_notebook_beside_it_can_be_read(path):
    notebook = nbformat.read(path, as_version=4)
    assert len(notebook.cells) <= (110 if path.stem.endswith("-further") else 45)
    assert count_words(prose(notebook)) <= 6000


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_the_picture_at_its_head_is_there_and_answered(lesson):
    head = nbformat.read(lesson.source, as_version=4).cells[0].source
    assert "](figure.png)" in head
    missing = [name for name in ("figure.png", "answer.png") if not lesson.source.with_name(name).is_file()]
    assert not missing, f"{missing}: python3 -m companion run {lesson.name[:2]} --pictures"


HINTS = "".join(f"<details><summary>Hint {number}: a step</summary>One.</details>\n" for number in range(1, 5))


def exercise(difficulty: int = 2, stated: int = 10, hints: str = HINTS):
    heading = f"*Difficulty {difficulty}/5 · importance 5/5 · {stated} minutes · the hard part: none.*"
    return new_markdown_cell(f"### Exercise\n{heading}\n\n**Write it.**\n\n{hints}")


def drawn(*names: str):
    return new_code_cell("figures.Picture(figure, alt)", metadata={"tags": ["drawing", *names]})


def sample(**changes) -> nbformat.NotebookNode:
    """A lesson in the form, but for ``changes`` of its parts."""
    parts = {
        "head": [new_markdown_cell("# A lesson"), drawn("figure")],
        "schematics": [drawn("schematic"), drawn("schematic")],
        "predictions": [new_code_cell(f'predictions.number("p{number}")') for number in range(4)],
        "exercises": [exercise(), exercise(), exercise(), exercise(4, 25)],
        "notice": [new_markdown_cell(f"*Notice:* {'word ' * 59}$x$.\n\n{'more ' * 100}")],
        "believe": [new_code_cell('claims.believe({"a": "b", "c": "d"})')],
        "answer": [drawn("answer")],
    }
    cells = [deepcopy(cell) for part in (parts | changes).values() for cell in part]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return new_notebook(cells=cells, metadata={"companion": {"machine_seconds": 60}})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"more": [new_markdown_cell("a")] * 60}, "75 cells; at most 60"),
        ({"more": [new_markdown_cell("a " * 2900)]}, "3132 words of prose; at most 3,000"),
        ({"schematics": [drawn("schematic")]}, "1 cells tagged schematic; at least 2"),
        ({"exercises": [exercise(), exercise(), exercise(4, 25)]}, "3 exercises; 4 or 5"),
        ({"exercises": [exercise()] * 4}, "difficulty 4 or more in []; in the last exercise"),
        ({"exercises": [exercise(4), exercise(), exercise(), exercise(5)]}, "difficulty 4 or more in [1, 4]; in"),
        ({"exercises": [exercise(2, 20)] * 3 + [exercise(4, 25)]}, "85 minutes of exercises; at most 65"),
        ({"exercises": [exercise()] * 3 + [exercise(4, 25, HINTS[:-70])]}, "hints [['1', '2', '3', '4'], "),
        ({"predictions": []}, "0 predictions; 4 or 5"),
        (
            {"predictions": [new_code_cell('predictions.number("p")\nx = 1')] * 4},
            "no prediction is shown, or more than",
        ),
        ({"more": [drawn()] * 40}, "131 minutes in all; at most 120"),
        ({"notice": [new_markdown_cell(f"*Notice:* {'word ' * 61}")]}, "a Notice of 61 words; at most 60"),
        ({"believe": []}, "[] rows of what to believe; one table"),
        ({"believe": [new_code_cell(f"claims.believe({dict.fromkeys('abcdefg', '')})")]}, "[7] rows of what to"),
        ({"answer": []}, "0 cells tagged answer; one"),
        ({"head": []}, "0 cells tagged figure; one"),
    ],
)
def test_a_fault_is_named(changes, fault):
    found = faults(sample(**changes))
    assert (not found) if fault is None else any(each.startswith(fault) for each in found), found
