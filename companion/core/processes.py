"""Several processes that train one model: who there is, and how a model's loss is shared."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

BY_TORCHRUN = "TORCHELASTIC_RUN_ID"  # the variable that torchrun alone sets


def share() -> tuple[int, int]:
    """Return this process's rank, and how many there are: those of the group that it is in, else what ``torchrun``
    says, else 0 and 1. Raises ValueError where the variables of ``torchrun`` are set, and not by it: the others would
    be waited for in vain.
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    variables = {name: os.environ.get(name, "").strip() for name in ("RANK", "WORLD_SIZE")}
    if BY_TORCHRUN in os.environ and all(variables.values()):
        return int(variables["RANK"]), int(variables["WORLD_SIZE"])
    for name, value in variables.items():
        if value not in ("", "0" if name == "RANK" else "1"):
            raise ValueError(
                f"{name} = {value!r}: this variable says that several processes train, but torchrun has not started "
                "this one; unset it, or start `python -m torch.distributed.run --nproc-per-node 2 -m companion ...`"
            )
    return 0, 1


class Objective(nn.Module):
    """A model's loss, computed in ``forward``, the one method that a wrapper lets through and watches: there the loss
    may call what methods of the model it likes, and the processes still exchange all gradients.
    """

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor]):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.loss(self.model, *tensors)


def shared(model: nn.Module, loss: Callable[..., Tensor]) -> nn.Module:
    """Return a model's loss as all processes compute it, with their gradients exchanged; some recipes have parameters
    that get none.
    """
    return DistributedDataParallel(Objective(model, loss), find_unused_parameters=True)


@contextmanager
def process_group(device: torch.device, processes: int) -> Iterator[int]:
    """Yield this process's rank in the group that ``torchrun`` started, or that it is in already; 0 if alone."""
    if processes == 1 or dist.is_initialized():
        yield share()[0]
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()
