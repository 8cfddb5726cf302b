"""``test --processors``: answers and lessons under each setting of the processor, gone on with where it was stopped."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from sample_lesson import CLAIM, NAME, checkout

from companion.lesson.disturbed import VARIABLE, disturbed, given
from companion.workshop.cli import outcomes, processors
from companion.workshop.cli.lessons import all_lessons, everything
from companion.workshop.cli.outcomes import Kept
from companion.workshop.cli.processors import ProcessorsError, Setting

STARTS = Path(__file__).parents[2] / "wrong_answers/starts.py"
SETTINGS = [Setting("default", "", 1), Setting("default", "", 2)]
CASES = """
import inspect
from dataclasses import dataclass
import torch
from companion.lesson.bars import reaches
from companion.lesson.disturbed import given
from companion.lesson.exercise import Exercise
from companion.lesson.summit import Summit

@dataclass
class Case:
    source: str
    message: str | None = None

def compiled(exercise, source):
    namespace = {"torch": torch}
    exec(source, namespace)
    return exercise(namespace[exercise.name])

def twice(x): return 2 * x

def train(x): return x

def learned(inputs, got):
    share = got.mean().item()
    return None if reaches("share", share, 0.5) else "too small a share"

EXERCISES = {
    ("tides", "twice"): Exercise("twice", twice, lambda g: {"x": torch.rand(5, generator=g).double()}, mistakes={}),
    ("tides", "train"): Summit(
        "train", train, lambda g: {"x": 0.75 + torch.rand(5, generator=g) / 16}, mistakes={},
        shape=lambda inputs: (5,), stages=(learned,), seconds=1,
    ),
}
CASES = {
    ("tides", "twice"): [Case("def twice(x): return x + x"), Case("def twice(x): return x", "half")],
    ("tides", "train"): [
        Case("def train(x): return x - 0.125"), Case("def train(x): return x / 2", "too small"),
        Case("def train(x): raise SystemExit", "raises"),
    ],
}
"""


def checkout_of_answers(folder):
    """Two exercises, one of which trains, their answers, and the real process that tries them."""
    place = folder / "tests/wrong_answers"
    place.mkdir(parents=True)
    shutil.copyfile(STARTS, place / "starts.py")
    (place / "cases.py").write_text(CASES, encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path):
    return checkout_of_answers(tmp_path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(a checkout, what was found under both settings)."""
    root = checkout_of_answers(tmp_path_factory.mktemp("checkout"))
    return root, tried(root)


def tried(root, starts=3, settings=SETTINGS, wanted=lambda job: True):
    return processors.try_answers(wanted, settings, root / "build/answers.csv", root, starts)


def written(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_right_answer_is_tried_under_each_setting_and_kept(ran):
    root, rows = ran
    assert written(root / "build/answers.csv") == rows
    right = [(row["exercise"], row["answer"], row["threads"]) for row in rows if outcomes.is_right(row)]
    assert right == [
        (exercise, answer, threads)
        for threads in "12"
        for exercise in ("twice", "train")
        for answer in ("course", "right 1")
    ]
    assert {(row["starts"], row["refused"]) for row in rows} == {("3", "0"), ("3", "3")}
    wrong = [(row["exercise"], row["answer"], row["threads"]) for row in rows if row["refused"] == "3"]
    assert wrong == [("train", "wrong 1", "1"), ("train", "wrong 2", "1")], "of summits, once"


def test_it_goes_on_where_it_was_stopped_and_measures_anew_what_has_changed(ran, root):
    rows = [row for row in ran[1] if row["threads"] == "1"]
    path, cases = root / "build/answers.csv", root / "tests/wrong_answers/cases.py"
    path.parent.mkdir()
    lines = (ran[0] / "build/answers.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(rows)]) + lines[len(rows)][:20], encoding="utf-8")  # ended while it wrote
    cases.write_text(CASES.replace("return x + x", "return x + x + x"), encoding="utf-8")
    again = tried(root, settings=SETTINGS[:1])
    changed = [(old["answer"], new["refused"]) for old, new in zip(rows, again, strict=True) if old != new]
    assert changed == [("right 1", "3")]
    assert len(written(path)) == len(rows) - 1 + 2, "the one that has changed, and the one that was being written"


def test_a_refused_answer_and_each_bars_place_are_reported(root):
    cases = root / "tests/wrong_answers/cases.py"
    cases.write_text(CASES.replace("return x + x", "return 2 * x.float().double() * (1 + 1e-5)"), encoding="utf-8")
    rows = tried(root, settings=SETTINGS[:1])
    bars = list(outcomes.bar_rows(rows))
    said = list(outcomes.summary(rows, bars, []))
    assert said[:3] == [
        "exercise: answers x settings x starts: refused",
        "  twice: 2 x 1 x 3: 3",
        "  train: 2 x 1 x 3: 0",
    ]
    assert said[3].startswith("Refused: twice, right 1, default, 1 threads: start 0: twice: ")
    [bar] = bars
    assert {name: bar[name] for name in ("exercise", "name", "sense", "bar")} == {
        "exercise": "train",
        "name": "share",
        "sense": "at least",
        "bar": "0.5",
    }
    worst_right, best_wrong, best_right = (float(bar[name]) for name in ("worst_right", "best_wrong", "best_right"))
    assert 0.35 < best_wrong < 0.41 and 0.62 < worst_right < 0.69 and 0.75 < best_right < 0.82
    assert not outcomes.stands(bar), "right answers are farther from each other than from the bar"
    assert outcomes.stands(bar | {"best_right": bar["worst_right"]})
    assert not outcomes.stands(
        bar | {"best_right": bar["worst_right"], "bar": bar["best_wrong"]} | {"sense": "at most"}
    )


def test_the_command_writes_what_the_course_keeps(root, monkeypatch, capsys):
    checkout(root)
    monkeypatch.setattr(processors, "every_setting", lambda: SETTINGS[:1])
    monkeypatch.setattr(processors.run, "execute", lambda *_: {"claims": [CLAIM], "errors": []})
    assert processors.main([], root) == 0
    tables = root / "tests/wrong_answers"
    answers = written(tables / "processors.csv")
    assert [(row["exercise"], row["answer"], row["starts"], row["refused"]) for row in answers] == [
        (exercise, answer, "30", "0") for exercise in ("train", "twice") for answer in ("course", "right 1")
    ]
    assert [row["worst"].partition(": ")[0] for row in answers] == ["share", "share", "-", "-"]
    assert [row["name"] for row in written(tables / "bars.csv")] == ["share"]
    assert len(written(tables / "processors-lessons.csv")) == 3
    assert "train: 2 x 1 x 30: 0" in capsys.readouterr().out
    row = answers[0] | {"bars": "[]", "said": "start 3: too near"}
    monkeypatch.setattr(processors, "try_answers", lambda *_: [row | {"refused": "1"}])
    assert processors.main([], root) == 1


def test_a_process_that_dies_is_named(root):
    cases = root / "tests/wrong_answers/cases.py"
    dying = "def twice(x):\n    import os\n    os._exit(3)"
    cases.write_text(CASES.replace('"def twice(x): return x + x"', repr(dying)), encoding="utf-8")
    with pytest.raises(ProcessorsError, match=r"twice, right 1: its process ended with status 3, under .*threads=1"):
        tried(root)
    assert [row["answer"] for row in written(root / "build/answers.csv")] == ["course"], "what was done is kept"


def test_answers_are_disturbed_but_in_the_first_start(root):
    told, cases = root / "told.txt", root / "tests/wrong_answers/cases.py"
    body = f"open({str(told)!r}, 'a').write(repr((x.tolist(), torch.rand(3).tolist())) + '\\n')\n    return 2 * x"
    answer = repr(f"def twice(x):\n    {body}")
    cases.write_text(CASES.replace('"def twice(x): return x + x"', answer), encoding="utf-8")
    [row] = tried(root, 3, SETTINGS[:1], lambda job: (job["exercise"], job["answer"]) == ("twice", "right 1"))
    assert row["refused"] == "0"
    for start, line in enumerate(told.read_text(encoding="utf-8").splitlines()):
        plain = torch.rand(5, generator=torch.Generator().manual_seed(1000 + start)).double()
        torch.default_generator.manual_seed(1000 + start)
        with disturbed(start):
            assert line == repr((given(plain, start).tolist(), torch.rand(3).tolist()))


def test_a_lesson_has_the_exercises_that_it_mentions(tmp_path):
    for name, mentioned in (("01-waves", "one"), ("02-surf", "two")):
        checkout(tmp_path, name=name, closing=f"from companion.topics.waves import exercises\nexercises.{mentioned}")
    lessons, wanted = processors.selection(["02"], tmp_path)
    assert [lesson.name for lesson in lessons] == ["02-surf"]
    jobs = [
        {"topic": "waves", "exercise": "one"},
        {"topic": "waves", "exercise": "two"},
        {"topic": "x", "exercise": "two"},
    ]
    assert list(map(wanted, jobs)) == [False, True, False]
    lessons, wanted = processors.selection(["waves"], tmp_path)
    assert [lesson.name for lesson in lessons] == ["01-waves", "02-surf"]
    assert list(map(wanted, jobs)) == [True, True, False]
    assert len(processors.selection([], tmp_path)[0]) == 2


def test_every_exercise_belongs_to_a_lesson():
    from wrong_answers.cases import EXERCISES

    for_each = [processors.selection([lesson.name[:2]])[1] for lesson in everything()]
    jobs = [{"topic": topic, "exercise": name} for topic, name in EXERCISES]
    assert [job for job in jobs if not any(wanted(job) for wanted in for_each)] == []


def test_the_settings_are_those_of_the_machine():
    settings = processors.every_setting()
    assert [setting.threads for setting in settings] == [1, 2] * (len(settings) // 2)
    assert settings[0].capability == "default"
    assert "MKL_CBWR" not in settings[0].environment()
    assert Setting("avx2", "COMPATIBLE", 2).environment().items() >= {
        ("ATEN_CPU_CAPABILITY", "avx2"),
        ("MKL_CBWR", "COMPATIBLE"),
        ("OMP_NUM_THREADS", "2"),
    }


def test_outcomes_that_changed_are_listed_and_a_lesson_is_not_run_again(tmp_path, monkeypatch):
    checkout(tmp_path)
    seen = []

    def execute(lesson, scale, seed, out):
        at = os.environ["ATEN_CPU_CAPABILITY"], os.environ.get(VARIABLE)
        seen.append(at)
        other = {"expected": {"run": "not as expected"}} if at == ("default", "2") else {}
        errors = ["cell 3: Mistake: refused"] if at == ("avx2", "1") else []
        return {"claims": [CLAIM | other, CLAIM | {"id": "halves"}], "errors": errors}

    monkeypatch.setattr(processors.run, "execute", execute)
    settings = [Setting("default", "", 1), Setting("avx2", "", 1), Setting("avx2", "COMPATIBLE", 1)]
    lessons = all_lessons(tmp_path)
    rows = processors.try_lessons(lessons, settings, tmp_path / "build", tmp_path)
    assert seen == [(capability, start) for capability in ("avx2", "default") for start in (None, "1", "2")]
    assert [(row["lesson"], row["claims"]) for row in rows] == [(NAME, "2")] * 6
    assert [row["changed"] for row in rows] == [
        "-",
        "cell 3: Mistake: refused",
        "-",
        "-",
        "-",
        "doubles: run as expected, reproduced -> run not as expected, reproduced",
    ]
    assert processors.try_lessons(lessons, settings, tmp_path / "build", tmp_path) == rows
    assert len(seen) == 6
    assert "2 with another outcome" in list(outcomes.summary([], [], rows))[-1]


def test_a_kernel_is_disturbed_where_the_environment_asks(tmp_path):
    plain = "import torch; x = torch.rand(8, generator=torch.Generator().manual_seed(0)); print('drawn', x.tolist())"
    checkout(tmp_path, closing=plain)
    [lesson] = all_lessons(tmp_path)
    drawn = []
    for start in (0, 1):
        row = processors._run(lesson, "default", start, tmp_path / "build")
        assert json.loads(row["errors"]) == [] and list(json.loads(row["outcomes"])) == ["doubles"]
        cells = json.loads((tmp_path / f"build/{NAME}.ipynb").read_text(encoding="utf-8"))["cells"]
        [text] = [output["text"] for output in cells[-1]["outputs"]]
        drawn.append(json.loads("".join(text).removeprefix("drawn ")))
    assert drawn[0] != drawn[1] and drawn[0] == pytest.approx(drawn[1], rel=1e-6)


def test_what_a_table_has_of_others_stays(tmp_path):
    path = tmp_path / "table.csv"
    outcomes.put(path, [{"exercise": "b", "refused": "1"}, {"exercise": "a", "refused": "0"}], "exercise", whole=True)
    outcomes.put(path, [{"exercise": "b", "refused": "0"}], "exercise", whole=False)
    assert written(path) == [{"exercise": "a", "refused": "0"}, {"exercise": "b", "refused": "0"}]
    outcomes.put(path, [{"exercise": "b", "refused": "0"}], "exercise", whole=True)
    assert written(path) == [{"exercise": "b", "refused": "0"}]


def test_a_growing_table_of_other_columns_begins_anew(tmp_path):
    path = tmp_path / "rows.csv"
    Kept(path, ("key", "old")).add({"key": "1", "old": "2"})
    kept = Kept(path, ("key", "new"))
    assert kept.rows() == []
    kept.add({"key": "1", "new": "a, b"})
    assert Kept(path, ("key", "new")).rows() == [{"key": "1", "new": "a, b"}]
