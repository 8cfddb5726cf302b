"""A summit: measured in stages, with what only the checker knows kept back."""

import signal
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from companion.lesson.attempts import Mistake, NotAttempted
from companion.lesson.summit import Summit


def fit(xs, ys, fresh):
    return fresh @ torch.linalg.lstsq(xs, ys[:, None]).solution[:, 0]


def draw(generator):
    xs, fresh = torch.randn(2, 20, 3, generator=generator, dtype=torch.float64)
    w = torch.randn(3, generator=generator, dtype=torch.float64)
    return {"xs": xs, "ys": xs @ w, "fresh": fresh, "_targets": fresh @ w}


def points_the_right_way(inputs, got):
    agree = (got * inputs["_targets"] > 0).double().mean()
    return f"{agree:.0%} of the signs are right; all are due" if agree < 1 else None


def is_near(inputs, got):
    error = (got - inputs["_targets"]).abs().max()
    return f"the largest error is {error:.2g}; at most 1e-6 is due" if error > 1e-6 else None


@pytest.fixture
def summit():
    return Summit(
        name="fit",
        answer=fit,
        draw=draw,
        shape=lambda inputs: inputs["fresh"].shape[:1],
        stages=(points_the_right_way, is_near),
        seconds=1,
        now="you can fit a line",
    )


def test_any_answer_that_passes_the_stages_is_right(summit, capsys):
    summit.check(fit)
    summit.check(lambda xs, ys, fresh: fresh @ torch.linalg.pinv(xs) @ ys)
    summit.grade(fit)
    assert capsys.readouterr().out == "fit: correct: you can fit a line\n" * 2


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda xs, ys, fresh: -fit(xs, ys, fresh), "fit: 0% of the signs are right; all are due"),
        (lambda xs, ys, fresh: 2 * fit(xs, ys, fresh), "fit: the largest error is "),
        (lambda xs, ys, fresh: fit(xs, ys, fresh)[1:], "fit: wrong shape (19,), must be (20,), for xs (20, 3)"),
        (lambda xs, ys, fresh: None, "fit: returns nothing, where a tensor of shape"),
        (lambda xs, ys, fresh: 1.0, "fit: returns float, not a tensor of shape (20,)"),
        (lambda xs, ys, fresh: fit(xs, ys, fresh) / 0, "fit: 20 of 20 entries are NaN or infinite"),
        (lambda xs, ys, fresh: xs @ ys, "fit: raises RuntimeError at "),
        (lambda *arguments: arguments[3], "fit: raises IndexError"),  # the targets are not handed over
    ],
)
def test_the_first_stage_that_is_missing_is_the_diagnosis(summit, wrong, message):
    for examine in (summit.check, summit.grade):
        with pytest.raises(Mistake) as caught:
            examine(wrong)
        assert str(caught.value).startswith(message.rstrip())


def test_a_loop_without_an_end_ends_with_a_sentence(summit):
    def fit(xs, ys, fresh):
        while xs.abs().max() > 0:
            ys = ys + 1

    quick = replace(summit, seconds=0.02)
    # it is ignored, if the tests were begun in the background
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(
            Mistake, match=r"fit: has not come to an end in 0\.3 seconds, where a right answer takes 0\.02"
        ):
            quick.check(fit)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_runs_elsewhere_has_its_time_there(summit):
    class Elsewhere:
        searching = nullcontext

        def __call__(self, *inputs):
            time.sleep(0.2)
            return fit(*inputs)

    replace(summit, seconds=0.001).grade(Elsewhere())


def test_a_stub_is_not_attempted(summit, capsys):
    @summit
    def fit(xs, ys, fresh):
        raise NotImplementedError

    summit.check(fit)
    assert capsys.readouterr().out == "fit: not attempted\n"
    with pytest.raises(NotAttempted):
        summit.grade(fit)
