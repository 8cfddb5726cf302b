"""The machinery of exercises, on small ones: stand-in, verdicts, every diagnosis that it makes by itself, and what
would get around it.
"""

import contextlib
import dataclasses
import functools
import linecache
import sys
import time

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

from companion.lesson import exercise as machinery
from companion.lesson import trials
from companion.lesson.exercise import Exercise, Mistake, NotAttempted


def draw(generator):
    n = int(torch.randint(3, 6, (), generator=generator))
    a, b = torch.randn(2, n, n, generator=generator, dtype=torch.float64)
    return {"a": a, "b": b, "k": int(torch.randint(2, 9, (), generator=generator))}


def flat(generator):
    """Inputs of the shapes (m, n) and (n,), never square."""
    m = int(torch.randint(3, 5, (), generator=generator))
    return {"a": torch.randn(m, m + 2, generator=generator), "v": torch.randn(m + 2, generator=generator)}


power = Exercise(
    "power",
    answer=lambda a, b, k: a @ b * k,
    draw=draw,
    mistakes={"entry by entry": lambda a, b, k: a * b * k},
    tolerance=1e-9,
)
column = Exercise("column", answer=lambda a, v: a @ v, draw=flat, tolerance=1e-5)
number = Exercise("number", answer=lambda a, v: (a @ v).sum(), draw=flat, tolerance=1e-5)
stack = Exercise("stack", answer=lambda a, v: torch.stack([a, a + v]), draw=flat)
mask = Exercise("mask", answer=lambda a, v: a > v, draw=flat)
ranks = Exercise("ranks", answer=lambda a, v: a.argsort(-1), draw=flat)
scores = Exercise("scores", answer=lambda a, v: a.masked_fill(a > v, -torch.inf), draw=flat)
tokens = Exercise(
    "tokens", answer=lambda ids: 2 * ids, draw=lambda generator: {"ids": torch.randperm(7, generator=generator)}
)
phases = Exercise("phases", answer=lambda a, v: torch.fft.fft(a), draw=flat, tolerance=1e-5)
stated = Exercise("stated", power.answer, draw, states_dtype=True)
taught = Exercise("taught", power.answer, draw, tolerance=1e-9, gradient=("a", "b"))
ALL = (power, stated, column, number, stack, mask, ranks, scores, tokens, phases)


def unsolved(*arguments, **named):
    raise NotImplementedError


def changes_input(a, b, k):
    a *= k
    return a @ b


def crashes(a, b, k):
    return k * a @ b[:-1]


def takes_a_wrong_dtype(a, b, k):
    return (a > 0) @ (b > 0)


@torch.no_grad()
def crashes_under_a_decorator(a, b, k):
    return a @ missing


def refuses(a, b, k):
    if k > 0:
        raise ValueError
    return a @ b * k


class Agreeable(torch.Tensor):
    """Whatever it is compared with, it agrees."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(True)


WRONG = [
    (power, lambda a, b, k: a * b * k, "entry by entry"),
    (power, changes_input, "changes its argument a in place; work on a new tensor instead"),
    (power, lambda a, b, k: a.unsqueeze_(0)[0] @ b * k, "changes its argument a in place"),
    (power, lambda a, b, k: None, "returns nothing, where a tensor of shape (5, 5) is due"),
    (power, lambda a, b, k: (a @ b * k).numpy(), "returns ndarray, not a tensor of shape (5, 5)"),
    (power, lambda a, b, k: (row for row in a), "returns generator, not a tensor"),
    (power, lambda a, b, k: (a @ b, k), "returns tuple, not a tensor"),
    (number, lambda a, v: float((a @ v).sum()), "returns float, not a tensor of shape ()"),
    (power, lambda a, b, k: a.as_subclass(Agreeable), "returns Agreeable, not a tensor"),
    (power, lambda a, b, k: (a @ b)[:1], "wrong shape (1, 5), must be (5, 5), for a (5, 5), b (5, 5), k 4."),
    (number, lambda a, v: (a @ v).sum(0, keepdim=True), "wrong shape (1,), must be (), for a (3, 5), v (5,). A dim"),
    (column, lambda a, v: a @ v[:, None], "A dimension of size 1 is too many"),
    (stack, lambda a, v: torch.stack([a, a + v]).transpose(0, 1), "The sizes are right, their order is not."),
    (column, lambda a, v: (a @ v)[:, None] * (a @ v), "(3,) and (3, 1) broadcast to (3, 3)."),
    (phases, lambda a, v: torch.fft.fft(a).T, "It is the transpose of the right shape."),
    (stated, lambda a, b, k: (a @ b * k).float(), "wrong dtype torch.float32, must be torch.float64, that of"),
    (power, lambda a, b, k: a @ b > k, "wrong dtype torch.bool"),
    (power, lambda a, b, k: (a @ b * k).to(torch.complex128), "wrong dtype torch.complex128"),
    (mask, lambda a, v: (a > v).float(), "wrong dtype torch.float32, must be torch.bool"),
    (power, lambda a, b, k: (a @ b * k).to("meta"), "the answer is on meta, the inputs are on cpu"),
    (power, lambda a, b, k: (a @ b).log() * k, "entries are NaN or infinite"),
    (power, lambda a, b, k: a @ b / 0, "25 of 25 entries are NaN or infinite"),
    (power, lambda a, b, k: 3 * k * a @ b, "every entry is 3 times what it should be"),
    (power, lambda a, b, k: -a @ b * k, "the sign is flipped"),
    (power, lambda a, b, k: (a @ b).T * k, "the answer is transposed"),
    (power, lambda a, b, k: a, "the answer is the argument a, unchanged"),
    (power, lambda a, b, k: b[:], "the answer is the argument b, unchanged"),
    (power, lambda a, b, k: torch.zeros_like(a), "every entry is 0"),
    (power, lambda a, b, k: torch.ones_like(a), "does not use its argument b"),
    (power, lambda a, b, k: torch.ones_like(a) + 0 * b, "does not use its argument k"),
    (power, lambda a, b, k: torch.ones_like(a) + 0 * b * k, "the answer does not change with a"),
    (power, lambda a, b, k: a @ a * k, "does not use its argument b"),
    (power, lambda a, b, k: a @ b, "does not use its argument k"),
    (tokens, lambda ids: torch.arange(7), "does not use its argument ids"),
    (power, lambda a, b, k: a @ b * k + torch.randn_like(a), "gives another answer when called again"),
    (power, lambda a, b, k: k * (a.float() @ b.float()).double(), "nearly right, off by "),
    (power, lambda a, b, k: k * a @ b + 1, "the worst is at ["),
    (power, lambda a, b, k: torch.cat([k * a[:1] @ b + 1, k * a[1:] @ b]), "wrong values in 5 of 25 entries; "),
    (number, lambda a, v: (a @ v).mean() + 1, "wrong value "),
    (number, lambda a, v: -(a @ v).sum(), "the sign is flipped"),
    (mask, lambda a, v: a <= v, "True and False are exchanged"),
    (mask, lambda a, v: a > 0, "does not use its argument v"),
    (mask, lambda a, v: torch.ones_like(a, dtype=torch.bool), "does not use its argument v"),
    (ranks, lambda a, v: a.argsort(-1).argsort(-1), "wrong values in "),
    (scores, lambda a, v: a.masked_fill(a > v, -1e9), "wrong values in "),
    (scores, lambda a, v: a.masked_fill(a <= v, -torch.inf), "wrong values in "),
    (scores, lambda a, v: a.masked_fill(a > v, torch.nan), "wrong values in "),
    (phases, lambda a, v: torch.fft.ifft(a), "wrong values in "),
    (power, crashes, "raises RuntimeError at `return k * a @ b[:-1]`: "),
    (power, crashes, "The inputs were a (5, 5), b (5, 5), k 4."),
    (power, crashes_under_a_decorator, "raises NameError at `return a @ missing`"),
    (power, refuses, "raises ValueError at `raise ValueError`. The inputs were"),
    (power, takes_a_wrong_dtype, "raises NotImplementedError at `return (a > 0) @ (b > 0)`"),
    (power, lambda a, b: a @ b, "raises TypeError: "),
    (power, lambda a, b, k: sys.exit(), "raises SystemExit at "),
    (power, lambda a, b, k: unsolved(a), "raises NotImplementedError at "),
    (power, lambda a, b, k: a @ torch.eye(len(a)) @ b * k, "A tensor that you create has another dtype"),
    (power, lambda a, b, k: torch.einsum("ij,jk->ik", a, b.float()) * k, "A tensor that you create has another dtype"),
]  # fmt: skip
INF, NAN = torch.inf, torch.nan
ADVISED = [
    (power, lambda a, b, k: a @ b * k + torch.zeros(len(a), len(a), dtype=a.dtype), "a tensor is made on the CPU"),
    (power, lambda a, b, k: (a @ b * k).cpu(), "a tensor is made on the CPU"),
    (power, lambda a, b, k: torch.from_numpy(a.cpu().numpy() @ b.cpu().numpy() * k), "a tensor is made on the CPU"),
    (power, lambda a, b, k: (a @ b * k).float(), "the answer is in torch.float32"),
    (tokens, lambda ids: (2 * ids).int(), "the answer is in torch.int32"),
]  # fmt: skip
RIGHT = [
    (stated, lambda a, b, k: (a @ b) * k),
    (power, lambda first, second, times: times * torch.einsum("ij,jk->ik", first, second)),
    (power, lambda a, b, k: nn.Parameter(a @ b * k)),
    (power, lambda a, b, k: a.clone().requires_grad_() @ b * k),
    (power, lambda a, b, k: (b.T @ a.T * k).T),
    (power, lambda a, b, k: torch.from_numpy(a.numpy() @ b.numpy() * k)),
    (
        power,
        lambda a, b, k: a @ b * k if bool(a.isfinite().all()) else b,
    ),  # meta has no numbers to look at; that is no mistake
    (power, functools.partial(lambda a, b, k, times=1: a @ b * k * times, times=1)),
    (number, lambda a, v: torch.stack([row @ v for row in a]).sum()),
    (stack, lambda a, v: torch.stack([torch.zeros_like(v), v])[:, None] + a),
    (mask, lambda a, v: ~(v >= a)),
    (ranks, lambda a, v: a.sort(dim=1).indices),
    (scores, lambda a, v: torch.where(a > v, -torch.inf, a)),
    (tokens, lambda ids: ids + ids),
    (phases, lambda a, v: torch.fft.ifft(a, norm="forward").conj()),
]


NO_GRADIENT = [
    (lambda a, b, k: (a @ b * k).detach(), "no gradient reaches a: it is cut off on the way"),
    (lambda a, b, k: a @ b.detach() * k, "no gradient reaches b: it is cut off on the way"),
    (lambda a, b, k: torch.tensor((a @ b * k).tolist(), dtype=a.dtype), "no gradient reaches a"),
    (lambda a, b, k: a @ (b / 3 + 2 * b.detach() / 3) * k, "the gradient for b is not: every entry is 0.3333 times"),
    (lambda a, b, k: torch.from_numpy(a.numpy()) @ b * k, "where a gradient is taken it raises RuntimeError"),
]


@pytest.mark.parametrize("function, message", NO_GRADIENT, ids=[message for _, message in NO_GRADIENT])
def test_a_right_value_with_another_gradient_is_wrong_where_gradients_count(function, message, capsys):
    with pytest.raises(Mistake) as caught:
        taught.check(function)
    assert str(caught.value).startswith("taught: the values are right, but ") and message in str(caught.value)
    with pytest.raises(Mistake):
        taught.grade(function)
    power.check(function)
    assert capsys.readouterr().out.startswith("power: correct\n")


def test_a_listed_mistake_may_be_one_of_the_gradient_alone():
    cut = lambda a, b, k: a.detach() @ b * k + 0 * a  # noqa: E731
    told = dataclasses.replace(taught, mistakes={"a is cut off": cut, "b is": lambda a, b, k: a @ b.detach() * k})
    with pytest.raises(Mistake, match=r"^taught: a is cut off$"):
        told.check(lambda a, b, k: (a.detach() @ b + 0 * a) * k)
    with pytest.raises(Mistake, match=r"the gradient for b is not: every entry is 0\.3333 times"):
        told.check(lambda a, b, k: a @ (b / 3 + 2 * b.detach() / 3) * k)


def test_a_crash_may_have_a_sentence_of_its_own():
    told = dataclasses.replace(power, crashes={"^index 9 ": "There are five.", "^index ": "It is another."})
    with pytest.raises(Mistake, match=r"index 9 is out of bounds .*\. There are five\. The inputs were a \(5, 5\)"):
        told.check(lambda a, b, k: a[9])


def test_gradients_that_are_right_pass_in_whatever_way_they_come_about():
    def in_place(a, b, k):
        out = torch.zeros_like(a)
        for i, row in enumerate(a):
            out[i] = row @ b
        return out.mul_(k)

    for function in (power.answer, lambda a, b, k: (b.mT @ a.mT * k).mT, in_place, lambda a, b, k: a.mul(k) @ b):
        taught.check(function)
        taught.grade(function)
    with torch.no_grad():  # as a notebook may have it
        taught.check(power.answer)


def test_an_infinity_in_float32_is_the_same_when_the_answer_is_called_again():
    first = Exercise("first", lambda a, v: torch.where(a > 0, a, torch.inf).double().cos().nan_to_num() + a, flat)
    with pytest.raises(Mistake) as caught:
        first.check(lambda a, v: torch.where(a > 0.1, a**3, torch.inf).float())
    assert "when called again" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_answer_in_16_bits_is_told_that_it_is(dtype):
    with pytest.raises(Mistake, match=f"nearly right, off by .* of the largest entry: the answer is in {dtype}"):
        power.check(lambda a, b, k: (a @ b * k).to(dtype))


def test_a_table_names_each_toy():
    assert {exercise for exercise, _ in RIGHT} == {exercise for exercise, *_ in WRONG} - {column} == set(ALL) - {column}


@pytest.mark.parametrize(
    "exercise, function, message", WRONG, ids=[f"{exercise.name}-{message}" for exercise, _, message in WRONG]
)
def test_each_mistake_is_named_and_gets_no_points(exercise, function, message):
    with pytest.raises(Mistake, match=rf"^{exercise.name}: ") as caught:
        exercise.check(exercise(function))
    assert message in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(Mistake):
        exercise.grade(function)


@pytest.mark.parametrize("exercise, function", RIGHT)
def test_a_right_answer_is_called_correct(exercise, function, capsys):
    exercise.check(function)
    assert capsys.readouterr().out == f"{exercise.name}: correct\n"
    exercise.grade(function)


@pytest.fixture(autouse=True)
def no_advice_told_yet(monkeypatch):
    """A notebook gets some advice once."""
    monkeypatch.setattr(machinery, "told_once", set())


@pytest.mark.parametrize("exercise, function, advice", ADVISED)
def test_what_harms_nobody_is_advice(exercise, function, advice, capsys):
    exercise.check(function)
    first, *second = capsys.readouterr().out.splitlines()
    assert first == f"{exercise.name}: correct"
    assert " ".join(second).startswith(f"  Advice: {advice}") and max(map(len, second)) <= 80
    exercise.grade(function)


def test_advice_on_devices_comes_once_and_never_where_the_course_does_the_same(capsys):
    made_here = Exercise("here", lambda a, v: a + torch.zeros(len(v)), flat)
    made_here.check(lambda a, v: torch.zeros(len(v)) + a)
    for _ in range(2):
        power.check(lambda a, b, k: (a @ b * k).cpu())
    assert capsys.readouterr().out.count("made on the CPU") == 1


def test_a_wider_dtype_needs_no_advice(capsys):
    column.check(lambda a, v: a.double() @ v.double())
    tokens.check(lambda ids: 2 * ids)
    assert "Advice" not in capsys.readouterr().out


narrow = Exercise("narrow", power.answer, draw, float32=True)


@pytest.mark.parametrize(
    "wide, found",
    [
        (lambda a, b, k: a @ b @ torch.eye(len(a), dtype=torch.float64) * k, "it raises RuntimeError at "),
        (lambda a, b, k: a.double() @ b.double() * k, "it gives torch.float64"),
    ],
)
def test_an_answer_that_the_lesson_uses_in_float32_must_keep_that(wide, found, capsys):
    power.check(wide)
    narrow.check(lambda a, b, k: (a.double() @ b.double() * k).to(a))
    narrow.check(lambda a, b, k: (a @ b * k).float())
    with pytest.raises(Mistake, match=f"narrow: right in float64 alone; with inputs in float32, .*, {found}.*Take"):
        narrow.check(wide)


def test_one_set_of_inputs_does_not_settle_a_diagnosis():
    twice = Exercise("twice", lambda x: 2 * x, lambda generator: {"x": torch.randn((), generator=generator).abs() + 1})
    known = float(twice.draw(torch.Generator().manual_seed(0))["x"])
    told = Exercise(
        "twice", twice.answer, twice.draw, {"always the first": lambda x: 0 * x + known, "squared": lambda x: x * x}
    )
    with pytest.raises(Mistake, match="squared"):
        told.check(lambda x: x * x)
    with pytest.raises(Mistake, match="unchanged"):  # which it is at first; it is no constant
        told.check(lambda x: x * 1)


# -- The stand-in


def test_until_it_is_solved_the_function_stands_in_and_the_check_says_so(capsys):
    attempt = power(unsolved)
    a, b = torch.randn(2, 3, 3)
    assert torch.equal(attempt(a, b, k=2), 2 * a @ b)
    power.check(attempt)
    assert capsys.readouterr().out == "power: not attempted\n"
    with pytest.raises(NotAttempted, match="power: not attempted"):
        power.grade(attempt)


def test_a_solved_function_is_the_learners_own_right_or_wrong():
    attempt = power(lambda a, b, k=1: a - b + k)
    assert attempt(5, b=3) == 3


@pytest.mark.parametrize(
    "around",
    [
        lambda attempt: lambda a, b, k: attempt(a, b, k) * 1,
        lambda attempt: lambda a, b, k: power(unsolved)(a, b, k) * 1,
        power,
        lambda attempt: power(power(attempt)),
    ],
    ids=["called", "made inside", "decorated twice", "decorated thrice"],
)
def test_the_stand_in_earns_nothing_by_whatever_way_it_is_called(around, capsys):
    function = around(power(unsolved))
    power.check(function)
    assert capsys.readouterr().out == "power: not attempted\n"
    with pytest.raises(NotAttempted):
        power.grade(function)


def test_an_answer_may_build_on_another_exercise_that_is_not_solved_yet():
    before = column(unsolved)
    number.grade(lambda a, v: before(a, v).sum())


@pytest.mark.parametrize("wrong", [lambda a, v: 2 * (a @ v), lambda a, v: a @ a.mT @ v], ids=["value", "crash"])
def test_an_answer_is_not_blamed_for_a_wrong_one_that_it_builds_on(wrong):
    before = column(wrong)
    with pytest.raises(Mistake, match="right with the course's column in place of yours; mend column first"):
        number.check(lambda a, v: before(a, v).sum())
    with pytest.raises(Mistake, match="every entry is 0"):
        number.check(lambda a, v: 0 * column.answer(a, v).sum())
    with pytest.raises(Mistake) as own:  # wrong by itself, too
        number.check(lambda a, v: before(a, v).max())
    assert "column first" not in str(own.value)


def test_a_function_that_calls_itself_for_ever_is_no_stub():
    attempt = power(lambda a, b, k: attempt(a, b, k) * 1)
    with pytest.raises(Mistake, match="RecursionError"):
        power.grade(attempt)


def test_an_error_of_a_solved_function_is_not_covered_up_by_the_stand_in():
    a, b = torch.randn(2, 3, 3)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        power(takes_a_wrong_dtype)(a, b, 1)
    with pytest.raises(NotImplementedError):
        power(lambda a, b, k: unsolved(a))(a, b, 1)


def test_a_stub_may_be_decorated_itself(capsys):
    power.check(power(torch.no_grad()(unsolved)))
    assert capsys.readouterr().out == "power: not attempted\n"


def test_a_stand_in_is_back_after_a_check():
    attempt = power(unsolved)
    with pytest.raises(Mistake):
        power.check(lambda a, b, k: attempt(a, b, k) if False else crashes(a, b, k))
    assert attempt(torch.eye(2), torch.eye(2), 1).shape == (2, 2)


def test_the_decorated_function_keeps_its_name_and_docstring():
    def documented(a, b):
        """Says what it does."""

    assert (power(documented).__name__, power(documented).__doc__) == ("documented", "Says what it does.")


# -- What a check does around the function


def test_grade_uses_inputs_that_check_does_not():
    seen = {"check": [], "grade": []}
    for kind, inputs in seen.items():

        def record(a, b, k, inputs=inputs):
            if a.device.type == "cpu":
                inputs.append(a.clone())
            return a @ b * k

        getattr(power, kind)(record)
    assert len(seen["check"]) == len(machinery.CHECK_SEEDS) and len(seen["grade"]) == len(machinery.GRADE_SEEDS)
    assert not any(x.shape == y.shape and torch.equal(x, y) for x in seen["check"] for y in seen["grade"])


@pytest.mark.parametrize("kind", ["check", "grade"])
def test_an_interruption_is_let_through(kind):
    def interrupted(a, b, k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        getattr(power, kind)(interrupted)


@pytest.mark.parametrize("function", [lambda a, b, k: a @ b * k, lambda a, b, k: a @ a])
def test_the_global_random_state_is_left_alone(function):
    before = torch.get_rng_state()
    with contextlib.suppress(Mistake):
        power.check(power(function))
    assert torch.equal(torch.get_rng_state(), before)


# -- In a notebook


@pytest.fixture
def shell():
    shell = InteractiveShell.instance()
    shell.user_ns.update(power=power, unsolved=unsolved)
    yield shell
    linecache.clearcache()


@pytest.mark.parametrize(
    "cell, shown",
    [
        ("def f(a, b, k):\n    return -a @ b * k\npower.check(f)", "power: the sign is flipped"),
        ("power.grade(power(unsolved))", "power: not attempted"),
        ("power.check(power(unsolved))", "power: not attempted"),
        (
            "@power\ndef f(a, b, k):\n    c = a @ b\n    return c.nothing\npower.check(f)",
            "power: raises AttributeError at `return c.nothing`: ",
        ),
        ("import sys\npower.check(lambda a, b, k: sys.exit(2))", "power: raises SystemExit at "),
    ],
)
def test_a_notebook_shows_the_diagnosis_and_nothing_else(shell, cell, shown, capsys):
    shell.run_cell(cell)
    output = capsys.readouterr()
    lines = (output.out + output.err).strip().splitlines()
    assert f"{' '.join(lines)} ".startswith(shown)
    assert max(map(len, lines)) <= 80 and len(lines) <= 3, "and no traceback"


def test_a_notebook_stops_at_a_mistake_alone(shell, capsys):
    assert shell.run_cell("power.check(power(unsolved))").success
    assert not shell.run_cell("power.grade(power(unsolved))").success
    assert not shell.run_cell("power.check(lambda a, b, k: a)").success


def test_the_search_for_a_reason_ends_in_time(monkeypatch):
    """A wrong answer that is slow is told that it is wrong, and no more."""
    monkeypatch.setattr(trials, "SEARCH_SECONDS", 0.1)
    calls = []

    def slow(a, b, k):
        calls.append(time.process_time())
        while time.process_time() < calls[-1] + 0.06:
            pass
        return (a @ b * k).cos()

    with pytest.raises(Mistake, match="wrong values in"):
        power.check(slow)
    assert len(calls) <= 3  # the one that was wrong, and two that looked for the reason


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        ([1, INF, 2, 4, 5], [1, INF, 3, 4, 5], "wrong values in 1 of 5 entries; the worst is at [2]: 2, should be 3"),
        ([INF, -INF, 7], [INF, -INF, 6], "wrong values in 1 of 3 entries; the worst is at [2]: 7, should be 6"),
        ([INF, -INF, 7], [INF, INF, 6], "wrong values in 2 of 3 entries; the worst is at [1]: -inf, should be inf"),
        ([INF, 2, 3], [INF, INF, 4], "wrong values in 2 of 3 entries; the worst is at [1]: 2, should be inf"),
        ([INF, NAN, 3], [INF, 2, 4], "wrong values in 2 of 3 entries; the worst is at [1]: nan, should be 2"),
        ([-INF, 0, 0], [-INF, 0, 1], "wrong values in 1 of 3 entries; the worst is at [2]: 0, should be 1"),
        ([[INF, 1], [1, 1]], [[INF, INF], [INF, INF]], "wrong values in 3 of 4 entries; the worst is at [0, 1]: 1, "),
        ([INF, 2.0002, 3], [INF, 2, 3], "nearly right, off by at most 7e-05 of the largest entry"),
        (INF, 2, "wrong value inf, should be 2"),
        (NAN, INF, "wrong value nan, should be inf"),
    ],
)
def test_infinity_in_both_is_no_wrong_value(got, expected, message):
    got, expected = (torch.tensor(values, dtype=torch.float64) for values in (got, expected))
    assert scores._compare_values(got, expected).startswith(message)
