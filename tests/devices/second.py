"""A second device on a machine that has one: it computes on the CPU, reports another device, and raises where devices
mix, as CUDA does.

Its name is "meta", which every build of torch knows, and whose gradients autograd computes on the calling thread;
inside `second_device` a tensor there holds numbers. A tensor on it is a `Second`, which wraps one on the CPU.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

SECOND, CPU = torch.device("meta"), torch.device("cpu")
ACROSS = {"copy_", "_copy_from", "_to_copy", "to", "set_data"}  # what moves between devices
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}  # may be indexed from the CPU
CONSTRUCTORS = {torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor}  # of data, which "meta" would not read


class Second(Tensor):
    """A tensor on the second device; ``held`` is its values, on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "Second":
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=SECOND,
            requires_grad=False,
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return computed(operation, args, kwargs or {})

    def __tensor_flatten__(self):
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Second(inner["held"])

    def __repr__(self, **_: Any) -> str:
        return f"Second({self.held})"

    def tolist(self) -> Any:
        return self.held.tolist()

    def __format__(self, how: str) -> str:
        return self.item().__format__(how) if self.ndim == 0 else repr(self)

    def __deepcopy__(self, memo: dict) -> "Second":
        copied = Second(self.held.clone()).requires_grad_(self.requires_grad)
        if hasattr(self, "_is_param"):
            copied._is_param = True
        return memo.setdefault(id(self), copied)


class Generator(torch.Generator):
    """A generator that may be on the second device; its numbers are the CPU's."""

    def __new__(cls, device: torch.device | str = CPU):  # noqa: ARG004 - for __init__
        return super().__new__(cls, CPU)

    def __init__(self, device: torch.device | str = CPU):
        self.where = torch.device(device)

    @property
    def device(self) -> torch.device:
        return self.where


def computed(operation: Any, args: tuple, kwargs: dict) -> Any:
    """What the operation gives on the CPU, wrapped if it belongs on the second device. Raises where devices mix."""
    name = operation.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    asked = kwargs.get("device")
    on_second = any(isinstance(tensor, Second) for tensor in tensors)
    if on_second and name not in ACROSS:
        _refuse_mixtures(name, args, tensors)
    if asked is not None:
        on_second = torch.device(asked).type == SECOND.type
        kwargs = kwargs | {"device": CPU}
    elif name == "copy_":
        on_second = isinstance(args[0], Second)
    held = operation(*tree_map(_held, args), **tree_map(_held, kwargs))
    if not on_second:
        return held
    given = tree_map(lambda leaf: Second(leaf) if isinstance(leaf, Tensor) else leaf, held)
    return given if asked is not None else return_and_correct_aliasing(operation, args, kwargs, given)


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, Second) else leaf


def _refuse_mixtures(name: str, args: tuple, tensors: list[Tensor]) -> None:
    """As on CUDA: a number that stands alone may come from the CPU, and so may an index into what is not there; all
    else may not, nothing in a list to be joined, and not what is written into.
    """
    if name in INDEXED:
        alone = [tensor for tensor in args[2:] if isinstance(tensor, Tensor) and tensor.ndim]
        strict = [args[0], *(index for index in args[1] if isinstance(index, Second)), *alone]
    elif isinstance(args[0] if args else None, list | tuple) or name.endswith("_"):
        strict = [args[0]] if isinstance(args[0], Tensor) else list(args[0])
        strict += [tensor for tensor in tensors if tensor.ndim or isinstance(tensor, Second)]
    else:
        strict = [tensor for tensor in tensors if tensor.ndim or isinstance(tensor, Second)]
    if any(not isinstance(tensor, Second) for tensor in strict if isinstance(tensor, Tensor)) and any(
        isinstance(tensor, Second) for tensor in strict
    ):
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device, but found at least two devices, meta and cpu!"
        )


class _Computing(TorchDispatchMode):
    """Makes tensors on the second device where an operation has no tensor there yet."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return computed(operation, args, kwargs or {})


class _Reading(TorchFunctionMode):
    """Moves there what is made of lists and numbers, and refuses a generator of another device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if (generator := kwargs.get("generator")) is not None:
            first = next((each for each in args if isinstance(each, Tensor)), None)
            where = torch.device(kwargs.get("device") or (CPU if first is None else first.device))
            if generator.device.type != where.type:
                raise RuntimeError(f"Expected a '{where}' device type for generator but found '{generator.device}'")
        if function in (Tensor.__getitem__, Tensor.__setitem__):
            args = (args[0], _listed(args[1]), *args[2:])
        if function in CONSTRUCTORS:
            data, *_ = args or (kwargs["data"],)
            where = kwargs.pop("device", None) or (data if isinstance(data, Tensor) else torch.empty(0)).device
            if function is Tensor.new_tensor:
                where, function, args = where or data.device, torch.tensor, args[1:]
                kwargs.setdefault("dtype", data.dtype)
            return function(*args, **kwargs).to(where)
        return function(*args, **kwargs)


def _listed(index: Any) -> Any:
    """An index whose lists are tensors on the CPU: on "meta" they would lose their numbers."""
    if isinstance(index, tuple):
        return tuple(_listed(part) for part in index)
    return torch.tensor(index) if isinstance(index, list) else index


def _autocast(device_type: str, *args: Any, enabled: bool = True, **kwargs: Any) -> Any:
    if device_type != SECOND.type:
        return AUTOCAST(device_type, *args, enabled=enabled, **kwargs)
    if enabled:
        raise RuntimeError("the second device computes in the dtypes that it is given: no autocast")
    return contextlib.nullcontext()


AUTOCAST = torch.autocast


@contextlib.contextmanager
def second_device() -> Iterator[torch.device]:
    """The second device, which is there as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch, _Reading(), _Computing():
        patch.setattr(torch, "Generator", Generator)
        patch.setattr(torch, "autocast", _autocast)
        yield SECOND
