"""The devices that are not the CPU: the one that only computes like it, always; CUDA, where there is one."""

import pytest
import torch
from devices.second import second_device


@pytest.fixture(params=["second", *["cuda"] * torch.cuda.is_available()])
def device(request):
    if request.param == "cuda":
        yield torch.device("cuda")
        return
    with second_device() as there:
        yield there
