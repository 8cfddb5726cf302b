"""The machinery of exercises, on a small one: stand-in, verdicts, and every diagnosis that it makes by itself."""

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from companion.checks.exercise import Exercise, Mistake, NotAttempted


def draw(generator):
    n = int(torch.randint(3, 6, (), generator=generator))
    a, b = torch.randn(2, n, n, generator=generator, dtype=torch.float64)
    return {"a": a, "b": b}


product = Exercise("product", answer=lambda a, b: a @ b, draw=draw, mistakes={"entry by entry": lambda a, b: a * b})


def unsolved(a, b):
    raise NotImplementedError


def changes_input(a, b):
    a *= 2
    return a @ b / 2


def crashes(a, b):
    return a @ b[:-1]


WRONG = [
    (lambda a, b: a * b, "entry by entry"),
    (changes_input, "changes its argument a in place"),
    (lambda a, b: None, "`return` missing"),
    (lambda a, b: (a @ b).numpy(), "returns ndarray, not a tensor"),
    (lambda a, b: (a @ b)[:1], "wrong shape"),
    (lambda a, b: (a @ b).float(), "wrong dtype torch.float32"),
    (lambda a, b: (a @ b).log(), "NaN or infinite"),
    (lambda a, b: 3 * a @ b, "3 times what it should be"),
    (lambda a, b: -a @ b, "sign is flipped"),
    (lambda a, b: (a @ b).T, "transposed"),
    (lambda a, b: a @ a, "does not use its argument b"),
    (lambda a, b: a @ b + 1, "the worst is at"),
    (crashes, "raises RuntimeError at `return a @ b[:-1]`"),
    (lambda a, b: a @ torch.eye(len(a)) @ b, "another dtype"),
    (lambda a, b: a @ b + torch.zeros(len(a), len(a), dtype=a.dtype), "makes a tensor on the CPU"),
]


@pytest.mark.parametrize("function, message", WRONG, ids=[message for _, message in WRONG])
def test_each_mistake_is_named(function, message):
    with pytest.raises(Mistake, match=r"^product: ") as caught:
        product.check(product(function))
    assert message in str(caught.value)


def test_a_right_answer_is_called_correct(capsys):
    product.check(product(lambda first, second: torch.einsum("ij,jk->ik", first, second)))
    assert capsys.readouterr().out == "product: correct\n"


def test_until_it_is_solved_the_function_stands_in_and_the_check_says_so(capsys):
    attempt = product(unsolved)
    a, b = torch.randn(2, 3, 3)
    assert torch.equal(attempt(a, b=b), a @ b)
    product.check(attempt)
    assert capsys.readouterr().out == "product: not attempted\n"
    with pytest.raises(NotAttempted):
        product.grade(attempt)


def test_a_solved_function_is_the_learners_own():
    attempt = product(lambda a, b: a - b)
    assert attempt(5, b=3) == 2


def test_not_implemented_from_inside_something_called_is_a_crash_not_a_stub():
    attempt = product(lambda a, b: unsolved(a, b) + 1)
    with pytest.raises(Mistake, match="NotImplementedError") as caught:
        product.check(attempt)
    assert not isinstance(caught.value, NotAttempted)
    with pytest.raises(NotImplementedError):
        attempt(1, 2)


def test_the_decorated_function_keeps_its_name_and_docstring():
    def documented(a, b):
        """Says what it does."""

    assert (product(documented).__name__, product(documented).__doc__) == ("documented", "Says what it does.")


def test_grade_uses_inputs_that_check_does_not():
    seen = {"check": [], "grade": []}
    for kind, inputs in seen.items():

        def record(a, b, inputs=inputs):
            if a.device.type == "cpu":
                inputs.append(a.clone())
            return a @ b

        getattr(product, kind)(record)
    assert not any(x.shape == y.shape and torch.equal(x, y) for x in seen["check"] for y in seen["grade"])


def test_an_honest_answer_that_needs_the_numbers_is_not_taken_for_a_device_mistake():
    product.check(lambda a, b: a @ b if bool(a.isfinite().all()) else b)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    product.check(product(lambda a, b: a @ b))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_notebook_shows_the_diagnosis_and_nothing_else(capsys):
    shell = InteractiveShell.instance()
    shell.user_ns.update(product=product)
    shell.run_cell("product.check(lambda a, b: -a @ b)")
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == "product: the sign is flipped"
