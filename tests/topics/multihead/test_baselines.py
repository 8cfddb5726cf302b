"""Each stage against SciPy or a loop; the whole algorithm on fresh teachers, and what it must refuse."""

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.optimize import minimize

from companion.core.measuring import measured_table
from companion.topics.multihead import baselines as algorithm
from companion.topics.multihead.baselines import NotCertifiedError, learn, one_head
from companion.topics.multihead.data import HOSTILE, Teacher, hostile, sequences, teacher, with_noise
from companion.topics.multihead.model import relative_loss


def test_the_first_step_is_minus_the_gradient_at_zero():
    X, Y = sequences(40, 3, 6, generator=1), torch.randn(40, 3, 6, dtype=torch.float64)
    w = torch.zeros(6, 6, dtype=torch.float64, requires_grad=True)
    even = X.mean(1, keepdim=True).expand_as(X)
    (gradient,) = torch.autograd.grad(((even @ w - Y).square().sum((1, 2)) / 2).mean(), w)
    torch.testing.assert_close(algorithm.first_step(X, Y), -gradient)


def test_the_certificate_is_the_constrained_fit():
    X, Y, W = (
        sequences(5, 4, 9, kind="gaussian", generator=2),
        torch.randn(5, 4, 9, dtype=torch.float64),
        torch.randn(9, 9, dtype=torch.float64),
    )
    p, residual = algorithm.certificate(X, Y, W)
    size = Y.square().sum(-1).mean().sqrt().item()
    for n, r in itertools.product(range(5), range(4)):
        Z, y = (X[n] @ W).numpy(), Y[n, r].numpy()
        condition = {"type": "eq", "fun": lambda p: p.sum() - 1}
        fit = minimize(lambda p, Z=Z, y=y: ((p @ Z - y) ** 2).sum(), np.full(4, 0.25), constraints=condition, tol=1e-12)
        np.testing.assert_allclose(p[n, r], fit.x, atol=1e-4)
        assert residual[n, r].item() == pytest.approx(np.sqrt(fit.fun) / size, rel=1e-5)


def test_constraints_hold_for_every_head_where_heads_agree():
    theta = teacher(7, 1, generator=3).thetas[0]
    X = sequences(20, 3, 7, generator=4)
    kept = torch.zeros(20, 3, dtype=torch.bool)
    kept[::2, 1] = True
    rows, logs, weights = algorithm.constraints(X, (X @ theta @ X.mT).softmax(-1), kept)
    assert rows.shape == (20, 49)
    torch.testing.assert_close(rows @ theta.flatten(), logs)
    assert (weights > 0).all()


def test_the_hull_of_exact_constraints_holds_every_head():
    thetas = teacher(5, 3, generator=5).thetas
    free = torch.linalg.qr((thetas[1:] - thetas[0]).flatten(1).mT).Q
    rows = torch.randn(200, 25, dtype=torch.float64)
    rows = rows - rows @ free @ free.mT  # constraints that cannot see what the heads differ in
    hull = algorithm.fit_hull(rows, rows @ thetas[0].flatten(), torch.ones(200, dtype=torch.float64), 3)
    assert max(hull.distance(theta) for theta in thetas) < 1e-8


def test_the_best_tuple_is_the_best_of_all_fits():
    layer, X = teacher(5, 2, generator=6), sequences(300, 2, 5, generator=7)
    Y = layer(X)
    hull = algorithm.Hull(
        layer.thetas[0], (layer.thetas[1] - layer.thetas[0])[None] / (layer.thetas[1] - layer.thetas[0]).norm()
    )
    points = torch.linspace(-1, 2, 7, dtype=torch.float64)[:, None]
    best, loss, many = algorithm.best_tuple(X, Y, hull, points, 2)
    losses = {}
    for a, b in itertools.combinations(range(7), 2):
        phi = torch.cat([algorithm.features(X, theta) for theta in hull.at(points[[a, b]])], dim=-1).flatten(0, 1)
        left = Y.flatten(0, 1) - phi @ torch.linalg.lstsq(phi, Y.flatten(0, 1)).solution
        losses[a, b] = (left.square().sum() / Y.square().sum()).item()
    assert many == 21
    assert loss == pytest.approx(min(losses.values()), rel=1e-3)
    assert torch.equal(best, points[list(min(losses, key=losses.get))])


@pytest.mark.parametrize(("heads", "axis"), [(1, 9), (2, 41), (3, 9), (4, 9)])
def test_the_net_is_the_grid_points_of_a_ball(heads, axis):
    base = torch.tensor([[3.0, 0], [0, 4]]).double()  # of norm 5
    net = algorithm.hull_net(algorithm.Hull(base, torch.zeros(heads - 1, 2, 2).double()), heads)
    radius = 15 * heads**0.5
    grid = itertools.product(np.linspace(-radius, radius, axis), repeat=heads - 1)
    np.testing.assert_allclose(net, [at for at in grid if np.linalg.norm(at) < radius + 1e-9], atol=1e-12)


def test_the_last_stages_solve_for_w_and_go_down():
    layer, X = teacher(5, 2, generator=8), sequences(300, 3, 5, generator=9)
    torch.testing.assert_close(algorithm.solve_ws(X, layer(X), layer.thetas), layer.ws, rtol=0, atol=1e-6)
    goal = torch.tensor([[1.0], [-2.0]]).double()
    torch.testing.assert_close(algorithm.descend(lambda at: (at - goal).square().sum() + 1, 0 * goal), goal)


@cache
def refined(kind, sharpness, seed):
    """A layer, its inputs, and what stages 2 to 4 make of its labels without noise."""
    layer = teacher(12, 2, sharpness=sharpness, generator=seed)
    X = sequences(20_000, 2, 12, kind=kind, generator=seed + 100)
    return layer, X, algorithm.refine(X, layer(X), 2)


@pytest.mark.parametrize("kind", ["boolean", "gaussian"])
@pytest.mark.parametrize(("sharpness", "noise"), [(1.0, 0.0), (2.0, 0.0), (1.0, 0.02), (2.0, 0.02)])
@pytest.mark.types_unchecked
def test_two_heads_are_learned(kind, sharpness, noise):
    for seed in range(5000, 5003):
        layer, X, (sums, _, _, hull) = refined(kind, sharpness, seed)
        report = learn(X, with_noise(layer(X), noise, generator=seed), heads=2)
        fresh = sequences(2000, 2, 12, kind=kind, generator=seed + 200)
        assert relative_loss(Teacher(report.thetas, report.ws), fresh, layer(fresh)) < 1e-3
        first, last = ((estimate - layer.ws.sum(0)).norm() for estimate in (sums[0], sums[-1]))
        assert last < first / 5
        assert max(hull.distance(theta) / theta.norm() for theta in layer.thetas) < 0.1


@pytest.mark.types_unchecked
def test_three_heads_are_learned_from_more():
    layer, X = teacher(12, 3, generator=6000), sequences(200_000, 2, 12, generator=6001)
    report = learn(X, layer(X), heads=3)
    fresh = sequences(2000, 2, 12, generator=6002)
    assert relative_loss(Teacher(report.thetas, report.ws), fresh, layer(fresh)) < 1e-2


def refused_or_right(X, Y, fresh):
    """True if `learn` refuses; fails unless an answer explains the last ``fresh`` examples, which it has not seen."""
    try:
        report = learn(X[:-fresh], Y[:-fresh], heads=2)
    except NotCertifiedError:
        return True
    assert relative_loss(Teacher(report.thetas, report.ws), X[-fresh:], Y[-fresh:]) < 0.02
    return False


@pytest.mark.parametrize("kind", HOSTILE)
def test_labels_of_another_kind_are_refused(kind):
    refused = [refused_or_right(*hostile(kind, 6000, 2, 12, generator=7000 + seed), 1000) for seed in range(2)]
    assert all(refused) or kind == "sum of W of rank 1"  # a layer of two heads, if a hard one: it may be learned


def test_the_table_of_hostile_teachers_is_what_comes_out():
    """Two entries of the lesson's table, drawn and cut as its cell does with SEED 0 and 3."""
    table = measured_table("multihead-hostile")
    said = table.where(kind="sum of W of rank 1").columns["said"]
    for seed in (0, 3):
        X, Y = hostile("sum of W of rank 1", 4000, 2, 12, generator=seed + 80)
        refused = refused_or_right(X.roll(-400, 0), Y.roll(-400, 0), 400)
        assert (said[seed] == "refused") == refused
    assert table.grid("seed", "kind", of="said").shape == (10, len(HOSTILE))
    assert table.values("said") == ["refused", "right"]  # nothing was answered wrongly


@pytest.mark.parametrize("seed", range(4))
def test_few_sequences_are_refused_rather_than_fitted_badly(seed):
    layer, X = teacher(12, 2, sharpness=2.0, generator=7100 + seed), sequences(2940, 2, 12, generator=7110 + seed)
    refused_or_right(X, layer(X), 1000)


def test_a_bad_fit_does_not_loosen_the_bar(monkeypatch):
    """A certificate that promises nothing: the bar must not follow it."""
    layer, X = teacher(12, 2, generator=7200), sequences(5000, 2, 12, generator=7201)
    honest = algorithm.refine

    def promises_nothing(X, Y, heads):
        sums, kept, residuals, hull = honest(X, Y, heads)
        return sums, kept, [0.5 for _ in residuals], algorithm.Hull(torch.zeros_like(hull.base), hull.directions)

    monkeypatch.setattr(algorithm, "refine", promises_nothing)
    with pytest.raises(NotCertifiedError):
        learn(X, layer(X), heads=2)


@pytest.fixture(scope="module")
def plainly_learned():
    """A layer, its inputs, and what is found of them as they are."""
    layer, X = teacher(12, 2, generator=7300), sequences(5000, 2, 12, generator=7301)
    return layer, X, algorithm.fit_layer(X, layer(X), heads=2)


@pytest.mark.parametrize(("of_x", "of_y"), [(1, 1e-12), (1, 1e6), (1e-3, 1), (7, 1e-6)])
def test_scales_of_tokens_and_labels_do_not_matter(plainly_learned, of_x, of_y):
    layer, X, plain = plainly_learned
    scaled = learn(of_x * X, of_y * layer(X), heads=2)
    assert scaled.loss == pytest.approx(plain.loss, rel=0.01)
    torch.testing.assert_close(scaled.thetas * of_x**2, plain.thetas, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(scaled.ws * of_x / of_y, plain.ws, rtol=1e-4, atol=1e-6)
    assert scaled.hull.distance(plain.thetas[0] / of_x**2) < 1e-4 * plain.thetas[0].norm() / of_x**2


@pytest.mark.parametrize("k", [12, 14])
def test_as_many_tokens_as_dimensions_are_refused(k):
    X = torch.randn(3000, k, 12, dtype=torch.float64)
    with pytest.raises(NotCertifiedError, match=f"k = {k}, d = 12"):
        learn(X, X, heads=2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("d", "k"), [(12, 2), (8, 3), (6, 5)])
def test_one_head_is_recovered_exactly(d, k, seed):
    layer = teacher(d, 1, sharpness=2.0, generator=seed)
    X = sequences(200, k, d, generator=seed + 10)
    theta, w = one_head(X, layer(X))
    assert (w - layer.ws[0]).abs().max() < 1e-8
    assert (theta - layer.thetas[0]).abs().max() < 1e-8


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda X: learn(X, X, heads=0), "heads = 0"),
    (lambda X: learn(X[:, :1], X[:, :1], heads=1), "k = 1"),
    (lambda X: learn(X[:100], X[:100], heads=2), "n = 100: at least 1440 sequences of 2 tokens"),
    (lambda X: learn(X[:450, :, :3], X[:450, :, :3], heads=2), "n = 450: at least 90 .* beside 500 held out"),
    (lambda X: learn(X, X / 0, heads=2), "Y of shape .* every entry finite"),
    (lambda X: learn(X, 0 * X, heads=2), "Y: every label is 0"),
    (lambda X: learn(X, X, heads=4), "heads = 4: the net has 177,556,160 tuples"),
    (lambda X: learn(X, X, heads=7), "heads = 7: the net has"),
    (lambda X: learn(X, X, heads=10**6), "heads = 1000000: the net has"),
    (lambda X: learn(X, X, heads=True), "heads = True"),
    (lambda X: learn(X, X.float(), heads=2), "torch.float32: must be the same"),
    (lambda X: one_head(X[:3], X[:3]), "n = 3: at least 8 sequences"),
    (lambda X: one_head(X.repeat(1, 6, 1), X.repeat(1, 6, 1)), "k = 12, d = 12"),
    of=lambda call: call(sequences(3000, 2, 12, generator=1)),
)


test_examples_of_another_type_are_named = refusals(
    ((np.zeros((9, 2, 5)), torch.zeros(9, 2, 5), 2), "X of type ndarray"),
    ((torch.zeros(9, 2, 5), torch.zeros(9, 2, 5, dtype=torch.int64), 2), "Y of type torch.int64"),
    ((torch.zeros(9, 2, 5).half(), torch.zeros(9, 2, 5).half(), 2), "X of type torch.float16"),
    ((torch.zeros(9, 5), torch.zeros(9, 5), 2), r"X of shape \(9, 5\)"),
    ((torch.ones(9, 2, 5), torch.ones(8, 2, 5), 2), r"Y of shape \(8, 2, 5\)"),
    ((torch.ones(9, 2, 5), torch.ones(9, 2, 5), 2.0), "heads = 2.0"),
    ((torch.ones(9, 2, 5), torch.ones(9, 2, 5), "2"), "heads = '2'"),
    of=lambda wrong: algorithm.check_examples(*wrong),
)
