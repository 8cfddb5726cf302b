"""A model's tensors under their own names, whatever it is wrapped in, as a whole or in parts: compiled, data-parallel,
averaged.
"""

import re
from collections.abc import Iterable

import torch
from torch import Tensor, nn

# torch.compile's; DistributedDataParallel's, DataParallel's and AveragedModel's; FSDP's; activation checkpointing's
WRAPPED = ("_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
PREFIX = re.compile(rf"(?<![^.])(?:{'|'.join(WRAPPED)})\.")


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside torch's wrappers."""
    inside = [name for name, _ in model.named_children()]
    while len(inside) == 1 and inside[0] in WRAPPED and type(model).__module__.startswith("torch."):
        model = model.get_submodule(inside[0])
        inside = [name for name, _ in model.named_children()]
    return model


def own_names(names: Iterable[str]) -> dict[str, str]:
    """Return each name without what wrappers add to it; all as they are, where two would become one."""
    own = {name: PREFIX.sub("", name) for name in names}
    return own if len(set(own.values())) == len(own) else {name: name for name in own}


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's state by its `own_names`. Raises ValueError, naming it, for what no file of tensors can hold."""
    state = unwrapped(model).state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.dtype == torch.complex128:
            kind = f"{value.dtype}, {value.layout}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"model: {name} in its state is {kind}, which cannot be saved; must be a dense tensor, not complex128"
            )
    return by_own_names(state)


def by_own_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by their `own_names`."""
    return {own: tensors[name] for name, own in own_names(tensors).items()}


def load_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load what `tensors_of` gave, or a file with wrappers in its names, into a model that may be wrapped itself.
    Raises RuntimeError for tensors of another model, as ``load_state_dict`` does.
    """
    model = unwrapped(model)
    theirs, given = {own: name for name, own in own_names(model.state_dict()).items()}, own_names(tensors)
    model.load_state_dict({theirs.get(given[name], name): tensor for name, tensor in tensors.items()})
