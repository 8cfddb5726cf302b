"""Points are stored in an order that learns, and searched as a plain loop says; a learned sketch counts as the
classical ones do.

The sketch counts in whole cells, and is count-min when its networks are set by hand.
"""

import inspect

import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.structures.data import item_counts, zipf_streams
from companion.topics.structures.model import NOTES_FIRST, Sketch, SketchConfig, Structure, StructureConfig, soft_sort
from companion.topics.structures.recipes import squared_errors

# --- Storing points


def structure(*, seed=1, **sizes):
    torch.manual_seed(seed)
    return Structure(StructureConfig(**{"n": 6, "dim": 2, "lookups": 3, "hidden": 16} | sizes))


def test_soft_sort_is_the_permutation_that_sorts():
    scores = torch.randn(50, 9)
    order = soft_sort(scores)
    expected = torch.zeros(50, 9, 9)
    for row, into in zip(scores.tolist(), expected, strict=True):
        for place, point in enumerate(sorted(range(9), key=row.__getitem__)):
            into[place, point] = 1
    torch.testing.assert_close(order, expected)
    assert ((order @ scores[..., None])[..., 0].diff() > 0).all()


def test_the_gradient_of_soft_sort_is_that_of_the_soft_matrix():
    scores, weight = (
        torch.randn(4, 7, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 7, 7, dtype=torch.float64),
    )
    (gradient,) = torch.autograd.grad((soft_sort(scores) * weight).sum(), scores)
    total = 0
    for s, w in zip(scores, weight, strict=True):
        t = 0.1 * ((s - s.mean()).square().sum() / 6).sqrt()
        for place, point in enumerate(s.argsort()):
            e = torch.exp(-(s[point] - s).abs() / t)
            total = total + (w[place] * e / e.sum()).sum()
    (expected,) = torch.autograd.grad(total, scores)
    # but for the 1e-6 that keeps a temperature from being 0
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("extra", [0, 3])
def test_points_are_stored_in_another_order_with_the_extra_slots_behind(extra):
    model, points = structure(extra=extra), torch.randn(20, 6, 2)
    order, values = model.store(points)
    assert order.shape == (20, 6, 6)
    assert values.shape == (20, 6 + extra, 2)
    whole = order.round()
    torch.testing.assert_close(order, whole)
    assert (whole.sum(1) == 1).all()
    assert (whole.sum(2) == 1).all()
    torch.testing.assert_close(values[:, :6], torch.stack([p[o.argmax(1)] for p, o in zip(points, whole, strict=True)]))
    assert len(whole.unique(dim=0)) > 1  # it depends on the points


def test_without_permute_points_stay_where_they_are_given():
    points = torch.randn(5, 6, 2)
    order, values = structure(permute=False).store(points)
    assert torch.equal(order, torch.eye(6).expand(5, 6, 6))
    assert torch.equal(values, points)


def test_without_marks_on_the_inputs_what_is_stored_does_not_depend_on_their_order():
    model, points = structure(extra=2), torch.randn(40, 6, 2)
    shuffled = points[:, torch.randperm(6)]
    assert not torch.allclose(model.store(shuffled).values, model.store(points).values)
    with torch.no_grad():
        model.given[:6] = 0
    torch.testing.assert_close(model.store(shuffled).values, model.store(points).values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("extra", [0, 2])
def test_a_structure_that_has_no_marks_is_blind_to_the_order_in_which_points_are_given(extra):
    model, points = structure(marks=False, extra=extra), torch.randn(40, 6, 2)
    assert (model.given is None) == (extra == 0)
    values = model.store(points).values
    torch.testing.assert_close(model.store(points[:, torch.randperm(6)]).values, values, rtol=1e-4, atol=1e-4)
    if extra:
        assert not torch.allclose(values[:, -1], values[:, -2])  # the slots are told apart


def test_a_data_network_that_rewrites_stores_other_values_in_the_given_order():
    model, points = structure(rewrite=True), torch.randn(20, 6, 2)
    order, values = model.store(points)
    assert torch.equal(order, torch.eye(6).expand(20, 6, 6))
    assert values.shape == points.shape
    assert not torch.allclose(values, points, atol=0.1)


def test_the_loss_of_a_rewriting_network_is_that_of_what_it_reads_last():
    model = structure(rewrite=True)
    points, query, noise = torch.randn(20, 6, 2), torch.randn(20, 3, 2), torch.randn(20, 3, 3, 6)
    nearest, values, errors = torch.randint(6, (20, 3)), model.store(points).values, []
    for k in range(20):
        for j in range(3):
            logits = step_by_step(model, values[k], query[k, j], noise[k, j])[-1]
            read = ((logits + noise[k, j, -1]) / 2).softmax(-1) @ values[k]
            errors.append((read - points[k, nearest[k, j]]).square().sum())
    loss = squared_errors(model, points, query, nearest, noise)
    torch.testing.assert_close(loss, torch.stack(errors).mean())
    loss.backward()
    assert model.write.weight.grad.any()


def test_of_pictures_both_networks_see_the_number_of_one_encoder():
    model = structure(dim=192, pictures=True)
    points, query = torch.rand(4, 6, 192), torch.rand(4, 192)
    with torch.no_grad():
        order, values = model.store(points)
        assert values.shape == (4, 6, 1)
        torch.testing.assert_close(values, order @ model.read(points))
        one = model.lookups(values, query)
        # the picture as it is looked at: three digits side by side
        side_by_side = query.view(4, 3, 8, 8).permute(0, 2, 1, 3).reshape(4, 1, 8, 24)
        read = torch.nn.Sequential(*model.read)(side_by_side)
        torch.testing.assert_close(read, model.read(query))
        model.read = torch.nn.Identity()
        torch.testing.assert_close(one, model.lookups(values, read))


@pytest.mark.parametrize("frozen", [False, True])
def test_only_a_frozen_data_network_does_not_learn(frozen):
    model = structure(frozen=frozen, extra=2)
    points, query = torch.randn(8, 6, 2), torch.randn(8, 2)
    model.lookups(model.store(points).values, query, torch.zeros(8, 3, 8)).square().sum().backward()
    for name, parameter in model.named_parameters():
        learns = name.startswith("queries") or not frozen
        assert parameter.requires_grad == learns
        assert (
            parameter.grad is not None and bool(parameter.grad.any())
        ) == learns or name == "score.bias"  # an order has no level


# --- Looking them up


def step_by_step(model, values, query, noise=None):
    """The logits of one query's lookups."""
    scale, places = model.config.scale, len(values)
    known, logits = [query / scale, query.asinh()], []
    for i, network in enumerate(model.queries):
        logits.append(network(torch.cat(known)))
        if noise is None:
            weights = [float(place == logits[-1].argmax()) for place in range(places)]
        else:
            weights = torch.softmax((logits[-1] + noise[i]) / model.config.temperature, 0).tolist()
        found = sum(weight * value for weight, value in zip(weights, values, strict=True))
        where = sum(weight * (2 * place / (places - 1) - 1) for place, weight in enumerate(weights))
        known += [
            torch.tensor([*weights, where]),
            found / scale,
            found.asinh(),
            (query - found) / scale,
            (query - found).asinh(),
        ]
    return torch.stack(logits)


@pytest.mark.parametrize(("noisy", "temperature"), [(False, 2.0), (True, 2.0), (True, 0.5)])
@torch.no_grad()
def test_lookups_are_those_of_a_loop(noisy, temperature):
    model = structure(extra=2, scale=0.3, temperature=temperature)
    values, query = torch.randn(30, 8, 2), torch.randn(30, 2)
    noise = torch.randn(30, 3, 8) if noisy else None
    logits = model.lookups(values, query, noise)
    for k in range(30):
        expected = step_by_step(model, values[k], query[k], noise[k] if noisy else None)
        torch.testing.assert_close(logits[k], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
@torch.no_grad()
def test_several_queries_search_one_set_as_each_alone(noisy, norm):
    model = structure(norm=norm)
    values, query = torch.randn(5, 6, 2), torch.randn(15, 2)
    noise = torch.randn(15, 3, 6) if noisy else None
    alone = model.lookups(values.repeat_interleave(3, 0), query, noise)
    torch.testing.assert_close(model.lookups(values, query, noise), alone)


def test_layer_norm_comes_after_each_hidden_map_and_before_its_relu():
    plain, normed = structure(), structure(norm=True)
    kinds = [type(layer).__name__ for layer in normed.queries[0]]
    assert kinds == ["Linear", "LayerNorm", "ReLU", "Linear", "LayerNorm", "ReLU", "Linear"]
    assert [type(layer).__name__ for layer in plain.queries[0]] == [kind for kind in kinds if kind != "LayerNorm"]


@pytest.mark.parametrize("noise", [None, torch.zeros(5, 3, 6)], ids=["argmax", "softmax"])
def test_only_adaptive_lookups_after_the_first_know_what_was_found(noise):
    values, query = torch.randn(5, 6, 2), torch.randn(5, 2)
    for adaptive in (False, True):
        model = structure(adaptive=adaptive)
        one, other = model.lookups(values, query, noise), model.lookups(values + 1, query, noise)
        assert [torch.equal(one[:, i], other[:, i]) for i in range(3)] == [True, not adaptive, not adaptive]


def test_a_first_lookup_starts_out_at_the_slots():
    model, points, query = structure(extra=4), torch.randn(60, 6, 2), torch.randn(60, 2)
    assert (model.search(points, query)[:, 0] == -1).all()
    assert (structure().search(points, query) >= 0).all()


def test_a_search_names_points_and_slots():
    model = structure(extra=4)
    with torch.no_grad():
        model.queries[0][-1].bias[6:] -= NOTES_FIRST
    points, query = torch.randn(60, 6, 2), torch.randn(60, 2)
    found = model.search(points, query)
    values = model.store(points).values
    for k, places in enumerate(model.lookups(values, query).argmax(-1)):
        for place, point in zip(places.tolist(), found[k].tolist(), strict=True):
            if place >= 6:
                assert point == -1
            else:
                torch.testing.assert_close(points[k, point], values[k, place])
    assert found.unique().tolist() == [-1, *range(6)]


@pytest.mark.parametrize("switches", [{}, {"extra": 2}, {"permute": False, "adaptive": False}, {"adaptive": False}])
def test_doubles_are_searched_too(switches):
    model, points, query = structure(**switches), torch.randn(20, 6, 2), torch.randn(20, 2)
    found = model.search(points, query)
    assert torch.equal(model.double().search(points.double(), query.double()), found)


test_bad_structures_are_named_with_their_value = refusals(
    (lambda: structure(n=1), "^n = 1: must be at least 2$"),
    (lambda: structure(dim=0), "^dim = 0: must be at least 1$"),
    (lambda: structure(lookups=0), "^lookups = 0: must be at least 1$"),
    (lambda: structure(extra=-1), "^extra = -1: must be at least 0$"),
    (lambda: structure(width=3), "^width = 3: must be at least 4$"),
    (lambda: structure(layers=0), "^layers = 0: must be at least 1$"),
    (lambda: structure(hidden=0), "^hidden = 0: must be at least 1$"),
    (lambda: structure(scale=0), "scale = 0: must be positive"),
    (lambda: structure(scale=-2.0), "scale = -2.0: must be positive"),
    (lambda: structure(temperature=0), "temperature = 0"),
    (lambda: structure(temperature=-1.0), "temperature = -1.0"),
    (lambda: structure(temperature=float("nan")), "temperature = nan"),
    (lambda: structure(pictures=True), "^dim = 2: must be 192, the pixels of a picture$"),
    (lambda: structure().store(torch.randn(3, 5, 2)), r"points of shape \(3, 5, 2\): must be \(batch, 6, 2\)"),
    (lambda: structure().store(torch.randn(3, 6, 1)), r"points of shape \(3, 6, 1\): must be \(batch, 6, 2\)"),
    (
        lambda: inspect.unwrap(Structure.lookups)(structure(), torch.randn(5, 6, 2), torch.randn(7, 2)),
        "^query: has 7 rows; must have a multiple of 5, the number of sets$",
    ),
    (
        lambda: structure().ask(torch.randn(5, 2), [torch.randn(5, 2)]),
        "^seen: an entry has size 2; must have 8: what was read, 2, and its place as 6 weights, by the identity",
    ),
)


# --- The sketch


class CountMin(Sketch):
    """The sketch with a count-min's rules in place of its networks."""

    conservative = False

    def added(self, cells):
        return (cells.amin(-1, keepdim=True) + 1 - cells).clamp_min(0) if self.conservative else torch.ones_like(cells)

    def estimated(self, cells):
        return cells.amin(-1)


def in_a_loop(stream, cells, memory, *, conservative):
    """The count-min sketch on plain lists, one stream after the other."""
    estimates = []
    for row in stream.tolist():
        counters = [0] * memory
        for item in row:
            least = min(counters[cell] for cell in cells[item])
            for cell in cells[item]:
                if not conservative or counters[cell] == least:
                    counters[cell] += 1
        estimates.append([min(counters[cell] for cell in each) for each in cells])
    return torch.tensor(estimates, dtype=torch.float32)


def sketch(kind=Sketch, *, seed=1, **sizes):
    torch.manual_seed(seed)
    return kind(SketchConfig(**{"items": 20, "memory": 9, "lookups": 2, "hidden": 8} | sizes))


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("lookups", [1, 2, 3])
def test_with_the_rules_of_count_min_it_is_count_min(conservative, lookups):
    model = sketch(CountMin, lookups=lookups)
    model.conservative = conservative
    cells = torch.stack([torch.randperm(9)[:lookups] for _ in range(20)])
    with torch.no_grad():
        model.places.copy_(5 * F.one_hot(cells, 9))
    stream = zipf_streams(6, 40, 20, generator=2)
    torch.testing.assert_close(
        model(stream), in_a_loop(stream, cells.tolist(), 9, conservative=conservative), rtol=0, atol=0
    )


def test_its_networks_see_nothing_but_the_cells():
    model, stream = sketch(), zipf_streams(3, 15, 20, generator=3)
    cells = model.places.argmax(-1)
    for row, estimates in zip(stream, model(stream), strict=True):
        memory = torch.zeros(9)
        for item in row:
            seen = memory[cells[item]]
            memory = memory.index_add(0, cells[item], F.softplus(model.update(torch.cat([seen, seen - seen.min()]))))
        for item in range(20):
            seen = memory[cells[item]]
            torch.testing.assert_close(estimates[item], model.predict(torch.cat([seen, seen - seen.min()]))[0])


def test_cells_are_whole_and_their_gradient_is_the_softmax_s():
    model = sketch()
    where = model.where()
    assert torch.equal(where.detach(), F.one_hot(model.places.argmax(-1), 9).float())
    weight = torch.randn_like(where)
    (gradient,) = torch.autograd.grad((where * weight).sum(), model.places)
    (expected,) = torch.autograd.grad((model.places.softmax(-1) * weight).sum(), model.places)
    torch.testing.assert_close(gradient, expected)


def test_an_arrival_never_takes_away():
    assert (sketch().added(20 * torch.randn(200, 2)) >= 0).all()


def test_only_a_frozen_sketch_keeps_its_cells():
    for frozen in (False, True):
        model = sketch(frozen=frozen)
        model(zipf_streams(4, 30, 20, generator=4)).square().mean().backward()
        assert (model.places.grad is None) == frozen
        assert all(parameter.grad is not None for name, parameter in model.named_parameters() if name != "places")


def test_where_there_is_memory_for_all_it_learns_to_count():
    model = sketch(items=3, memory=3, lookups=1, hidden=32)
    with torch.no_grad():
        model.places.copy_(5 * torch.eye(3)[:, None])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(200):
        stream = zipf_streams(32, 6, 3, generator=step)
        optimizer.param_groups[0]["lr"] = 1e-2 * (1 - step / 200)
        optimizer.zero_grad()
        (model(stream) - item_counts(stream, 3)).abs().mean().backward()
        optimizer.step()
    stream = zipf_streams(200, 6, 3, generator=1000)
    assert torch.equal(model(stream).round(), item_counts(stream, 3))


test_bad_sketches_are_named_with_their_value = refusals(
    (lambda: SketchConfig(0, 4, 2), "items = 0: must be at least 1"),
    (lambda: SketchConfig(4, -1, 2), "memory = -1: must be at least 1"),
    (lambda: SketchConfig(4, 4, 0), "lookups = 0: must be at least 1"),
    (lambda: SketchConfig(4, 4, 2, hidden=0), "hidden = 0: must be at least 1"),
    (lambda: sketch()(torch.tensor([[3, 20]])), "stream: 20 is out of range; must be 0 to 19"),
    (lambda: sketch()(torch.tensor([[-1, 3]])), "stream: -1 is out of range"),
)
