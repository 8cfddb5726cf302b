"""What goes to a learner's function: weights of a model's size, as tensors; a model itself in the notebook alone."""

import re

import pytest
import torch
from workshop.grading.reading import assembled, small_handout
from workshop.grading.sharing import PATIENT
from workshop.grading.small_lesson import solved

from companion.core.llama import Llama, LlamaConfig
from companion.lesson.attempts import Mistake
from companion.lesson.exercise import Exercise, draw_normal, draw_size
from companion.workshop.grading.course import marking

sandboxed = pytest.mark.needs("sandbox")
SIZES = {"stream": (4, 80, 576), "W_Q": (64, 576), "W_K": (64, 576), "W_V": (64, 576), "W_O": (576, 64)}  # SmolLM2's
MOVES = """def newton_step(stream, W_Q, W_K, W_V, W_O):
    scores = (stream @ W_Q.mT) @ (stream @ W_K.mT).mT
    return (scores / 8).softmax(-1) @ (stream @ W_V.mT) @ W_O.mT"""


def moves(stream, W_Q, W_K, W_V, W_O, along=-1):
    """What a head moves into the stream, without a mask."""
    scores = (stream @ W_Q.mT) @ (stream @ W_K.mT).mT
    return (scores / 8).softmax(along) @ (stream @ W_V.mT) @ W_O.mT


WRONG = {"softmax over the queries": lambda **given: moves(**given, along=-2)}


def head(generator, batch=4):
    """The tensors of one head, and a stream that it reads."""
    sizes = SIZES | {"stream": (batch, *SIZES["stream"][1:])}
    return {name: draw_normal(generator, *shape).float() / shape[-1] ** 0.5 for name, shape in sizes.items()}


@pytest.fixture
def marked(shared, monkeypatch):
    """Marks an answer to an exercise; its entry."""

    def marked(exercise, source):
        monkeypatch.setattr(marking, "_exercise", lambda _: exercise)
        submission = assembled(solved(newton_step=source))
        submission.answers = {"newton-step-check": submission.answers["newton-step-check"]}
        entries = marking.mark(submission, small_handout(), [11, 12], PATIENT, unsafe=False)["exercises"]
        return entries["newton-step-check"]

    return marked


@sandboxed
@pytest.mark.parametrize(
    "batch, change, diagnosis",
    [
        (4, ("", ""), "correct"),
        (4, (".softmax(-1)", ".softmax(-2)"), "softmax over the queries"),
        (4, ("    scores", "    stream += 1\n    scores"), "changes its argument stream in place"),
        (100, ("    scores", "    return stream.add_(1)[0]\n    scores"), "changes its argument stream in place"),
    ],
)
def test_a_heads_weights_go_in_as_tensors(marked, batch, change, diagnosis):
    exercise = Exercise("moves", moves, lambda generator: head(generator, batch), mistakes=WRONG, tolerance=1e-5)
    assert diagnosis in marked(exercise, MOVES.replace(*change))["diagnosis"]


def small_llama(generator):
    layers = draw_size(generator, 1, 3)
    model = Llama(LlamaConfig(vocabulary=9, width=8, layers=layers, heads=2, key_heads=1, hidden=8, context=9))
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    return {"model": model, "tokens": torch.randint(9, (2, draw_size(generator, 3, 7)), generator=generator)}


@torch.no_grad()
def last_logits(model, tokens):
    return model(tokens)[:, -1]


TAKES_A_MODEL = Exercise("last_logits", last_logits, small_llama, mistakes={})


def test_an_exercise_may_take_a_model_where_it_is_not_marked(capsys):
    def stub(model, tokens):
        raise NotImplementedError

    TAKES_A_MODEL.check(lambda model, tokens: model(tokens, only_last=True)[:, 0])
    TAKES_A_MODEL.check(stub)
    assert capsys.readouterr().out == "last_logits: correct\nlast_logits: not attempted\n"
    with pytest.raises(Mistake, match="the sign of the answer is turned"):
        TAKES_A_MODEL.check(lambda model, tokens: -model(tokens)[:, -1])
    with pytest.raises(Mistake, match=re.escape("last_logits: wrong shape") + ".*model of class Llama"):
        TAKES_A_MODEL.check(lambda model, tokens: model(tokens))


@sandboxed
@pytest.mark.parametrize(
    "exercise, sentence",
    [
        (TAKES_A_MODEL, "a value of type Llama cannot be passed on; must be a tensor, a number or a text"),
        (
            Exercise("moves", moves, lambda generator: head(generator, 400), mistakes={}),
            "the arguments of a call take 71 MiB, where 64 are allowed",
        ),
    ],
)
def test_what_cannot_go_in_is_told(marked, exercise, sentence):
    """By the course's own answer, before anybody's is marked."""
    assert marked(exercise, MOVES) == marking.entry(0.0, "stopped", f"cannot be called in the sandbox: {sentence}")
