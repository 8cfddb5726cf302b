"""The course's own answers of lesson 09 against SciPy."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from companion.topics.multihead.exercises import minimum_norm_point


@pytest.mark.parametrize("seed", range(4))
def test_many_sweeps_end_at_the_point_of_least_norm(seed):
    generator = torch.Generator().manual_seed(seed)
    A, b = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((4, 6), (4,)))
    found = minimum_norm_point.answer(A, b, 0.3, 2000)
    slack = {"type": "ineq", "fun": lambda theta: 0.3 - np.abs(A.numpy() @ theta - b.numpy())}
    best = minimize(lambda theta: theta @ theta, np.zeros(6), jac=lambda theta: 2 * theta, constraints=slack, tol=1e-12)
    assert ((A @ found - b).abs() <= 0.3 + 1e-9).all()
    np.testing.assert_allclose(found, best.x, atol=1e-5)
