"""``train``: a recipe into a checkpoint; alone, or under ``torchrun`` on several processes at once."""

import os
from argparse import Namespace
from pathlib import Path

import torch

from companion import checkpoints
from companion.recipes import recipe, recipes
from companion.training import ResumeError, pick_device


def main(arguments: Namespace) -> int:
    """Train ``arguments.recipe`` and save it; without one, list what there is."""
    if arguments.recipe is None:
        for name, scales in sorted(recipes().items()):
            print(f"{name:30} {', '.join(scales):22} {next(iter(scales.values())).about}")
        return 0
    out = Path(arguments.out or f"build/train/{arguments.recipe}-{arguments.scale}.safetensors")
    try:
        chosen = recipe(arguments.recipe, arguments.scale)
        pick_device(arguments.device, float64=chosen.needs_float64)
        if out.suffix != ".safetensors" or out.is_dir():
            raise ValueError(f"out = {str(out)!r}: must be a file that ends in .safetensors")
    except ValueError as error:
        print(f"train: {error}")
        return 2
    try:
        model, history = chosen.train(
            seed=arguments.seed, device=arguments.device, resume=out.with_suffix(".partial.safetensors")
        )
    except ResumeError as error:
        print(f"train: {error}")
        return 1
    if os.environ.get("RANK", "0") == "0":
        dtype = (
            torch.bfloat16 if chosen.schedule.precision == "bfloat16" else None
        )  # as many digits as the forward pass saw
        header = checkpoints.save(
            out,
            model,
            recipe=chosen.name,
            scale=chosen.scale,
            seed=arguments.seed,
            history=history,
            dtype=dtype,
            calibrate=chosen.calibrate,
        )
        print(
            f"{out}: {header.steps} steps in {header.seconds:.0f} s on {header.device}, "
            f"loss {header.loss_curve[-1][1]:.4f}"
        )
    return 0
