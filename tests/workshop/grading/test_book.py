"""What persons give in the form grader: it counts, it stays, and it is asked for again where the answer has changed."""

import json
import os
import shutil
import sqlite3
from types import SimpleNamespace

import pytest
from workshop.grading.handing_in import grade, rows
from workshop.grading.reading import small_handout
from workshop.grading.small_lesson import NAME, cell, edited, hand_in, solved
from workshop.grading.test_submissions import PNG

from companion.workshop.grading.course import classroom, formgrader
from companion.workshop.grading.course.book import Book, Given
from companion.workshop.grading.course.settings import Settings

WRITTEN, AUTOMATIC = "open-question", "newton-step-check"


def who(root):
    """The names under which the form grader shows somebody's submission."""
    with formgrader._gradebook(root / "grading") as book:
        return sorted(submission.student.id for submission in book.assignment_submissions(NAME))


def give(root, name, points, question=WRITTEN, *, extra=None, comment=None):
    """What a person does in the form grader."""
    with formgrader._gradebook(root / "grading") as book:
        given = book.find_grade(question, NAME, NAME, name)
        given.manual_score, given.extra_credit = points, extra
        given.needs_manual_grade = points is None and given.auto_score is None
        book.find_comment(WRITTEN, NAME, NAME, name).manual_comment = comment
        book.db.commit()


def asked(root, name="anna", question=WRITTEN):
    """A person's points, and whether the form grader asks for others."""
    with formgrader._gradebook(root / "grading") as book:
        given = book.find_grade(question, NAME, NAME, name)
        return given.manual_score, given.needs_manual_grade


def anonymous(root, *, on):
    (root / "grading" / "settings.toml").write_text(f"anonymous = {str(on).lower()}\n")
    assert grade(root) == []


def again(path, notebook):
    """Hand in another notebook, later."""
    path.write_text(json.dumps(notebook))
    os.utime(path, (path.stat().st_mtime + 5,) * 2)


def pending(root, name="anna"):
    return rows(root)[name]["needs_a_person"]


@pytest.mark.parametrize("first", [True, False])
def test_points_given_by_a_person_survive_anonymous_on_and_off(course, first):
    for name in ("anna", "bert"):
        hand_in(course, name, solved())
    anonymous(course, on=first)
    names = who(course)
    give(course, names[0], 4.0, extra=0.5, comment="well said")
    for on in (first, not first, not first, first):
        anonymous(course, on=on)
        assert sorted(row["points"] for row in rows(course).values()) == ["10.5", "6"]
        assert len(who(course)) == 2 and (who(course) == names) == (on == first)
        assert len(list((course / "grading/autograded").glob(f"*/{NAME}"))) == 2
        [mine] = [name for name in who(course) if asked(course, name) == (4.0, False)]
        with formgrader._gradebook(course / "grading") as book:
            assert book.find_comment(WRITTEN, NAME, NAME, mine).manual_comment == "well said"
        assert sorted(row["needs_a_person"] for row in rows(course).values()) == ["", f"to be marked: {WRITTEN}"]


def test_where_both_names_have_points_the_current_ones_count_and_it_is_said(course):
    hand_in(course, "anna", solved())
    anonymous(course, on=True)
    [pseudonym] = who(course)
    with formgrader._gradebook(course / "grading") as book:  # as a gradebook of before has it
        book.update_or_create_student("anna")
        book.update_or_create_submission(NAME, "anna")
    give(course, pseudonym, 4.0)
    give(course, "anna", 3.0, extra=0.5)
    for on, points, said in ((True, "10", "4 counts, not 3.5"), (False, "9.5", "3.5 counts, not 4")) * 2:
        anonymous(course, on=on)
        assert rows(course)["anna"]["points"] == points
        assert pending(course) == f"marked by name and by pseudonym: {WRITTEN} ({said})"
        assert who(course) == ["anna", pseudonym]
    give(course, pseudonym, 3.5)
    grade(course)
    assert pending(course) == "" and who(course) == ["anna"] and rows(course)["anna"]["points"] == "9.5"


@pytest.mark.parametrize(
    "current, other, counts",
    [
        (Given(4.0), Given(3.0), 4.0),
        (Given(4.0), Given(3.0, 1.0), 4.0),
        (Given(None, 0.5), Given(3.0), 3.0),
        (Given(None), Given(3.0, 1.0), 4.0),
        (Given(0.0), Given(3.0), 0.0),
        (Given(None, 0.5), Given(None, 1.0), None),
    ],
)
def test_what_was_given_under_a_name_is_taken_as_a_whole(current, other, counts):
    book = Book(small_handout(), Settings(), {}, {}, key="k")
    result = classroom.nothing("", small_handout()) | {"flags": [], "elsewhere": [], "days_late": 0}
    book.results = {"anna": result}
    mine, pseudonym = book.both_folders("anna")
    book.persons = {mine: {WRITTEN: current}, pseudonym: {WRITTEN: other}}
    assert book.scores("anna")[WRITTEN] == counts


CHANGES = {
    "another text": lambda notebook: setattr(cell(notebook, WRITTEN), "source", "There is one."),
    "taken out": lambda notebook: notebook.cells.remove(cell(notebook, WRITTEN)),
    "a picture": lambda notebook: cell(notebook, WRITTEN).update(
        source=cell(notebook, WRITTEN).source + "\n![x](attachment:x.png)", attachments={"x.png": {"image/png": PNG}}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_that_changed_after_it_was_marked_is_shown_until_it_is_marked_again(course, change):
    path = hand_in(course, "anna", solved())
    grade(course)
    give(course, "anna", 3.5)
    grade(course)
    assert (rows(course)["anna"]["points"], pending(course)) == ("9.5", "")
    again(path, edited(CHANGES[change]))
    for _ in range(2):
        grade(course)
        assert asked(course) == (3.5, True) and rows(course)["anna"]["points"] == "9.5"
        assert f"marked before it was changed: {WRITTEN}" in pending(course)
        summary = (course / "grading" / NAME / "summary.md").read_text()
        assert "- anna: marked before it was changed: open\\-question" in summary
    give(course, "anna", 2.0)
    grade(course)
    assert asked(course) == (2.0, False) and "before it was changed" not in pending(course)


def test_what_did_not_change_is_not_asked_for_again(course, monkeypatch):
    path = hand_in(course, "anna", solved())
    grade(course)
    give(course, "anna", 3.5)
    give(course, "anna", 1.5, AUTOMATIC)
    grade(course, force=True)
    monkeypatch.setattr(classroom, "fingerprint", lambda *_, **__: "another version of the course")
    grade(course)
    again(path, edited(lambda notebook: notebook.cells.pop(0)))  # elsewhere in the notebook
    grade(course)
    assert asked(course) == (3.5, False) and asked(course, question=AUTOMATIC) == (1.5, False)
    assert pending(course) == ""
    again(path, solved(newton_step="@exercises.newton_step\ndef newton_step(M, S):\n    return 2 * M"))
    grade(course)
    assert asked(course) == (3.5, False) and asked(course, question=AUTOMATIC) == (1.5, True)
    assert pending(course) == f"marked before it was changed: {AUTOMATIC}"


def test_a_change_is_seen_through_a_change_of_names(course):
    path = hand_in(course, "anna", solved())
    grade(course)
    give(course, "anna", 3.5)
    again(path, edited(CHANGES["another text"]))
    anonymous(course, on=True)
    assert asked(course, who(course)[0]) == (3.5, True) and "before it was changed" in pending(course)


@pytest.mark.parametrize("where", ["record", "atomic_write"])
def test_a_run_that_is_stopped_before_the_form_grader_knows_is_made_good(course, monkeypatch, where):
    path = hand_in(course, "anna", solved())
    grade(course)
    give(course, "anna", 3.5)
    again(path, edited(CHANGES["another text"]))

    def stops(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(formgrader, where, stops)
        with pytest.raises(KeyboardInterrupt):
            grade(course)
    grade(course)
    assert asked(course) == (3.5, True)
    assert "There is one." in (course / f"grading/autograded/anna/{NAME}/{NAME}.ipynb").read_text()


def test_a_question_that_is_new_can_be_marked_in_what_came_before(course):
    hand_in(course, "anna", solved())
    grade(course)
    database = sqlite3.connect(course / "grading/gradebook.db")
    with database:
        database.execute("delete from grade where cell_id in (select id from base_cell where name = ?)", [WRITTEN])
    database.close()
    grade(course, force=True)
    assert asked(course) == (None, True)


def test_a_gradebook_that_cannot_be_read_or_written_loses_no_result(course, monkeypatch):
    hand_in(course, "anna", solved())
    grade(course)
    hand_in(course, "bert", solved())
    path = course / "grading/gradebook.db"
    shutil.copy(path, path.with_name("kept.db"))
    path.write_bytes(b"no database, but of some length" * 100)
    with pytest.raises(formgrader.GradebookError, match=r"gradebook\.db cannot be read or written: file is not"):
        grade(course)
    assert rows(course).keys() == {"anna"}
    path.with_name("kept.db").replace(path)
    other = sqlite3.connect(path)
    other.execute("begin immediate")  # the form grader is writing
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3.dbapi2, "connect", lambda *words, **named: connect(*words, **named | {"timeout": 0.1}))
    with pytest.raises(formgrader.GradebookError, match="database is locked"):
        grade(course)
    assert rows(course)["bert"]["points"] == "6", "the table has what the gradebook has not"
    other.rollback()
    other.close()
    assert grade(course) == [] and who(course) == ["anna", "bert"]


def test_a_gradebook_is_never_made_by_half(course, monkeypatch):
    hand_in(course, "anna", solved())
    with monkeypatch.context() as patch:
        patch.setattr("nbgrader.api.get_alembic_version", lambda: SimpleNamespace().version)
        with pytest.raises(AttributeError):
            grade(course)
    assert [path.name for path in (course / "grading").iterdir() if "gradebook" in path.name] == []
    assert grade(course) == [] and who(course) == ["anna"]
