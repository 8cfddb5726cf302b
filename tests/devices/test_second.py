"""The second device itself: the same numbers as the CPU, and an error where devices mix, as CUDA has it."""

import copy

import pytest
import torch
from devices.second import SECOND, Second, second_device
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def second():
    with second_device() as device:
        yield device


def trained(device: str | torch.device) -> tuple[nn.Module, list[float]]:
    """Three steps of a small network, drawn on the device."""
    torch.default_generator.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).to(device)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for step in range(3):
        generator = torch.Generator(device=device).manual_seed(step)
        x = torch.randn(16, 4, generator=generator, device=device)
        y = torch.randint(2, (16,), generator=generator, device=device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def test_training_gives_the_numbers_of_the_cpu_to_the_last_digit(second):
    (here, losses), (there, others) = trained("cpu"), trained(second)
    assert losses == others
    assert all(isinstance(each, nn.Parameter) and each.device == SECOND for each in there.parameters())
    for name, value in there.state_dict().items():
        assert torch.equal(value.cpu(), here.state_dict()[name])


def test_what_comes_back_is_a_plain_tensor(second):
    there = torch.tensor([1.0, 2.0], device=second)
    assert type(there) is Second
    assert type(there.cpu()) is torch.Tensor
    assert (there.cpu().tolist(), there.tolist(), there.sum().item()) == ([1.0, 2.0], [1.0, 2.0], 3.0)
    assert f"{there.sum():.2f}" == "3.00"


def test_a_model_moves_there_and_back_and_a_copy_stays_there(second):
    model = nn.Linear(3, 2).to(second)
    copied = copy.deepcopy(model)
    assert copied.weight.device == SECOND
    assert copied.weight.requires_grad
    with torch.no_grad():
        model.weight.zero_()
    assert copied.weight.abs().sum() > 0
    assert model.double().weight.dtype == torch.float64
    assert type(model.cpu().weight) is nn.Parameter
    model.load_state_dict(copied.state_dict())
    assert torch.equal(model.weight.float(), copied.weight.cpu())


def test_changes_in_place_reach_views_and_owners(second):
    x = torch.zeros(3, 3, device=second)
    x[0] = torch.ones(3)  # copying moves between devices, on CUDA, too
    x[1, 2] = 5
    x[2].add_(2)
    x[:, 0].mul_(10)
    assert x.tolist() == [[10, 1, 1], [0, 0, 5], [20, 2, 2]]
    assert x[torch.tensor([0])].tolist() == [[10, 1, 1]], "an index may come from the CPU"
    assert x[x > 4].tolist() == [10, 5, 20]
    assert x[:, [2, 0]].tolist() == [[1, 10], [5, 0], [2, 20]]
    x[x > 4] = 7
    assert x.tolist() == [[7, 1, 1], [0, 0, 7], [7, 2, 2]]
    assert (x + torch.tensor(1.0)).device == SECOND, "a number that stands alone may come from the CPU"


@pytest.mark.parametrize(
    "mix",
    [
        lambda there: there + torch.ones(2),
        lambda there: torch.ones(2) + there,
        lambda there: torch.ones(2).add_(there),
        lambda there: torch.tensor(0.0).add_(there[0]),
        lambda there: torch.ones(2) + there[0],
        lambda there: torch.cat([there, torch.ones(2)]),
        lambda there: torch.stack([there[0], torch.tensor(1.0)]),
        lambda there: there @ torch.ones(2),
        lambda there: torch.ones(2)[there.long()],
        lambda there: there.masked_fill(torch.ones(2) > 0, 0),
        lambda there: there.index_put_((torch.tensor([0]),), torch.ones(1)),
        lambda there: F.embedding(torch.tensor([0]), there[:, None]),
        lambda there: torch.equal(there, torch.ones(2)),
        nn.Linear(2, 2),
        lambda there: torch.rand(2, generator=torch.Generator(SECOND)),
        lambda there: torch.rand(2, generator=torch.Generator(), device=SECOND),
        lambda there: there.new_zeros(2).uniform_(generator=torch.Generator()),
        lambda there: there.numpy(),
    ],
)
def test_what_mixes_devices_raises(second, mix):
    with pytest.raises((RuntimeError, TypeError), match=r"same device|device type for generator|numpy"):
        mix(torch.ones(2, device=second))


def test_it_is_gone_afterwards_and_knows_no_autocast(second):
    with torch.autocast(second.type, torch.bfloat16, enabled=False):
        pass
    with pytest.raises(RuntimeError, match="no autocast"):
        torch.autocast(second.type, torch.bfloat16)
