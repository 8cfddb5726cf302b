"""Tests that many modules need: a sampler draws what its law says, and what is said of all arguments holds for many."""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

import hypothesis
import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import Generator, Tensor

CHANCE = 1e-9  # that a right sampler fails, at any seed
Law = Mapping[Hashable, float]


def laws(*cases: tuple[Callable[[Generator], Iterable], Law | Iterable]) -> Callable[..., None]:
    """Return a test for each case: a draw of many outcomes, by a generator, and how likely each is, up to a factor; or
    all outcomes, as often as they are equally likely. A tensor's rows are its outcomes, flat, as tuples of numbers.
    """

    sources = [inspect.unwrap(draw).__code__ for draw, _ in cases]
    names = ["-".join(code.co_names) if code.co_name == "<lambda>" else code.co_name for code in sources]

    @pytest.mark.parametrize(("draw", "law"), cases, ids=names)  # a draw in a line is called by what it calls
    def test(draw, law):
        first, again, other = (outcomes(draw(Generator().manual_seed(seed))) for seed in (1, 1, 2))
        assert first == again != other, "a seed decides"
        law = law if isinstance(law, Mapping) else Counter(law)
        assert set(first) <= set(law), f"{set(first) - set(law)} cannot be"
        number, p = {outcome: i for i, outcome in enumerate(law)}, np.array([*law.values()]) / sum(law.values())
        which = np.array([number[outcome] for outcome in first])
        fits(np.bincount(which, minlength=len(p)), p)
        half = len(which) // 2
        classes = min(20, max(2, int((half / 50) ** 0.5)))  # of about equal chance, so that pairs come often enough
        group = np.unique(((p.cumsum() - p / 2) * classes).astype(int), return_inverse=True)[1]
        share = np.bincount(group, weights=p)
        for pairs in (which[: 2 * half].reshape(half, 2), which[: 2 * half].reshape(2, half).T):
            together = np.bincount(group[pairs] @ [len(share), 1], minlength=len(share) ** 2)
            fits(together, np.outer(share, share).flatten())  # no draw tells the next

    return test


def outcomes(drawn: Iterable) -> list[Hashable]:
    """Return what was drawn, one after the other."""
    return list(map(tuple, drawn.flatten(1).tolist())) if isinstance(drawn, Tensor) else list(drawn)


def fits(often: np.ndarray, p: np.ndarray) -> None:
    """Check how often each class came against its probability, by chi square: neither too far, nor too near."""
    expected = often.sum() * p
    assert expected.min() > 5, "draw more"
    far = ((often - expected) ** 2 / expected).sum()
    assert chi2.sf(far, len(p) - 1) > CHANCE, (far, len(p), often.tolist())
    assert chi2.cdf(far, len(p) - 1) > CHANCE or len(p) < 20, "drawn without replacement"


def drawn(many: int, draw: Callable[[Generator], Hashable]) -> Callable[[Generator], list[Hashable]]:
    """Return a draw of many outcomes by one generator, one at a time."""
    return functools.wraps(draw)(lambda generator: [draw(generator) for _ in range(many)])


def quarters(x: Tensor, cdf: Callable[[Tensor], Tensor] = torch.special.ndtr) -> Tensor:
    """Return into which quarter of their law numbers fall, 0 to 3 with equal odds: of the normal one, unless told."""
    return (4 * cdf(x)).long().clamp(0, 3)


def holds(**strategies: hypothesis.strategies.SearchStrategy) -> Callable:
    """Return a decorator: a test of what holds for all arguments of a kind is given sixty of them."""
    settings = hypothesis.settings(derandomize=True, deadline=None, database=None, max_examples=60)
    return lambda test: settings(hypothesis.given(**strategies)(test))
