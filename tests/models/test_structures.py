"""The learned sketch counts in whole cells, and as the classical sketches do when its networks are set by hand."""

import pytest
import torch
import torch.nn.functional as F

from companion.models.structures import Sketch, SketchConfig
from companion.samplers.structures import counts, zipf_streams

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
    torch.testing.assert_close(model(stream), in_a_loop(stream, cells.tolist(), 9, conservative=conservative), rtol=0, atol=0)


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
        (model(stream) - counts(stream, 3)).abs().mean().backward()
        optimizer.step()
    stream = zipf_streams(200, 6, 3, generator=1000)
    assert torch.equal(model(stream).round(), counts(stream, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SketchConfig(0, 4, 2), "items = 0: must be at least 1"),
        (lambda: SketchConfig(4, -1, 2), "memory = -1: must be at least 1"),
        (lambda: SketchConfig(4, 4, 0), "lookups = 0: must be at least 1"),
        (lambda: SketchConfig(4, 4, 2, hidden=0), "hidden = 0: must be at least 1"),
        (lambda: sketch()(torch.tensor([[3, 20]])), "stream: unknown item 20; must be 0 to items - 1 = 19"),
        (lambda: sketch()(torch.tensor([[-1, 3]])), "stream: unknown item -1"),
    ],
)
def test_bad_sketches_are_named_with_their_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
