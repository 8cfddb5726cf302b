"""Garg et al.'s own in-context regressors, from the folder of one training run, as the course's model.

Garg et al. (2022), arXiv:2208.01066, whose checkpoint Fu et al. (2024), arXiv:2310.17086, probe. What their public code
(dtsip/in-context-learning) leaves in such a folder:

    config.yaml      the sizes, and what the model was trained on
    state.pt         {"model_state_dict": weights, "optimizer_state_dict": .., "train_step": ..}, or else
    model_STEP.pt    the weights alone; the one of the largest STEP is read

The weights are those of a linear map ``_read_in``, of Hugging Face's GPT-2 as ``_backbone``, and of a linear map
``_read_out``. GPT-2 is the course's decoder but for biases in its linear maps and the tanh form of GELU, so that they
go into an `InContextRegressor` with both, and the hooks with their names come for free.
"""

import re
import reprlib
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from companion.core.extras import Extra
from companion.core.files import in_its_place
from companion.pretrained.folder import PretrainedError
from companion.topics.regression.model import InContextRegressor, RegressorConfig

# bytes of config.yaml, where about a thousand are usual; brackets in it, which PyYAML is slow to read; any size in it
LARGEST_CONFIG, MOST_BRACKETS, LARGEST_SIZE = 2**16, 100, 10_000
SIZES = ("n_dims", "n_positions", "n_embd", "n_layer", "n_head")
POSITIONS = "_backbone.wpe.weight"
BUFFERS = re.compile(r"_backbone\.(wte\.weight|h\.\d+\.attn\.(bias|masked_bias))")  # saved, and never used
TURNED = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")  # GPT-2 keeps these as (in, out)


def published_regressor(folder: str | Path) -> InContextRegressor:
    """Load the model of a run's folder, with prompts of as many points as the run's curriculum ended with.

    >>> model = published_regressor("models/linear_regression/pretrained")
    >>> model.config.d, model.config.n, model.config.layers
    (20, 41, 12)

    Weights are read with ``weights_only``: tensors and plain containers, and no code that a pickle may bring. Raises
    PretrainedError (a ValueError) for a folder or a file that cannot be used, a model that is no GPT-2 or was trained
    on another task, and weights that do not fit the sizes; the message names the file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise PretrainedError(
            f"folder = {str(folder)!r}: no such folder; must be one on this machine that holds config.yaml and "
            "state.pt or model_STEP.pt (nothing is downloaded)"
        )
    config = _sizes(folder / "config.yaml")
    path = _weights_file(folder)
    weights = _weights(path)
    _fit(weights, _shapes(config), path)
    weights[POSITIONS] = weights[POSITIONS][: 2 * config.n]  # the rest was never trained
    model = InContextRegressor(config)
    for block in model.decoder.get_submodule("blocks").children():
        for name, linear in list(block.named_modules()):
            if isinstance(linear, nn.Linear):
                block.set_submodule(name, nn.Linear(linear.in_features, linear.out_features))  # theirs have biases
        block.set_submodule("mlp.2", nn.GELU(approximate="tanh"))
    model.load_state_dict(
        {ours: weights[theirs].mT if theirs.endswith(TURNED) else weights[theirs] for ours, theirs in _names(config)}
    )
    return model.requires_grad_(False).eval()


def _names(config: RegressorConfig) -> list[tuple[str, str]]:
    """The course's name of each tensor, and theirs."""
    parts = [("read_in", "_read_in"), ("read_out", "_read_out"), ("decoder.norm", "_backbone.ln_f")]
    inside = {
        "norm1": "ln_1",
        "attention.qkv": "attn.c_attn",
        "attention.out": "attn.c_proj",
        "mlp.0": "ln_2",
        "mlp.1": "mlp.c_fc",
        "mlp.3": "mlp.c_proj",
    }
    for layer in range(config.layers):
        parts += [(f"decoder.blocks.{layer}.{ours}", f"_backbone.h.{layer}.{it}") for ours, it in inside.items()]
    both = [(f"{ours}.{kind}", f"{theirs}.{kind}") for ours, theirs in parts for kind in ("weight", "bias")]
    return [("decoder.positions", POSITIONS), *both]


def _shapes(config: RegressorConfig) -> dict[str, tuple[int, ...]]:
    """The shape that each of their tensors must have; there may be more positions."""
    w = config.width
    shapes = {
        "_read_in.weight": (w, config.d),
        "_read_in.bias": (w,),
        "_read_out.weight": (1, w),
        "_read_out.bias": (1,),
        POSITIONS: (2 * config.n, w),
    }
    shapes |= {f"_backbone.ln_f.{kind}": (w,) for kind in ("weight", "bias")}
    for layer in range(config.layers):
        block = f"_backbone.h.{layer}."
        shapes |= {f"{block}{norm}.{kind}": (w,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
        for name, reads, writes in (
            ("attn.c_attn", w, 3 * w),
            ("attn.c_proj", w, w),
            ("mlp.c_fc", w, 4 * w),
            ("mlp.c_proj", 4 * w, w),
        ):
            shapes |= {f"{block}{name}.weight": (reads, writes), f"{block}{name}.bias": (writes,)}
    return shapes


def _sizes(path: Path) -> RegressorConfig:
    """From ``config.yaml``; raises PretrainedError for a file that is none, and for another model or task."""
    with Extra("pretrained"):
        import yaml  # noqa: PLC0415
    try:
        text = path.read_bytes()
    except OSError:
        raise PretrainedError(f"{path.parent}: has no config.yaml, which a run of Garg et al.'s code writes") from None
    try:
        if len(text) > LARGEST_CONFIG or text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
            raise ValueError("too much to be a run's configuration")
        read = yaml.safe_load(text)
        model, training = read["model"], read["training"]
        family, task, points = model["family"], training["task"], training["curriculum"]["points"]["end"]
        sizes = {name: model[name] for name in SIZES}
    except KeyError as error:
        raise PretrainedError(f"{path}: has no {error.args[0]}; must be a run's configuration") from None
    except (TypeError, ValueError, RecursionError, yaml.YAMLError):
        raise PretrainedError(
            f"{path}: not a run's configuration in YAML, or a damaged one{in_its_place(path)}"
        ) from None
    for name, value, allowed in (("model.family", family, "gpt2"), ("training.task", task, "linear_regression")):
        if value != allowed:
            raise PretrainedError(f"{path}: {name} = {reprlib.repr(value)}; must be {allowed!r}")
    for name, value in (*sizes.items(), ("training.curriculum.points.end", points)):
        if type(value) is not int or not 1 <= value <= LARGEST_SIZE:
            raise PretrainedError(
                f"{path}: {name} = {reprlib.repr(value)}; must be a whole number from 1 to {LARGEST_SIZE}"
            )
    if not 2 <= points <= sizes["n_positions"]:
        raise PretrainedError(
            f"{path}: training.curriculum.points.end = {points}; must be at least 2 and at most n_positions = "
            f"{sizes['n_positions']}"
        )
    if sizes["n_embd"] % sizes["n_head"]:
        raise PretrainedError(f"{path}: n_head = {sizes['n_head']}; must divide n_embd = {sizes['n_embd']}")
    return RegressorConfig(
        sizes["n_dims"], points, sizes["n_embd"], sizes["n_layer"], sizes["n_head"], tokens="interleaved"
    )


def _weights_file(folder: Path) -> Path:
    """``state.pt``, or else the ``model_STEP.pt`` of the largest STEP."""
    if (folder / "state.pt").is_file():
        return folder / "state.pt"
    kept = {int(found[1]): path for path in folder.iterdir() if (found := re.fullmatch(r"model_(\d+)\.pt", path.name))}
    if not kept:
        raise PretrainedError(f"{folder}: has no weights; must hold state.pt or model_STEP.pt")
    return kept[max(kept)]


def _weights(path: Path) -> dict[str, Tensor]:
    """The tensors by their names in GPT-2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an unusual pickle, which is refused or read
            read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # UnpicklingError where there is more than weights; of a damaged archive, any of many
        reason = re.split(r"[.\n]", str(error).strip() or type(error).__name__, maxsplit=1)[0]
        raise PretrainedError(
            f"{path}: is damaged, or holds more than weights; no code in it was run ({reason}){in_its_place(path)}"
        ) from None
    if path.name == "state.pt":
        read = read.get("model_state_dict") if isinstance(read, dict) else None
    if not isinstance(read, dict):
        held = "model_state_dict, a dictionary of tensors" if path.name == "state.pt" else "a dictionary of tensors"
        raise PretrainedError(f"{path}: must hold {held}")
    return {name: value for name, value in read.items() if not BUFFERS.fullmatch(str(name))}


def _fit(weights: dict[str, Tensor], shapes: dict[str, tuple[int, ...]], path: Path) -> None:
    """Raise PretrainedError unless there is a finite tensor of the right shape for every name, and no other."""
    for wrong, names in (
        ("must have", shapes.keys() - weights.keys()),
        ("must not have", weights.keys() - shapes.keys()),
    ):
        if names:
            first = repr(min(map(str, names))[:100])
            raise PretrainedError(f"{path}: by config.yaml {wrong} the tensor {first} ({len(names)} of this kind)")
    for name, shape in shapes.items():
        tensor = weights[name]
        # a stride of 0 would let a small file stand for a tensor larger than the memory
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided or not tensor.is_contiguous():
            raise PretrainedError(f"{path}: {name} must be a dense tensor, stored without gaps")
        fits = tensor.shape == shape or (name == POSITIONS and tensor.shape[1:] == shape[1:] and len(tensor) > shape[0])
        if not fits:
            more = " or have more rows" if name == POSITIONS else ""
            raise PretrainedError(
                f"{path}: {name} has shape {tuple(tensor.shape)}; must be {shape}{more} by config.yaml"
            )
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise PretrainedError(f"{path}: {name} has other entries; must have finite floating-point numbers alone")
