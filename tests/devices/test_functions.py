"""Every public function and class of data, models, probes and baselines on another device than the CPU: what is
given there is answered there, with the same numbers.
"""

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest
import torch
from devices import calls, calls_of_probes
from devices.calls import Inputs
from torch import Tensor, nn

import companion.topics
from companion import ROLES, regression, shipped
from companion.core import checkpoints

CALLS = calls.CALLS | calls_of_probes.CALLS
ELSEWHERE = calls.ELSEWHERE | calls_of_probes.ELSEWHERE
SPLITS = {"topics.addition.data.sums"}  # whose sides have as many sums of two alike as the draw gives them
CORE = ("circuits", "decoder", "hooks", "llama", "lstm", "blocks", "readouts")


def public() -> Iterator[str]:
    """What the rooms define, but configs and tuples, which compute nothing: ``topics.addition.data.sums``."""
    topics = [found.name for found in walk_packages(companion.topics.__path__, "companion.topics.")]
    chosen = [name for name in topics if name.count(".") > 2 and name.split(".")[3] in ROLES]
    for path in [*(f"companion.core.{name}" for name in CORE), *chosen]:
        for name, value in vars(import_module(path)).items():
            mine = getattr(value, "__module__", None) == path and not name.startswith("_")
            if mine and (inspect.isfunction(value) or (inspect.isclass(value) and computes(value))):
                yield f"{path.removeprefix('companion.')}.{name}"


def computes(kind: type) -> bool:
    return "__call__" in vars(kind) or (issubclass(kind, nn.Module) and "forward" in vars(kind))


def test_nothing_is_forgotten():
    new = sorted(set(public()) - CALLS.keys() - ELSEWHERE.keys())
    assert not new, f"give each of these a small call in CALLS of tests/devices/calls.py or calls_of_probes.py: {new}"
    assert set(public()) == CALLS.keys() | ELSEWHERE.keys()
    assert not CALLS.keys() & ELSEWHERE.keys()


def tensors(result: object) -> list[Tensor]:
    """All tensors in a result, in order; of a model its numbers."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, nn.Module):
        return [*result.state_dict().values()]
    if dataclasses.is_dataclass(result):
        result = vars(result)
    values = result.values() if isinstance(result, dict) else result if isinstance(result, list | tuple) else []
    return [tensor for value in values for tensor in tensors(value)]


def numbers(name: str, device: torch.device) -> list[Tensor]:
    """What a call gives, moved back; all of it must be on the device."""
    torch.default_generator.manual_seed(0)
    room, _, function = name.rpartition(".")
    result = CALLS[name](getattr(import_module(f"companion.{room}"), function), Inputs(device))
    found = tensors(result)
    if found:
        assert {tensor.device.type for tensor in found} == {device.type}
        return [tensor.detach().cpu() for tensor in found]
    assert isinstance(result, int | float | dict | tuple | list)
    return []


@pytest.mark.parametrize("name", CALLS)
def test_it_answers_where_it_is_asked(name, device):
    here, there = (numbers(name, where) for where in (torch.device("cpu"), device))
    for answer, other in zip(here, there, strict=True):
        if device.type == "meta":
            torch.testing.assert_close(other, answer, rtol=1e-4, atol=1e-4, equal_nan=True)
        else:  # CUDA draws other numbers
            start = 1 if name in SPLITS else 0
            assert (other.shape[start:], other.dtype) == (answer.shape[start:], answer.dtype)


def test_a_shipped_checkpoint_answers_where_it_is_opened(device, monkeypatch):
    monkeypatch.setattr(checkpoints, "pick_device", lambda name, **_: torch.device(name))
    tensors = regression.data.prompts(batch=2, n=5, d=10)[:2]
    here, _ = shipped("regression-isotropic")
    there, header = shipped("regression-isotropic", device=device)
    assert header.recipe == "regression-isotropic"
    with torch.no_grad():
        found = there(*(tensor.to(device) for tensor in tensors))
        assert found.device.type == device.type
        torch.testing.assert_close(found.cpu(), here(*tensors), rtol=1e-4, atol=1e-4)
