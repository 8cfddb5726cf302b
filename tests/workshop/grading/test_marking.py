"""What goes between the grader and a submission: no answer in, no secret out, and no more time than there is."""

import json
import re
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from nbformat.v4 import new_code_cell
from workshop.grading.answers import HEAD, RIGHT, asking_without_end
from workshop.grading.effects import EFFECTS, registered_by_a_call
from workshop.grading.reading import assembled, small_handout
from workshop.grading.self_test import lesson
from workshop.grading.sharing import PATIENT, all_in
from workshop.grading.small_lesson import around, cell, grade_id, handed_in, solved

from companion.lesson.exercise import CHECK_SEEDS
from companion.workshop.grading.course import feedback, marking
from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.handins import HandIn
from companion.workshop.grading.course.marking import _exercise, mark
from companion.workshop.grading.course.settings import Settings
from companion.workshop.grading.notebook.submissions import Submission, assemble, cells
from companion.workshop.grading.sandbox import workers
from companion.workshop.grading.sandbox.sandbox import Limits, SandboxError

pytestmark = pytest.mark.needs("sandbox")
SEEDS = [11, 12]
NEWTON = "newton-step-check"


def marked(handed_in, limits=PATIENT, given=None, seeds=SEEDS):
    """The result of a notebook or a submission."""
    submission = handed_in if isinstance(handed_in, Submission) else assembled(handed_in)
    return mark(submission, given or small_handout(), seeds, limits, unsafe=False)


def outcomes(handed_in, limits=PATIENT):
    """By question."""
    return {name: entry["outcome"] for name, entry in marked(handed_in, limits)["exercises"].items()}


def newton(notebook, limits=PATIENT, files=None):
    """The result in which the answer newton_step of a notebook, or its source, is marked alone."""
    notebook = solved(newton_step=notebook) if isinstance(notebook, str) else notebook
    submission = assembled(notebook, files)
    submission.answers = {NEWTON: submission.answers[NEWTON]}
    return marked(submission, limits)


def entry_of(notebook, limits=PATIENT):
    """What is said of the answer newton_step."""
    return newton(notebook, limits)["exercises"][NEWTON]


def of_lesson(number, function, more, seeds=SEEDS):
    """What is said of a lesson's own answer, below which there is ``more`` in its cell."""
    given, notebook = lesson(number)
    [name] = [question.id for question in given.automatic if question.function == function]
    submission = assemble(given, cells(json.dumps(notebook).encode()))
    submission.answers = {name: submission.answers[name]}
    submission.code[name] += more
    return marked(submission, given=given, seeds=seeds)["exercises"][name]


ONLY_SECRET = "    seen.append(1)\n    if len(seen) > 6:\n"


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(str(M.tolist()))",
        "raise type(str(M.tolist()).replace('.', 'p'), (Exception,), {})()",
        "return type('X' + str(M.tolist()), (), {})()",
        "exec(compile('raise ValueError', '<answer>', 'exec'))",
    ],
)
def test_what_a_learner_says_of_secret_inputs_is_not_told(shared, body):
    entry = entry_of(f"seen = []\n{HEAD}{ONLY_SECRET}        {body}\n    return 2 * M - M @ S @ M")
    assert entry["points"] == 0
    assert entry["diagnosis"].startswith("passes the visible check, but not on other inputs: ")
    assert not any(sign in entry["diagnosis"] for sign in ("[[", "0.", "p0", "p1"))


COUNTS = """
right, calls = {function}, []
def {function}(*inputs):
    calls.append(1)
    return {gives}"""


@pytest.mark.parametrize("number, function", [(7, "binary_search"), (11, "prefix_products")])
def test_no_whole_number_of_a_secret_answer_is_told(shared, number, function):
    [exercise] = [_exercise(each) for each in lesson(number)[0].automatic if each.function == function]
    calls = []
    exercise.grade(lambda *inputs: calls.append(1) or exercise.answer(*inputs), CHECK_SEEDS)
    later = f"right(*inputs) + 100_000 * (len(calls) > {len(calls)})"
    diagnosis = of_lesson(number, function, COUNTS.format(function=function, gives=later))["diagnosis"]
    assert diagnosis.startswith("passes the visible check, but not on other inputs: wrong value")
    assert "should be …" in diagnosis and "10000" not in diagnosis


@pytest.mark.parametrize("unlucky, points", [(2, 5), (3, 0)])
def test_an_answer_that_trains_may_have_bad_luck_on_two_secret_inputs_and_not_on_three(shared, unlucky, points):
    gives = f"right(*inputs) * (1 + (1 < len(calls) <= {1 + unlucky}))"
    more = COUNTS.format(function="budgeted_writer", gives=gives)
    entry = of_lesson(12, "budgeted_writer", more, [*SEEDS, 13, 14])
    assert entry["points"] == points
    assert entry["diagnosis"] == "correct" or "not on other inputs: the masses of row" in entry["diagnosis"]


@pytest.mark.parametrize(
    "change, right, diagnosis",
    [
        ("answer * 1", True, "correct"),
        ("answer.detach()", False, "the values are right, but no gradient reaches scores: it is cut off on the way"),
        ("torch.from_numpy(answer.numpy())", False, "the values are right, but where a gradient is taken it raises"),
    ],
)
def test_gradients_count_behind_the_walls_as_well(shared, change, right, diagnosis):
    more = f"\nright = soft_sort\ndef soft_sort(*inputs):\n    answer = right(*inputs)\n    return {change}"
    entry = of_lesson(7, "soft_sort", more)
    assert (entry["points"] > 0) == right
    assert entry["diagnosis"].startswith(diagnosis)


def test_an_answer_that_trains_through_a_stand_in_has_its_gradient(shared):
    """Lesson 08's summit is solved, and the loss and the soft order that it trains by are not."""
    given, notebook = lesson(7)
    ids = {question.function: question.id for question in given.automatic}
    for each in notebook["cells"]:
        if grade_id(each) in ("place-loss", "soft-sort"):
            head = "".join(each["source"]).partition('"""')[0]
            each["source"] = f"{head.rstrip()}\n    raise NotImplementedError"
    submission = assemble(given, cells(json.dumps(notebook).encode()))
    entries = marked(submission, given=given)["exercises"]
    found = {name: entries[ids[name]]["outcome"] for name in ("soft_sort", "place_loss", "train_store")}
    assert found == {"soft_sort": "not attempted", "place_loss": "not attempted", "train_store": "right"}


def test_an_honest_error_is_told_in_full(shared):
    entry = entry_of(HEAD + "    return M @ S[:1]")
    assert "raises RuntimeError at `return M @ S[:1]`: mat1 and mat2 shapes cannot be multiplied" in entry["diagnosis"]


@pytest.mark.parametrize(
    "source",
    [
        "from concurrent.futures import ThreadPoolExecutor\n@(lambda f: lambda *a: "
        "ThreadPoolExecutor(1).submit(exercises.newton_step.answer, *a).result())\ndef newton_step(M, S):\n    pass",
        HEAD + "    modules = vars(torch)['s' + 'ys'].modules\n"
        "    return modules['companion.topics.regression.exercises'].newton_step.answer(M, S)",
        HEAD
        + "    import companion.topics.regression.exercises.in_context as c\n    return c.newton_step.answer(M, S)",
        HEAD
        + "    import gc\n    return next(f for f in gc.get_objects() if getattr(f, '__name__', '') == 'newton')(M, S)",
        HEAD
        + "    import importlib as i\n    return i.import_module('companion.' + 'baselines.regression').newton(M, S)",
    ],
)
def test_the_courses_answer_is_not_there(shared, source):
    assert entry_of(source)["points"] == 0
    assert assembled(solved(newton_step=source)).flags


def test_what_was_not_attempted_stands_in_and_what_was_attempted_does_not(shared):
    uses = (
        "@exercises.gd_closed_form\ndef gd_closed_form(S, b, lr, steps):\n    half = newton_step(S, S) * 0\n"
        "    w = half[0] * 0\n    for _ in range(steps):\n        w = w - lr * (S @ w - b)\n    return w"
    )
    found = outcomes(handed_in({"gd-closed-form": uses, "triplet-tokens": RIGHT["triplet-tokens"]}))
    assert found["gd-closed-form-check"] == "right" and found[NEWTON] == "not attempted"


def test_two_that_never_end_take_nothing_from_the_third():
    sleeps = {
        name.replace("-", "_"): source.replace("):\n", "):\n    import time; time.sleep(1e9)\n", 1)
        for name, source in RIGHT.items()
    }
    sleeps.popitem()
    started = time.monotonic()
    assert [*outcomes(solved(**sleeps), Limits()).values()] == ["stopped", "stopped", "right"]
    assert time.monotonic() - started < 240


PLAIN = """def induction_layers(position, token, previous, out, beta):
    width = position.shape[1]
    layers = torch.zeros(2, 2, width, width, dtype=position.dtype)
    for a in range(width):
        for b in range(width):
            for t in range(1, len(position)):
                layers[0, 0, a, b] += beta * position[t, a] * position[t - 1, b]
            for v in range(len(token)):
                layers[0, 1, a, b] += previous[v, a] * token[v, b]
                layers[1, 0, a, b] += beta * token[v, a] * previous[v, b]
                layers[1, 1, a, b] += out[v, a] * token[v, b]
    return layers"""  # of all exercises that on which such loops take longest
SLOW = """
import time
def {name}(*inputs, quick={name}):
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        pass
    return quick(*inputs)"""


def test_honest_answers_that_are_slow_lose_nothing_beside_two_that_never_end():
    """Those come first; then all have only what a right answer may take, of which these take a third. So have those."""
    given, notebook = lesson(0)
    submission, limits = assemble(given, cells(json.dumps(notebook).encode())), Limits(patience=1)
    for place, question in enumerate(given.automatic):
        third = getattr(_exercise(question), "seconds", limits.exercise / len(CHECK_SEEDS)) / 3
        if place < limits.stops:
            submission.code[question.id] = f"def {question.function}(*inputs):\n    while True:\n        pass"
        elif question.function == "induction_layers":
            submission.code[question.id] = f"import torch\n{PLAIN}"
        else:
            submission.code[question.id] += SLOW.format(name=question.function, seconds=third)
    entries = marked(submission, limits, given)["exercises"]
    found = [entry["outcome"] for entry in entries.values()]
    assert found == ["stopped", "stopped", "right", "right", "right"], entries


def test_an_answer_corrected_below_the_check_counts_with_a_remark(shared):
    first, right = HEAD + "    return M @ S", HEAD + "    return two * M - M @ S @ M"
    below = ["two = 2", right], ["two = 3", right], [right]
    entries = [entry_of(around([], first, sources)) for sources in below]
    assert entries[0] == {"points": 2, "outcome": "right", "diagnosis": "correct, as it stands below the check"}
    assert [entry["outcome"] for entry in entries[1:]] == ["wrong", "wrong"] and entries[1] == entries[2]


WHOLE = {"points": 2, "outcome": "right", "diagnosis": "correct, where the whole notebook is run"}
HIDES = "def give():\n    global table\n    table = [2]\ngive()\ntwo = table[0]"
LATE = "two = 0\nfor step in range(2 if SCALE == 'smoke' else 10**12):\n    two += 1"


@pytest.mark.parametrize("above", ["exec('two = 2')", HIDES, LATE])
def test_where_the_code_around_an_answer_fails_or_is_late_the_whole_notebook_decides(process, above):
    late = replace(PATIENT, exercise=0.2)  # soon, as the whole notebook has a time of its own
    limits, shared = (late, nullcontext()) if above == LATE else (PATIENT, all_in(process))
    answer = HEAD + "    return two * M - M @ S @ M"
    with shared:
        entries = [entry_of(around([above], answer + more), limits) for more in ("", " + 1")]
    assert entries[0] == WHOLE and entries[1]["points"] == 0


def test_for_an_answer_that_is_merely_wrong_nothing_else_is_run(shared, monkeypatch):
    monkeypatch.setattr(marking, "_below", None)
    monkeypatch.setattr(marking, "_of_the_whole", None)
    for gives in ("M @ S @ M", "undefined @ S", "(M"):
        assert entry_of(f"{HEAD}    return {gives}")["points"] == 0


NAMES_IT = [  # how an unsolved notebook comes to the course's answer: cells before the answer, the name that it gets
    (["exec('from companion.topics.regression import exercises as zz')", "exercises = zz"], "exercises"),
    (["import companion.topics.regression.exercises as zz"], "zz"),
    (["stand_in = exercises.newton_step", "class exercises:\n    newton_step = stand_in"], "exercises"),
    (["get_ipython().push({'zz': exercises})"], "zz"),
]
GIVES = [
    "exec('def newton_step(M, S): return {}.newton_step.answer(M, S)')",
    "globals()['newton_step'] = {}.newton_step.answer",
    "newton_step = {}.newton_step.answer",
    "newton_step = lambda M, S: {}.newton_step.answer(M, S)",
    "newton_step.own.__code__ = (lambda M, S: {}.newton_step.answer(M, S)).__code__",
]


@pytest.mark.parametrize("gives", GIVES)
def test_an_unsolved_notebook_earns_nothing_whatever_it_says(shared, gives):
    for cells_before, name in NAMES_IT:
        for own in ("", "raise NotImplementedError('soon')", f"return {name}.newton_step(M, S)"):
            notebook = handed_in({"newton-step": f"{HEAD}    {own}"} if own else {})
            place = notebook.cells.index(cell(notebook, NEWTON))
            notebook.cells.insert(place, new_code_cell(gives.format(name)))
            notebook.cells[3:3] = [new_code_cell(source) for source in cells_before]
            entries = marked(notebook)["exercises"]
            assert [entry["points"] for entry in entries.values()] == [0, 0, 0], entries


def test_what_stands_in_comes_before_what_is_marked(shared):
    """An exercise that comes later could do this one's work, and is not there yet in a notebook that is read."""
    borrows = HEAD + "    return exercises.gd_closed_form.answer(M, S, 1.0, 0) * 0"
    assert outcomes(handed_in({"newton-step": borrows}))[NEWTON] == "not attempted"


def test_a_cell_without_an_end_is_interrupted_as_a_person_would():
    answer = f"two = []\nlist(map(two.append, [2]))\n{HEAD}    return two[0] * M - M @ S @ M"
    notebook = around(["while True:\n    pass", "import time\ntime.sleep(0.1)"], answer)
    assert entry_of(notebook, replace(PATIENT, cell=0.5, reading=200)) == WHOLE


@pytest.mark.parametrize("way", EFFECTS, ids=lambda way: way.__name__)
def test_answers_that_rest_on_effects_are_right_and_no_flag(shared, way):
    result = newton(around(*way(RIGHT["newton-step"])))
    entry = result["exercises"][NEWTON]
    assert entry["outcome"] == "right" and result["flags"] == [], result
    assert (entry == WHOLE) == (result["whole"] == [NEWTON])


def test_of_two_wrong_answers_that_of_the_whole_notebook_is_told(shared):
    answer = HEAD + "    return {} * M - M @ S @ M"
    as_a_kernel_has_it = newton(answer.format(1))
    above = "config = {'one': 5}\nc = config\nc['one'] = 1\n"
    result = newton(above + answer.format("config['one']"))
    assert result["exercises"] == as_a_kernel_has_it["exercises"] and result["whole"] == []


def test_an_answer_below_its_check_may_rest_on_what_code_does(shared):
    """The self-test's cases 128 and 54143: registered, and corrected below the check."""
    above, answer = registered_by_a_call(RIGHT["newton-step"])
    entry = entry_of(around([], HEAD + "    return None", [*above, answer]))
    assert entry == WHOLE | {"diagnosis": "correct, as it stands below the check, where the whole notebook is run"}


def test_modules_beside_the_notebook_are_found_and_read_for_flags(shared):
    right = "def step(M, S):\n    return 2 * M - M @ S @ M\n"
    for text, flags in ((right, []), (f"import os\n{right}\nos.getpid()", ["mentions os"])):
        result = newton(f"from helpers import step\n{HEAD}    return step(M, S)", files={"helpers.py": text})
        assert (result["exercises"][NEWTON]["outcome"], result["flags"]) == ("right", flags)


def test_what_decides_is_read_for_flags_and_said(shared):
    hidden = "exec('import ctypes\\ndef zz(M, S):\\n    return 2 * M - M @ S @ M')"
    result = newton(around([hidden], HEAD + "    return zz(M, S)"))
    assert result["whole"] == [NEWTON] and result["flags"] == ["mentions exec"]
    assert f"decided by the whole notebook: {NEWTON}" in book_of(result).needs("ann")


def book_of(result):
    """A class of one."""
    dated = HandIn("ann", None, datetime(2026, 11, 1, tzinfo=UTC)).dated
    return Book(small_handout(), Settings(), {}, {}, results={"ann": result | dated})


SHAPES = "torch.empty(0, *(int(10 * abs(each)) for each in M.flatten()[:5]))"


@pytest.mark.parametrize("gives", [SHAPES, "M.flatten()[:int(10 * abs(M[0, 0]))]", "M[:, :0]", "M.to(torch.int32)"])
def test_no_size_of_a_secret_is_told(shared, gives):
    entry = entry_of(f"seen = []\n{HEAD}{ONLY_SECRET}        return {gives}\n    return 2 * M - M @ S @ M")
    said = entry["diagnosis"].removeprefix("passes the visible check, but not on other inputs: ")
    assert said != entry["diagnosis"] and not re.search(r"(?<![a-z\d])\d", said)
    assert said.count("…") <= 6, "not even how many sizes there are"


CALLS = """
@exercises.gd_closed_form
def gd_closed_form(S, b, lr, steps):
    while True:
        newton_step(S, S)
"""


@pytest.mark.parametrize("asks", [asking_without_end(0.1), CALLS])
def test_who_asks_for_a_stand_in_without_end_has_an_end(asks):
    answers = {"triplet-tokens": RIGHT["triplet-tokens"], "gd-closed-form": asks}
    started = time.monotonic()
    limits = Limits(exercise=0.3)  # a right answer takes a thousandth of a second
    found = outcomes(handed_in(answers), limits)
    assert (found["gd-closed-form-check"], found["triplet-tokens-check"]) == ("stopped", "right")
    assert time.monotonic() - started < 240


def test_a_sandbox_that_fails_once_is_started_again(monkeypatch):
    starts, real = [], workers.Process

    def fails_first(*words, **named):
        starts.append(1)
        if len(starts) == 1:
            raise SandboxError("busy")
        return real(*words, **named)

    monkeypatch.setattr(workers, "Process", fails_first)
    assert entry_of(solved())["outcome"] == "right"


def test_the_search_for_a_reason_has_a_time_of_its_own():
    """Each call is quick enough and the answer wrong; the calls that look for the reason would take too long."""
    wrong = HEAD + "    import time; time.sleep(0.2)\n    return 3 * M @ M - M"
    hangs = (
        "seen = []\n@exercises.gd_closed_form\ndef gd_closed_form(S, b, lr, steps):\n    seen.append(1)\n"
        "    while len(seen) > 2: pass\n    return S @ b"
    )
    right = RIGHT["triplet-tokens"]
    notebook = handed_in({"newton-step": wrong, "gd-closed-form": hangs, "triplet-tokens": right})
    started = time.monotonic()
    found = outcomes(notebook, Limits(search=0.5, searches=0.75))
    assert found == {NEWTON: "wrong", "gd-closed-form-check": "wrong", "triplet-tokens-check": "right"}
    assert time.monotonic() - started < 240


def test_what_an_older_hand_in_answers_otherwise_is_left_to_a_person():
    submission = assembled(solved())
    submission.older, submission.answers = {NEWTON: "the exercise has other parameters now"}, {}
    result = marked(submission)
    assert result["exercises"][NEWTON] == marking.entry(0.0, "older", "the exercise has other parameters now")
    book = book_of(result)
    assert f"made from an older version, which has these otherwise: {NEWTON} (overrides.csv)" in book.needs("ann")
    assert "the exercise has other parameters now" in feedback.page(book, "ann")
    assert f"| {NEWTON} | 0 | 0 | 0 | 1 |" in feedback.summary(book, [])
