"""Notebooks are read without running anything, within limits, and what passes in a notebook is understood."""

import base64
import json
import time
from contextlib import suppress
from dataclasses import replace

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell
from workshop.grading.answers import RETURNS, RIGHT, newton_step
from workshop.grading.hostile import SLY
from workshop.grading.reading import assembled, small_handout
from workshop.grading.small_lesson import around, cell, edited, grade_id, handed_in, solved
from workshop.grading.variants import WAYS

from companion import __version__
from companion.lesson.attempts import own_function
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.grading.course import book, classroom, feedback, folders, formgrader, handins, lms
from companion.workshop.grading.notebook import reading, slices, submissions, syntax
from companion.workshop.grading.notebook.files import Unreadable
from companion.workshop.grading.notebook.handout import handout
from companion.workshop.grading.notebook.slices import needed, pieces
from companion.workshop.grading.notebook.submissions import assemble, cells
from companion.workshop.grading.notebook.syntax import parse, plain
from companion.workshop.grading.sandbox.worker import Shell

NEWTON = "newton-step-check"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def seconds(action):
    started = time.process_time()
    action()
    return time.process_time() - started


def test_time_to_read_grows_as_the_notebook_does():
    for hostile in ("\n" * 64_000 + "(", " " * 64_000 + "("):
        assert seconds(lambda text=hostile: plain(text)) < 5
    chain = [f"a{n} = a{n + 1}" for n in range(4_000)]
    every = [piece for line in reversed(chain) for piece in pieces(line, frozenset())]
    assert seconds(lambda: needed("a0", 4_000, every, 4_000)) < 5
    assert len(needed("a0", 4_000, every, 4_000)) == 4_000


def test_more_magics_than_ipython_takes_are_left_as_they_are(monkeypatch):
    def gives_up(*_):
        raise RuntimeError("Input transformation still changing after 500 rounds.")

    monkeypatch.setattr("IPython.core.inputtransformer2.TransformerManager.transform_cell", gives_up)
    assert plain("%a\n%b") == "%a\n%b"


def test_the_graders_own_process_parses_nothing():
    for module in (book, feedback, classroom, folders, formgrader, handins, lms):
        assert not {"parse", "plain", "ast"} & vars(module).keys(), module.__name__


def test_more_cells_than_a_hand_writes_are_not_read():
    with pytest.raises(Unreadable, match="20000 cells"):
        cells(json.dumps({"cells": [{"cell_type": "code", "source": "x"}] * 20_000}).encode())


def test_a_notebook_is_read_in_a_process_that_may_fail(monkeypatch):
    data = json.dumps(solved()).encode()
    assert submissions.parsed(data, small_handout()) == assembled(solved())
    with pytest.raises(Unreadable, match="no notebook"):
        submissions.parsed(b"[" * 1_000_000, small_handout())
    monkeypatch.setattr(submissions, "SECONDS", 0.0)
    with pytest.raises(Unreadable, match="cannot be read within"):
        submissions.parsed(data, small_handout())


def test_what_is_the_same_for_every_hand_in_is_read_once():
    remembered = (syntax.plain, slices.pieces, syntax.likeness, reading.lesson_of)
    for function in remembered:
        function.cache_clear()
    submissions.prepare.cache_clear()
    submissions.prepare(small_handout())
    before = [function.cache_info().misses for function in remembered]
    assembled(handed_in({}))
    new = [function.cache_info().misses - many for function, many in zip(remembered, before, strict=True)]
    stubs, lessons = len(RIGHT), 0
    assert new[1] <= 2 * stubs and new[3] == lessons, "of the lesson's own cells nothing is read again"


@pytest.mark.parametrize(
    "scratch", ["q = " + "+".join(["1"] * 400), "q = x" + ".a()" * 300, "q = " + "-" * 5_000 + "1"]
)
def test_an_expression_of_any_depth_in_a_scratch_cell_costs_nothing(scratch):
    answer = newton_step(f"{RETURNS} + 0 * q")
    submission = assembled(around([scratch], answer))
    assert submission.answers["newton-step-check"] == answer and not submission.flags


@pytest.mark.parametrize(
    "source, python",
    [
        ("x = 1\n%timeit f(2)\ny = 2", "x = 1\npass\ny = 2"),
        ("def f():\n    %time x = 3\n    return x", "def f():\n    x = 3\n    return x"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%bash\nrm -rf /", ""),
        ("torch.einsum?", "pass"),
        ("!pip install einops\nimport einops", "pass\nimport einops"),
        ("x = (", "x = ("),
    ],
)
def test_what_only_a_notebook_understands_does_nothing(source, python):
    assert plain(source) == python


def runs(notebook):
    """What newton_step gives, as the sandbox runs it: the statements it needs, then its cell."""
    submission = assembled(notebook)
    namespace = {"display": print, "get_ipython": lambda: Shell({})}
    for piece in [*submission.before[NEWTON], submission.code[NEWTON]]:
        exec(piece.replace("@exercises.newton_step\n", ""), namespace)
    return is_right(namespace["newton_step"]), submission


def is_right(function):
    M = torch.tensor([[0.5, 0.1], [0.2, 0.4]], dtype=torch.float64)
    S = M.mT + 1
    return torch.equal(own_function(function)(M, S), 2 * M - M @ S @ M)


@pytest.mark.parametrize(
    "scratch, body",
    [
        ("factors = []\nfactors.append(2)", "return factors[0] * M - M @ S @ M"),
        ("factors = {}\nfor k in range(3):\n    factors[k] = k", "return factors[2] * M - M @ S @ M"),
        ("factors = []\nfor k in range(3):\n    factors.append(k)", "return factors[2] * M - M @ S @ M"),
        ("from math import *", "return sqrt(4) * M - M @ S @ M"),
        ("import functools\ntwo = []\ndef fill(x):\n    x.append(2)\nfill(two)", "return two[0] * M - M @ S @ M"),
        ("if True:\n    def two():\n        return 2", "return two() * M - M @ S @ M"),
        ("torch.set_default_dtype(torch.float64)", "return torch.tensor(2.0) * M - M @ S @ M"),
        ("%%time\ntwo = 2", "return two * M - M @ S @ M"),
        ("a = 1; two = 2", "display(M)\nreturn two * M - M @ S @ M"),
        ("two = 2\nresult = torch.einsum('ij->', torch.eye(2))\ntorch.einsum?", "return two * M - M @ S @ M"),
    ],
)
def test_an_answer_finds_what_other_cells_have_made(scratch, body):
    right, submission = runs(around([scratch], f"{newton_step(body)}\n%timeit 1 + 1"))
    torch.set_default_dtype(torch.float32)
    assert right and not submission.flags


def test_a_heavy_cell_that_the_answer_does_not_need_is_not_run():
    heavy = "history = []\nfor step in range(10**9):\n    torch.manual_seed(step)\n    history.append(step)"
    submission = assembled(around([heavy], RIGHT["newton-step"]))
    assert not any("history" in piece for pieces in submission.before.values() for piece in pieces)


PLAIN, TWO = newton_step(RETURNS), newton_step("return two * M - M @ S @ M")
SQRT = newton_step("return int(np.sqrt(4)) * M - M @ S @ M")
WRAPS = "from functools import wraps\ndef t(f):\n    @wraps(f)\n    def g(*a):\n        return f(*a)\n    return g"
N = "class N:\n    two = 2\n    def of(self, M):\n        return self.two * M"
TYPED = "def f(x: torch.Tensor) -> torch.Tensor:\n    return 2 * x"
UNSOLVED = newton_step("# your code here\nraise NotImplementedError")
STYLES = {  # what stands above the answer, its cell, what stands below the check
    "a plot below the function": ([], f"{PLAIN}\nfig, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()", []),
    "a try below the function": ([], f"{PLAIN}\nx = torch.randn(3, 3)\nprint(newton_step(x, x))", []),
    "a try that fails": ([], f"{PLAIN}\nprint(undefined)", []),
    "global": (["calls = 0"], newton_step(f"global calls\ncalls += 1\n{RETURNS}"), []),
    "a helper of a name that the lesson uses": (
        ["def history(M, S):\n    return M @ S @ M"],
        newton_step("return 2 * M - history(M, S)"),
        ["history = [step for step in range(10**9)]"],
    ),
    "a value that is given twice": (["two = 1", "two = 2"], TWO, ["two = 3"]),
    "a sum made step by step": (["two = 0\nfor k in range(2):\n    two += 1"], TWO, []),
    "a helper at the end": ([], newton_step("return twice(M) - M @ S @ M"), ["def twice(M):\n    return 2 * M"]),
    "a wrong first try in its cell": ([], f"{newton_step('return M')}\n\n{PLAIN}", []),
    "a comprehension's name": (["two = 2", "odd = [two for two in (7, 8)]"], TWO, []),
    "a class": ([N], newton_step("return N().of(M) - M @ S @ M"), []),
    "a decorator of one's own": ([WRAPS], PLAIN.replace("def ", "@t\ndef "), []),
    "a lambda": ([], "newton_step = exercises.newton_step(lambda M, S: 2 * M - M @ S @ M)", []),
    "an attribute of the function": ([], f"{TWO.replace('two', 'newton_step.two')}\nnewton_step.two = 2", []),
    "a name of the cell read in a class": (["two = 2\nclass C:\n    two = two"], TWO.replace("two", "C.two"), []),
    "a default": (["two = 2"], TWO.replace("S)", "S, two=two)"), ["two = 5"]),
    "a walrus and a with": (["with torch.no_grad():\n    (two := 2)"], TWO, []),
    "a try for an import": (["try:\n    import numpy as np\nexcept ImportError:\n    np = None"], SQRT, []),
    "a stub left below": (["def old_stub():\n    pass"], PLAIN, [UNSOLVED]),
    "filled in place": (
        ["two = torch.zeros(1)\ntorch.nn.init.constant_(two, 2)"],
        TWO.replace("two", "two.double()"),
        [],
    ),
    "types alone": ([TYPED], newton_step("return f(M) - M @ S @ M"), []),
    "timed": ([], f"%%time\n{PLAIN}", []),
    "in the check's cell": ([], f"{PLAIN}\nexercises.newton_step.check(newton_step)\nprint('hurrah')", []),
}


@pytest.mark.parametrize("style", STYLES)
def test_what_counts_is_what_the_notebook_says_from_top_to_bottom(style):
    notebook = around(*STYLES[style])
    right, submission = runs(notebook)
    assert right and submission.flags == []
    ran = [*submission.before[NEWTON], submission.code[NEWTON]]
    assert not any(sign in source for source in ran for sign in ("plt.", "randn", "10**9", "undefined"))


def top_to_bottom(notebook):
    """Whether newton_step is right once all cells above its check have run, one after the other, as in a kernel."""
    namespace = {"display": print, "get_ipython": lambda: Shell({})}
    for one in notebook.cells[: notebook.cells.index(cell(notebook, NEWTON))]:
        if one.cell_type == "code" and not grade_id(one).endswith("-check"):
            with suppress(Exception):
                exec(plain(one.source), namespace)
    return is_right(namespace["newton_step"])


@pytest.mark.parametrize("way", [*STYLES, *WAYS], ids=lambda way: getattr(way, "__name__", way))
def test_what_is_run_of_a_notebook_gives_what_all_of_it_gives(way, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    above, answer, below = STYLES[way] if isinstance(way, str) else (*way(RIGHT["newton-step"]), [])
    notebook = around(above, answer, below)
    assert runs(notebook)[0]
    if way != "a helper at the end":  # which a kernel has only if cells were run in another order
        assert top_to_bottom(notebook)


def test_an_answer_that_was_corrected_below_the_check_is_read_too():
    last = newton_step("return two * M")
    submission = assembled(around([], newton_step("return M"), [PLAIN, "two = 2", last]))
    assert submission.answers[NEWTON].endswith("return M") and submission.flags == []
    assert submission.below[NEWTON] == ([*submission.before[NEWTON][:2], "two = 2"], last)


ACTS = [  # above an answer that may be right only with what these do
    "exec('two = 2')",
    "def give():\n    global two\n    two = 2\ngive()",
    "globals()['two'] = 2",
    "config = [0]\nalias = config\nalias[0] = 2",
    "for each in [torch.nn.Linear(1, 1)]:\n    each.weight.data.fill_(2)",
    "[print for _ in range(2)]",
    "class C:\n    pass\nclass D(C):\n    pass",
    "class D(metaclass=type):\n    pass",
    "def f(x):\n    return x\n@f\ndef g():\n    pass",
    "out = object()\nout << 2",
    "out = 2\nkept = out << 2",  # of a class of one's own it is a call
    "torch.Tensor.two = 2",
    "_ = torch.nn.init.ones_(torch.zeros(1))",
    "import mine",
]
CALM = [
    "two = 2",
    "import math\nfrom collections import deque",
    "class Net(torch.nn.Module):\n    depth: int = 2\n\n    def forward(self, x):\n        return x.fill_(2)",
    "@torch.no_grad()\ndef f(x, y=2):\n    x.append(y)",
    "if torch.cuda.is_available():\n    device = 'cuda'",
    "A = torch.randn(3, 3)\nA\nprint(A @ A.mT)",
    "half = lambda x: x / 2",
    "'A note.'",
]


@pytest.mark.parametrize(("above", "acts"), [*((one, True) for one in ACTS), *((one, False) for one in CALM)])
def test_an_answer_that_is_wrong_is_tried_with_the_whole_where_more_of_it_acts(above, acts):
    wrong = assembled(around([above], newton_step("return M @ S")), files={"mine.py": ""})
    assert (NEWTON in wrong.partial) == acts
    assert above in wrong.whole.cells[: wrong.whole.ends[NEWTON][0]]


def test_what_gives_a_name_of_which_an_answer_speaks_bears_on_it():
    speaks = newton_step("return globals()['two'] * M - M @ S @ M")
    assert NEWTON in assembled(around(["two = 2"], speaks)).partial
    assert NEWTON not in assembled(around(["three = 2"], speaks)).partial
    assert NEWTON not in assembled(around([], speaks, ["two = 2"])).partial, "it stands below the check"


def test_an_answer_that_cannot_be_parsed_needs_nothing():
    answer = newton_step("return (1")
    submission = assembled(solved(newton_step=answer))
    assert submission.partial == set()
    assert submission.before[NEWTON] == [] and submission.code[NEWTON] == answer


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.source.stem)
def test_no_solution_is_flagged_and_none_needs_what_takes_long(lesson):
    source = lesson.source
    given = handout(source, source.parents[2] / "lessons" / source.parent.name / source.name)
    submission = assemble(given, cells(source.read_bytes()))
    assert submission.flags == [] and submission.answers.keys() == {question.id for question in given.automatic}
    before = [piece for pieces in submission.before.values() for piece in pieces]
    assert not [piece for piece in before if "plt." in piece or "train(" in piece]


@pytest.mark.parametrize("name", ["regression.baselines import newton", "bigrams.probes import recalled"])
def test_the_courses_own_function_as_the_answer_is_flagged(name):
    [flag] = assembled(solved(newton_step=f"from companion.topics.{name} as newton_step")).flags
    assert flag.startswith("calls the course's own code: companion.topics.")


DATA = "from companion.topics.regression import data"


@pytest.mark.parametrize(
    "source, opens",
    [
        (f"{DATA}\n{PLAIN}", False),
        (newton_step(f"data\n{RETURNS}", DATA), True),
        (newton_step(f"{DATA}\n{RETURNS}"), True),
        (newton_step(f"C\n{RETURNS}", f"class C:\n    {DATA}"), True),
    ],
)
def test_who_finds_the_course_in_the_sandbox_is_flagged(source, opens):
    submission = assembled(solved(newton_step=source))
    assert submission.course == bool(submission.flags) == opens


def test_honest_traces_of_work_are_no_flags():
    def work(notebook):
        for one in notebook.cells:
            if one.cell_type == "code" and not grade_id(one).endswith("-check"):
                one.source += "\n# tried: keep the signal, open the bracket, compile"
        notebook.cells.append(new_code_cell("signal = baselines.newton\nprint(signal)"))
        cell(notebook, "newton-step").source = newton_step("signal = M @ S @ M\nopen = 2 * M\nreturn open - signal")

    assert assembled(edited(work)).flags == []


BASELINES = "companion.topics.regression.baselines"
BORROWS, OWN = f"from {BASELINES} import newton", "calls the course's own code"
RESOLVES = "return logging.config.BaseConfigurator({}).resolve('a' + '.b')(M, S)"


@pytest.mark.parametrize(
    "body, above, flag",
    [
        ("return M * len(os.sep)", "import os", "mentions os"),
        ("return getattr(M, 'm' + 'T')", "", "mentions getattr"),
        ("return vars(torch)['s' + 'ys']", "", "mentions vars"),
        ("return M if M.is_meta else 0 * M", "", "mentions is_meta"),
        ("return exercises.newton_step.answer(M, S)", "", OWN),
        ("return newton(M, S)", BORROWS, OWN),
        ("return newton(M, S)", BORROWS.replace("c", "ｃ", 1), BASELINES),
        (f"{BORROWS}\nreturn newton(M, S)", "", f"{BASELINES}.newton"),
        (f"import {BASELINES} as b\nreturn b.newton(M, S)", "", BASELINES),
        ("return C.newton(M, S)", f"class C:\n    {BORROWS}", f"{BASELINES}.newton"),
        ("return import_item('a' + '.b')(M, S)", "from IPython.utils.importstring import import_item", "importstring"),
        (RESOLVES, "import logging.config", "BaseConfigurator"),
        ("return torch.ones(100 << 30, dtype=torch.uint8)", "", "a very large tensor"),
        ("print('x' * 1_000_000)\nreturn 0 * M", "", "a very long text"),
        ("return M", "torch.equal = print", "mentions torch.equal ="),
    ],
)
def test_what_no_answer_needs_is_flagged(body, above, flag):
    assert any(flag in said for said in assembled(solved(newton_step=newton_step(body, above))).flags)


def test_a_flag_is_short_however_much_is_odd():
    names = ", ".join(f"M.__odd_{number}__" for number in range(5_000))
    flags = assembled(solved(newton_step=newton_step("return two(M)", f"two = lambda M: [{names}]"))).flags
    assert flags and max(map(len, flags)) < 500


@pytest.mark.parametrize("name", SLY)
def test_a_way_around_the_flags_is_flagged(name):
    assert assembled(solved(newton_step=SLY[name])).flags


N_DIVIDES = "input = 2\nclass N:\n    def __truediv__(self, o):\n        return o"


@pytest.mark.parametrize(
    "source",
    [
        newton_step(RETURNS, "import os, sys\nfrom time import sleep"),
        newton_step(f"print(M, file=sys.stderr)\n{RETURNS} + 0 * sys.float_info.epsilon", "import sys"),
        newton_step("print(M.__class__.__name__)\ninput, vars = 2 * M, M @ S @ M\nreturn input - vars"),
        newton_step("return input * M - M @ S @ M", N_DIVIDES),
        newton_step(f"assert getattr(M, 'ndim') > 1, 'meta-learning, <b>no</b>: see __init__'\n{RETURNS}"),
    ],
)
def test_what_honest_answers_have_is_no_flag(source):
    assert assembled(solved(newton_step=source)).flags == []


def test_pasted_pictures_come_along_and_other_things_do_not():
    def paste(notebook):
        answer = cell(notebook, "open-question")
        answer.source += "\n![image.png](attachment:image.png) a<b"
        svg = base64.b64encode(b"<svg onload='alert(1)'/>").decode()
        answer.attachments = {
            "image.png": {"image/png": PNG},
            "fake.png": {"image/png": svg},
            "x.svg": {"image/svg+xml": svg},
            "huge.png": {"image/png": PNG + "A" * (3 << 20)},
            "odd": 3,
        }

    submission = assembled(edited(paste))
    assert submission.pictures["open-question"] == [f"data:image/png;base64,{PNG}"]
    assert submission.written["open-question"].endswith("a<b")


def test_a_check_that_passed_in_the_notebook_is_known():
    def passed(notebook):
        cell(notebook, "newton-step-check").outputs = [{"output_type": "stream", "text": ["newton_step: correct\n"]}]

    assert assembled(edited(passed)).passed == ["newton-step-check"]


def test_nothing_of_the_lesson_is_said_as_such():
    with pytest.raises(Unreadable, match="another lesson"):
        assembled({"cells": [new_markdown_cell("# Something else")]})
    assert assembled(handed_in({})).stubs == ["triplet-tokens-check", "newton-step-check", "gd-closed-form-check"]
    assert parse("(") is None


def as_file(**metadata) -> bytes:
    notebook = solved()
    notebook.metadata |= metadata
    return nbformat.writes(notebook).encode()


@pytest.mark.parametrize("companion", [{}, {"version": __version__}, {"version": 3}, {"version": "latest"}, "lost"])
def test_a_hand_in_of_this_version_or_without_one_is_read(companion):
    assert cells(as_file(companion=companion))


def test_a_hand_in_of_another_version_is_refused_with_what_to_do():
    with pytest.raises(
        Unreadable, match=r"version 0\.1 of the course, and this is \d+\.\d+: grade it with the version"
    ):
        cells(as_file(companion={"version": "0.1.7"}))
    with pytest.raises(Unreadable, match=r"version 99\.0 of the course"):
        cells(as_file(companion={"version": "99.0.1"}))


def of_version(version, notebook, questions=None):
    """The submission in a hand-in that this version of the course has released; ``questions`` of the lesson as it is
    now, by name of the answer, are other ones.
    """
    lesson = small_handout()
    lesson = replace(
        lesson, questions=tuple(replace(each, **(questions or {}).get(each.answer_id, {})) for each in lesson.questions)
    )
    notebook.metadata["companion"] = {"version": version}
    return submissions.from_file(nbformat.writes(notebook).encode(), lesson)


def test_a_hand_in_of_an_older_version_is_read_but_for_what_asks_for_something_else_by_now():
    def older(notebook):
        notebook.cells.remove(cell(notebook, "gd-closed-form"))
        cell(notebook, "newton-step-check").source = "exercises.newton_step.check(newton_step, 3)"
        cell(notebook, "newton-step-check").metadata.nbgrader.points = 7

    stub = "def newton_step(M, S, steps):\n    raise NotImplementedError"
    submission = of_version("0.3.0", edited(older), {"newton-step": {"source": stub}})
    from_0_3 = "it was made from version 0.3 of the lesson, and the exercise "
    assert submission.older == {
        "newton-step-check": f"{from_0_3}has other parameters now; it is not marked, and a person decides",
        "gd-closed-form-check": f"{from_0_3}is not in that; it is not marked, and a person decides",
    }
    assert list(submission.answers) == ["triplet-tokens-check"]
    assert submission.written["open-question"] and submission.flags == [], "what the lesson has changed is no flag"


@pytest.mark.parametrize(
    "since, version, told", [("0.4", "0.3.0", True), ("0.3", "0.3.0", False), ("0.4", "0.4.0", False)]
)
def test_an_exercise_says_since_when_it_asks_for_something_else(since, version, told):
    submission = of_version(version, solved(), {"newton-step": {"since": since}})
    assert ("asks for something else since version 0.4" in submission.older.get(NEWTON, "")) is told
    assert (NEWTON in submission.answers) is not told
    stubs = of_version(version, handed_in({}), {"newton-step": {"since": since}})
    assert (stubs.older, len(stubs.stubs)) == ({}, 3), "nothing was attempted"


def test_a_stub_of_another_version_is_one():
    head = 'def newton_step(M, S, other):\n    """Another text."""\n    # here'
    submission = of_version("0.3.0", handed_in({"newton-step": f"{head}\n    raise NotImplementedError"}))
    assert NEWTON in submission.stubs and not submission.older
    helper = newton_step("raise NotImplementedError", "half = 0.5")
    assert NEWTON not in of_version("0.3.0", handed_in({"newton-step": helper})).stubs


def test_two_answers_in_one_cell_are_no_flag():
    def merge(notebook):
        first = cell(notebook, "newton-step")
        cell(notebook, "gd-closed-form").source += f"\n\n\n{first.source}"
        notebook.cells.remove(first)

    right, submission = runs(edited(merge))
    assert right and submission.flags == []


def test_an_answer_in_a_cell_above_its_stub_is_what_other_answers_call():
    answer = f"def triplet_tokens(M, S):\n    {RETURNS}"
    notebook = handed_in({"newton-step": newton_step("return triplet_tokens(M, S)")})
    notebook.cells.insert(3, new_code_cell(answer))
    right, submission = runs(notebook)
    assert right and answer in submission.before[NEWTON]
    assert not any("NotImplementedError" in source for source in submission.before[NEWTON])
