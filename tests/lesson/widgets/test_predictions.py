"""Predictions: asked, kept, read back, held beside the measurement, never in the way of a run from top to bottom."""

import json

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell

from companion.lesson.widgets.predictions import Predictions

LESSON = "07-doubling"
OPTIONS = ["linear", "exponential"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that the notebook runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def predictions():
    return Predictions(LESSON)


def asked(predictions: Predictions) -> tuple:
    number = predictions.number("steps", "How many steps?", low=1, high=1e6)
    return number, predictions.choice("rate", "Which rate?", OPTIONS), predictions.words("why", "Why?")


def test_an_answer_is_kept_and_comes_back_in_a_new_kernel(predictions, folder):
    number, choice, words = asked(predictions)
    assert predictions["steps"] is predictions["rate"] is predictions["why"] is None
    number.field.value, choice.field.value, words.field.value = "1e3", "linear", " Because. "
    assert (predictions["steps"], predictions["rate"], predictions["why"]) == (1000, "linear", "Because.")
    assert [path.name for path in folder.iterdir()] == ["predictions.json"], "and nothing half written"

    again = Predictions(LESSON)
    number, choice, words = asked(again)
    assert (again["steps"], again["rate"], again["why"]) == (1000, "linear", "Because.")
    assert (number.field.value, choice.field.value, words.field.value) == ("1000", "linear", "Because.")
    assert "Kept: 1000" in number.said.value


def test_a_cell_that_is_run_again_shows_the_same_answer(predictions):
    asked(predictions)[0].field.value = "512"
    number = predictions.number("steps", "How many steps?", low=1, high=1e6)
    assert number.value == 512
    assert number.field.value == "512"


def test_an_answer_can_be_changed_and_taken_back(predictions):
    number = asked(predictions)[0]
    number.field.value = "512"
    number.field.value = "600"
    assert predictions["steps"] == 600
    number.field.value = ""
    assert predictions["steps"] is None
    assert Predictions(LESSON).number("steps", "How many steps?", low=1, high=1e6).value is None


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("many", "“many” is not a number: write it like 512, 0.05 or 1e6."),
        ("1,5", "“1,5” is not a number"),
        ("nan", "“nan” is not a number"),
        ("0.5", "0.5 is out of range: from 1 to 1000000."),
    ],
)
def test_what_is_no_answer_is_said_and_not_kept(predictions, typed, said):
    number = asked(predictions)[0]
    number.field.value = typed
    assert said in number.said.value
    assert predictions["steps"] is None
    number.field.value = "7"
    number.field.value = typed
    assert "(Kept so far: 7)" in number.said.value
    assert predictions["steps"] == 7


def test_the_question_is_the_label_of_its_field_and_what_is_said_is_read_out(predictions):
    for question in asked(predictions):
        assert question.field.description == question.question  # ipywidgets makes it the field's <label>
        assert 'role="status"' in question.said.value
    assert "from 1 to 1000000" in asked(predictions)[0].said.value.lower()


def test_without_a_front_end_it_is_a_text(predictions):
    number, choice, _ = asked(predictions)
    data, _ = InteractiveShell.instance().display_formatter.format(choice)  # what a notebook keeps
    assert data["text/plain"] == "Your prediction: Which rate?\n- linear\n- exponential\n(no prediction yet)"
    assert "<li>exponential</li>" in data["text/html"]
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == choice.box.model_id
    number.field.value = "512"
    assert "you said 512" in number._repr_mimebundle_()[0]["text/html"]


def test_nothing_is_written_as_long_as_nothing_is_answered(predictions, folder, capsys):
    asked(predictions)
    predictions.compare("steps", 691, within=2)
    predictions.mark(plt.figure().subplots(), "steps", x=1)
    predictions.sheet()
    assert not list(folder.iterdir())
    assert capsys.readouterr().out == "How many steps? Measured 691\n"
    plt.close()


@pytest.mark.parametrize(
    ("said", "measured", "within", "verdict"),
    [
        ("512", 691, 2, "right"),
        ("512", 1025, 2, "not"),
        ("512", 256, 2, "right"),
        ("512", -512, 2, "not"),
        ("512", 0, 2, "not"),
        ("512", 512.05, ("abs", 0.1), "right"),
        ("512", 512.2, ("abs", 0.1), "not"),
        ("512", 512, None, "shown"),
        ("512", float("inf"), 2, "not"),
        ("512", float("nan"), 2, "not"),
    ],
)
def test_a_number_is_held_against_the_measurement(predictions, capsys, folder, said, measured, within, verdict):
    number = asked(predictions)[0]
    number.field.value = said
    predictions.compare("steps", measured, within=within)
    assert number.verdict == verdict
    assert capsys.readouterr().out.startswith("How many steps? You said 512; measured ")
    kept = json.loads((folder / "predictions.json").read_text())["lessons"][LESSON]["steps"]
    assert (kept["prediction"], kept["verdict"]) == (512, verdict)


def test_the_line_says_what_was_asked_and_how_it_went(predictions, capsys):
    number, choice, words = asked(predictions)
    number.field.value, choice.field.value, words.field.value = "512", "linear", "It doubles."
    predictions.compare("steps", 691.04, within=2)
    predictions.compare("rate", "exponential")
    predictions.compare("why", "it doubles")
    assert capsys.readouterr().out.splitlines() == [
        "How many steps? You said 512; measured 691 (right)",
        "Which rate? You said linear; the answer: exponential (not right)",
        "Why? You said It doubles.; one answer: it doubles",
    ]
    assert [question.verdict for question in (number, choice, words)] == ["right", "not", "shown"]


def test_without_a_prediction_the_answer_stands_alone(predictions, capsys):
    asked(predictions)
    predictions.compare("steps", 691, within=2)
    predictions.compare("why", "it doubles")
    assert capsys.readouterr().out.splitlines() == ["How many steps? Measured 691", "Why? One answer: it doubles"]


def test_no_line_is_long(predictions, capsys):
    asked(predictions)
    predictions.compare("rate", "exponential", because=f"{'The error is squared, ' * 9}and so on.")
    head, *why = capsys.readouterr().out.splitlines()
    assert head == "Which rate? The answer: exponential"
    assert max(map(len, why)) <= 80 and " ".join(why) == f"{'The error is squared, ' * 9}and so on."


@pytest.mark.parametrize("said", ["512", ""])
def test_the_reason_is_printed_beneath_whatever_was_said(predictions, capsys, said):
    asked(predictions)[0].field.value = said
    predictions.compare("steps", 691, within=2, because="Each step of Newton's doubles the digits.")
    line, why = capsys.readouterr().out.splitlines()
    assert line.startswith("How many steps? ")
    assert why == "Each step of Newton's doubles the digits."


def test_what_asks_again_stands_in_the_file(predictions, folder):
    number, choice, _ = asked(predictions)
    number.field.value, choice.field.value = "512", "linear"
    predictions.compare("steps", 691, within=("abs", 10))
    predictions.compare("rate", "exponential", because="It doubles.")
    kept = json.loads((folder / "predictions.json").read_text())["lessons"][LESSON]
    again = [(kept[id]["options"], kept[id]["within"], kept[id]["because"]) for id in ("steps", "rate")]
    assert again == [([], ["abs", 10], ""), (OPTIONS, None, "It doubles.")]


@pytest.mark.parametrize("because", ["it doubles", " ", "Because"])
def test_a_reason_is_a_sentence(predictions, because):
    asked(predictions)
    with pytest.raises(ValueError, match=f"because = {because!r}: must be a sentence, which ends with a full stop"):
        predictions.compare("steps", 691, because=because)


def test_a_sentence_that_the_options_complete_is_left_open(predictions, capsys):
    predictions.choice("shape", "The curve is", ["a line", "a step"])
    predictions.compare("shape", "a step")
    assert capsys.readouterr().out == "The curve is ... The answer: a step\n"


def test_a_changed_answer_is_judged_anew(predictions):
    choice = asked(predictions)[1]
    choice.field.value = "linear"
    predictions.compare("rate", "exponential")
    choice.field.value = "exponential"
    assert choice.verdict == "right"
    again = Predictions(LESSON)
    choice = asked(again)[1]
    assert (choice.measured, choice.verdict) == ("exponential", "right")
    choice.field.value = "linear"
    assert (choice.measured, choice.verdict) == (None, ""), "this kernel has not measured yet"


def test_the_mark_stands_at_the_prediction(predictions):
    ax = plt.figure().subplots()
    asked(predictions)[0].field.value = "512"
    predictions.mark(ax, "steps", x=10)
    predictions.mark(ax, "steps", y=0.5)
    assert [tuple(line.get_xydata()[0]) for line in ax.lines] == [(10, 512), (512, 0.5)]
    assert [text.get_text() for text in ax.texts] == ["your prediction"] * 2
    with pytest.raises(ValueError, match=r"x = None, y = None: exactly one must be given"):
        predictions.mark(ax, "steps")
    with pytest.raises(ValueError, match=r"id = 'rate': must be a question for a number; this one asks for a choice"):
        predictions.mark(ax, "rate", x=1)
    plt.close()


@pytest.mark.parametrize("at", [0, 10])
def test_the_mark_and_its_text_stay_in_the_figure(predictions, at):
    figure, ax = plt.subplots()
    ax.semilogy([0, 10], [1, 691])
    asked(predictions)[0].field.value = "512"
    predictions.mark(ax, "steps", x=at)
    figure.canvas.draw()
    text = ax.texts[0].get_window_extent()
    assert ax.bbox.containsx(text.x0)
    assert ax.bbox.containsx(text.x1)
    assert ax.bbox.containsy(text.y1)
    plt.close()


def test_the_sheet_is_honest(predictions):
    number, choice, words = asked(predictions)
    predictions.number("later", "And <then>?")
    number.field.value, words.field.value = "512", "It doubles."
    predictions.compare("steps", 691, within=2)
    predictions.compare("rate", "linear")
    predictions.compare("why", "it doubles")
    sheet = predictions.sheet()
    assert sheet.rows == [
        ("How many steps?", "512", "691", "right"),
        ("Which rate?", "-", "linear", "no prediction"),
        ("Why?", "It doubles.", "one answer: it doubles", "not judged"),
        ("And <then>?", "-", "-", "no prediction"),
    ]
    assert sheet.summary == "1 of 1 judged predictions right; 2 of 4 questions without a prediction"
    assert "And &lt;then&gt;?" in sheet._repr_html_()
    assert "How many steps? You said 512; found 691: right." in repr(sheet)


@pytest.mark.parametrize(
    "broken", ["{", "[]", '{"steps": 4}', '{"format": "other", "lessons": {}}', "\x00", '{"lessons": []}']
)
def test_a_broken_or_foreign_file_is_moved_aside_and_not_lost(folder, capsys, broken):
    (folder / "predictions.json").write_text(broken)
    (folder / "predictions (set aside 1).json").write_text("an earlier one")
    asked(Predictions(LESSON))[0].field.value = "512"
    assert (folder / "predictions (set aside 2).json").read_text() == broken
    assert (folder / "predictions (set aside 1).json").read_text() == "an earlier one"
    assert "it is now predictions (set aside 2).json" in capsys.readouterr().out
    assert asked(Predictions(LESSON))[0].value == 512


def test_lessons_in_one_folder_share_a_file(predictions):
    asked(predictions)[0].field.value = "512"
    asked(Predictions("08-tripling"))[0].field.value = "7"
    assert asked(Predictions(LESSON))[0].value == 512
    assert asked(Predictions("08-tripling"))[0].value == 7


def test_an_answer_to_another_question_does_not_count(predictions):
    asked(predictions)[0].field.value = "512"
    assert Predictions(LESSON).number("steps", "How many layers?").value is None
    assert Predictions(LESSON).number("steps", "How many steps?", high=10).value is None
    assert Predictions(LESSON).words("steps", "How many steps?").value is None


def test_a_disk_that_is_full_spoils_nothing(predictions, monkeypatch):
    def is_full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("companion.lesson.widgets.predictions.atomic_write", is_full)
    number = asked(predictions)[0]
    number.field.value = "512"
    assert predictions["steps"] == 512
    assert "could not be written: No space left on device" in number.said.value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda p: Predictions("07 doubling"), r"lesson = '07 doubling': must be a lesson's name"),
        (lambda p: p["stesp"], r"id = 'stesp': must be a question that was asked: 'steps', 'rate', 'why'"),
        (lambda p: p.compare("stesp", 1), "id = 'stesp'"),
        (lambda p: p.number("Steps!", "How?"), r"id = 'Steps!': must be small letters, digits and hyphens"),
        (lambda p: p.words("empty", " "), "question = ' ': must not be empty"),
        (lambda p: p.number("a", "How?", low=2, high=1), "low = 2, high = 1: low must be less than high"),
        (lambda p: p.choice("a", "Which?", ["one"]), r"options = \['one'\]: must be at least two texts"),
        (lambda p: p.choice("a", "Which?", ["one", "one"]), "no two the same"),
        (lambda p: p.number("steps", "How many layers?"), r"id = 'steps': was asked before as a number, 'How many"),
        (lambda p: p.choice("rate", "Which rate?", ["linear", "none"]), "id = 'rate': was asked before as a choice"),
        (lambda p: p.compare("steps", "many"), r"measured = 'many': must be a number"),
        (lambda p: p.compare("rate", "none"), r"measured = 'none': must be one of \['linear', 'exponential'\]"),
        (lambda p: p.compare("steps", 1, within=0.5), r"within = 0.5: must be a factor of at least 1, or \('abs'"),
        (lambda p: p.compare("steps", 1, within=("rel", 0.5)), r"within = \('rel', 0.5\): must be"),
        (
            lambda p: p.compare("rate", "linear", within=2),
            "within = 2: must be left out, as 'rate' asks for no number but choice",
        ),
    ],
)
def test_bad_arguments_are_named(predictions, wrong, message):
    asked(predictions)
    with pytest.raises(ValueError, match=message):
        wrong(predictions)
