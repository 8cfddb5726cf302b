"""A summit: measured in stages, with what only the checker knows kept back."""

import re
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


def test_what_the_first_inputs_cannot_tell_is_asked_again(summit):
    def without_the_first(xs, ys, fresh):
        return fit(xs[1:], ys[1:], fresh)

    def just_enough():
        return {name: value[:3] for name, value in draw(torch.Generator().manual_seed(1)).items()}

    summit.check(without_the_first)
    summit = replace(summit, again=(just_enough, (is_near,)))
    summit.check(fit)
    with pytest.raises(Mistake, match=r"^fit: the largest error is "):
        summit.check(without_the_first)
    named = replace(summit, mistakes={"the first example is left out": without_the_first})
    with pytest.raises(Mistake, match=r"^fit: the first example is left out$"):
        named.check(without_the_first)


def test_an_answer_that_the_lesson_uses_in_float32_must_keep_that(summit):
    narrow = replace(summit, float32=True)
    narrow.check(fit)
    with pytest.raises(Mistake, match=r"fit: right in float64 alone; .* it gives torch.float64"):
        narrow.check(lambda xs, ys, fresh: fit(xs.double(), ys.double(), fresh.double()))


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


def sized(points, K):
    return points[:K].clone()


def test_an_argument_that_gets_another_value_must_be_used_and_right_with_it():
    exercise = Summit(
        name="sized",
        answer=sized,
        draw=lambda generator: {"points": torch.rand(9, generator=generator), "K": 3},
        shape=lambda inputs: (inputs["K"],),
        stages=(lambda inputs, got: "not the points" if not torch.equal(got, inputs["points"][: len(got)]) else None,),
        seconds=1,
        others={"K": 4},
    )
    exercise.check(sized)
    for wrong, message in (
        (lambda points, K: points[:3], "right with K = 3, but with K = 4 the answer has the same shape, (3,): K is"),
        (lambda points, K: points[:3].repeat(2)[:K], "right with K = 3, but with K = 4: not the points"),
        (lambda points, K: points[:5][-K:], "sized: not the points"),
    ):
        with pytest.raises(Mistake, match=re.escape(message)):
            exercise.check(wrong)


def climb(xs, ys, fresh):
    """Descent, a step for each row of three examples."""
    w = torch.zeros_like(xs[0])
    for x, y in zip(xs.split(3), ys.split(3), strict=True):
        w = w - 0.1 * x.mT @ (x @ w - y)
    return fresh @ w


@pytest.fixture
def trained(summit):
    """Nothing passes its stages: what is right is told by its first steps, two of seven."""

    def never(inputs, got):
        return "it has not arrived"

    def few(inputs):
        return inputs | {"xs": inputs["xs"][:6], "ys": inputs["ys"][:6]}

    def too_far(xs, ys, fresh):
        return climb(xs, 2 * ys, fresh)

    return replace(summit, answer=climb, first_steps=few, stages=(never,), mistakes={"the labels are doubled": too_far})


def test_an_answer_that_begins_as_the_courses_is_right_wherever_it_ends(trained, capsys):
    def by_sums(xs, ys, fresh):
        calls.append(len(xs))
        w = [0.0] * 3
        for start in range(0, len(xs), 3):
            x, y = xs[start : start + 3], ys[start : start + 3]
            error = sum(x[:, i] * w[i] for i in range(3)) - y
            w = [w[i] - 0.1 * float((error * x[:, i]).sum()) for i in range(3)]
        return fresh @ torch.tensor(w, dtype=xs.dtype)

    calls = []
    trained.check(by_sums)
    trained.grade(by_sums)
    assert calls == [6, 6]
    assert capsys.readouterr().out == "fit: correct: you can fit a line\n"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda xs, ys, fresh: climb(xs, ys + ys, fresh), "fit: the labels are doubled"),
        (lambda xs, ys, fresh: climb(xs, 3 * ys, fresh), "fit: it has not arrived"),
        (lambda xs, ys, fresh: climb(xs, ys, fresh)[:2], "fit: wrong shape (2,), must be (20,), for xs (6, 3)"),
    ],
)
def test_what_begins_otherwise_is_named_if_it_is_known_and_else_goes_on(trained, wrong, message):
    with pytest.raises(Mistake) as caught:
        trained.check(wrong)
    assert str(caught.value).startswith(message)


def test_what_is_the_same_for_other_labels_has_learned_nothing(trained):
    taught = replace(trained, stages=(), retaught=lambda inputs: inputs | {"ys": -inputs["ys"]})
    taught.check(lambda xs, ys, fresh: climb(xs, 3 * ys, fresh))
    with pytest.raises(Mistake, match=r"^fit: the answer is the same whatever labels it is trained on"):
        taught.check(lambda xs, ys, fresh: fresh[:, 0])


def test_another_start_is_right_where_any_may_be_taken(trained):
    def started(seed):
        def fit(xs, ys, fresh):
            torch.manual_seed(seed)
            return climb(xs, ys, fresh) + fresh @ torch.randn(3, dtype=xs.dtype)

        return fit

    with torch.random.fork_rng(devices=[]):
        free = replace(trained, answer=started(0), any_start=True)
        free.check(started(7))
        assert torch.manual_seed(3) is torch.default_generator
        for refused in (started(11), lambda *inputs: 2 * started(7)(*inputs)):
            with pytest.raises(Mistake, match="it has not arrived"):
                free.check(refused)
        with pytest.raises(Mistake, match="it has not arrived"):
            replace(free, any_start=False).check(started(7))


def test_what_begins_otherwise_and_arrives_is_right(trained):
    replace(trained, stages=()).check(lambda xs, ys, fresh: climb(xs, 3 * ys, fresh))


def test_a_listed_mistake_is_named_where_a_stage_refuses(summit):
    told = replace(summit, mistakes={"the sign is lost": lambda xs, ys, fresh: fit(xs, ys, fresh).abs()})
    with pytest.raises(Mistake, match=r"^fit: the sign is lost$"):
        told.check(lambda xs, ys, fresh: (fresh @ torch.linalg.pinv(xs) @ ys).abs())
    with pytest.raises(Mistake, match="signs are right"):
        told.check(lambda xs, ys, fresh: -fit(xs, ys, fresh))


def test_what_a_listed_mistake_gives_is_computed_once_for_each_seed(summit):
    def wrong(xs, ys, fresh):
        calls.append(len(xs))
        return -2 * fit(xs, ys, fresh)

    calls, told = [], replace(summit, mistakes={"twice too far": wrong})
    for examine in (told.check, told.check, told.grade, told.grade):
        with pytest.raises(Mistake, match="signs are right"):
            examine(lambda xs, ys, fresh: -fit(xs, ys, fresh))
    assert len(calls) == 2


def test_the_line_in_which_the_first_nan_arises_is_told(summit):
    def fit(xs, ys, fresh):
        nothing = 0 * ys[0]
        return fresh @ xs[0] * (nothing / nothing)

    with pytest.raises(Mistake, match=r"20 of 20 entries .* The first NaN arises at `return .*: 0 divided by 0"):
        summit.check(fit)


def test_what_is_used_again_must_answer_alike_where_that_is_asked(summit):
    def wavers(xs, ys, fresh):
        return fit(xs, ys, fresh) * (1 + 1e-7 * torch.rand(()))

    def wanders(xs, ys, fresh):
        return fit(xs, ys, fresh) * (1 + torch.rand(()))

    loose = replace(summit, stages=(points_the_right_way,))
    loose.check(wanders)
    repeatable = replace(loose, repeatable=True)
    for right in (fit, wavers):
        repeatable.check(right)
    for examine in (repeatable.check, repeatable.grade):
        with pytest.raises(Mistake, match="fit: gives another answer when called again with the same inputs"):
            examine(wanders)


def test_what_must_be_used_gives_another_answer_with_another_value(summit):
    used = replace(summit, stages=(), used={"ys": torch.ones(20, dtype=torch.float64)})
    for examine in (used.check, used.grade):
        examine(fit)
        with pytest.raises(Mistake, match="fit: gives the same answer for another ys: ys is not used"):
            examine(lambda xs, ys, fresh: fresh[:, 0])


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
