"""The minutes of a notebook are counted from what stands in it."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from companion.workshop.cli.minutes import count_words, exercises, minutes, prose

HEAD = "# A lesson\n\nwith ten words in it, and not one more here.\n\n| Time | about 300 minutes for you |"
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["drawing"]}
SUMMIT = """### Exercise 1 · The summit
*Difficulty 5/5 · importance 5/5 · 24 minutes · the hard part: 7 minutes are not enough.*

<details><summary>Hint 1: a question</summary>Which one?</details>"""


def counted(*cells, seconds=0):
    cells = [new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return minutes(new_notebook(cells=cells), seconds)


def code(source, **metadata):
    return new_code_cell(source, metadata=metadata)


@pytest.mark.parametrize(
    ("cells", "part", "expected"),
    [
        ([HEAD], "words", 13 / 200),  # the row that states the minutes is not among them
        (["one `two three` four $5 6$ <b>seven</b>"], "words", 3 / 200),
        (["$one", "two$ three"], "words", 3 / 200),  # a formula ends with its cell
        (["## References\n\n- a b c", code("x = 1"), "d e\n\n## Recap\n\nf"], "words", 3 / 200),
        (["## Quiz\n\n**1. One?**", "### Within\n\nit"], "words", 0),
        (["## Open problem, and more\n\nwords"], "words", 0),
        (["a <details><summary>Hint 2: b</summary>c\nd</details> e"], "words", 2 / 200),
        (["<details><summary>How sure are we?</summary>very</details>"], "words", 5 / 200),
        ([SUMMIT], "exercises", 30),
        ([code("figures.Picture(figure, alt)", **FOLDED), code("draw()", tags=["schematic"])], "figures", 2.5),
        ([code("Explorer(draw, alt=alt)"), code("AttentionMap(words, weights)")], "explorers", 2.5),
        ([code("Explorer(draw)\nfigures.Picture(figure, alt)")], "figures", 0),
        ([code('predictions.number(\n    "a")'), code('predictions.compare("a", 1)')], "predictions", 0.75),
        ([code("a = 1\nb = 2"), code("c = 3", **FOLDED)], "lines", 0.1),
        ([code("def f():\n    ### BEGIN SOLUTION\n    a\n    b\n    ### END SOLUTION")], "lines", 0.05),
        ([code("check(f)\n### BEGIN HIDDEN TESTS\ngrade(f)\n### END HIDDEN TESTS")], "lines", 0.05),
        (["# A\n\n## Quiz\n\n**1**"], "quiz", 5),
        (["# A quiz"], "quiz", 0),
    ],
)
def test_each_part(cells, part, expected):
    assert getattr(counted(*cells), part) == pytest.approx(expected)


def test_the_whole_is_the_sum_and_half_of_it_can_be_doing():
    cells = [SUMMIT, code('predictions.number("a")'), "## Quiz\n\n**1**", code("x = 1", **FOLDED)]
    found = counted(*cells, seconds=60)
    assert found.doing == pytest.approx(30 + 0.75 + 5)
    assert found.total == pytest.approx(found.doing + found.words + found.lines + 1)
    assert found.stated == 35
    assert counted("a").stated == 5, "nothing takes no time"


def test_what_an_exercise_says_of_itself_is_read():
    assert exercises(new_notebook(cells=[new_markdown_cell(f"{SUMMIT}\n\n{SUMMIT.replace('5/5 ·', '2/5 ·')}")])) == [
        (5, 24),
        (2, 24),
    ]


def test_words_are_counted_without_hints_and_references_but_with_quiz_and_open_problem():
    texts = [HEAD, SUMMIT, "## Quiz\n\none", "## Open problem\n\ntwo", "## References\n\nthree"]
    assert count_words(prose(new_notebook(cells=list(map(new_markdown_cell, texts))))) == 13 + 23 + 3 + 4
