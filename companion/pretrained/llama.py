"""A Llama's folder of Hugging Face's layout, as the course's `companion.core.llama.Llama`."""

import reprlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from itertools import groupby
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from companion.core.llama import Llama, LlamaConfig
from companion.pretrained.folder import PretrainedError, opened, tensor_files

SIZES = {  # the course's name of each size, and the one in config.json
    "vocabulary": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "intermediate_size",
    "context": "max_position_embeddings",
}
PARTS = {  # of a block, the course's tensors and theirs; two are read as one
    "norm1": ["input_layernorm"],
    "attention.queries": ["self_attn.q_proj"],
    "attention.keys": ["self_attn.k_proj"],
    "attention.values": ["self_attn.v_proj"],
    "attention.out": ["self_attn.o_proj"],
    "norm2": ["post_attention_layernorm"],
    "mlp.gate_and_up": ["mlp.gate_proj", "mlp.up_proj"],
    "mlp.down": ["mlp.down_proj"],
}
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def read_llama(folder: Path, settings: dict, dtype: torch.dtype) -> Llama:
    """Read the weights tensor by tensor, so that the memory is that of the model. Raises PretrainedError for a Llama
    that computes something else than the course's, and for tensors that are missing or do not fit.

    ``folder``: what holds the weights.
    ``settings``: what its ``config.json`` says.
    ``dtype``: the precision in which the model is to compute.
    """
    path = folder / "config.json"
    config = llama_config(settings, path)
    with torch.device("meta"):  # shapes alone: no memory, and no time for random weights
        model = Llama(config)
    files, weights = tensor_files(folder), {}
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    names = _names(config, "model." if "model.embed_tokens.weight" in files else "")
    for _, part in groupby(names, lambda name: name.split(".")[:2]):
        with ExitStack() as stack:  # closed after each block: what was read of an open file stays in the memory
            open_once = cache(lambda path, stack=stack: stack.enter_context(opened(path)))
            for ours in part:
                read = [_tensor(folder, files, name, open_once) for name in names[ours]]
                _fit(read, shapes[ours], files[names[ours][0]], " and ".join(names[ours]))
                whole = torch.empty(shapes[ours], dtype=dtype)
                for rows, each in zip(whole.split([len(each) for each in read]), read, strict=True):
                    rows.copy_(each)  # in place: a copy of its own would leave holes in the memory
                weights[ours] = nn.Parameter(whole, requires_grad=False)
    model.load_state_dict(weights, assign=True)
    return model.requires_grad_(False).eval()


def _tensor(folder: Path, files: dict[str, Path], name: str, open_once: Callable[[Path], safe_open]) -> Tensor:
    """One tensor, out of the file that has it."""
    if name in files and name in (file := open_once(files[name])).keys():
        return file.get_tensor(name)
    raise PretrainedError(f"{folder}: has no tensor {name}; must have it, by the sizes in config.json")


def llama_config(settings: dict, path: Path) -> LlamaConfig:
    """Return a configuration's sizes. Raises PretrainedError, naming ``path``, for what is missing or is not a plain
    Llama's.
    """
    rotary = settings.get("rope_parameters") or {}
    scaling = settings.get("rope_scaling") or rotary
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    for name, value, allowed in (
        ("rope_scaling", "default" if kind == "default" else scaling, "default"),
        ("partial_rotary_factor", rotary.get("partial_rotary_factor", 1), 1),
        ("rope_interleaved", settings.get("rope_interleaved", False), False),
        ("hidden_act", settings.get("hidden_act", "silu"), "silu"),
        ("attention_bias", settings.get("attention_bias", False), False),
        ("mlp_bias", settings.get("mlp_bias", False), False),
    ):
        if value != allowed:
            must = "null: plain rotary positions" if name == "rope_scaling" else repr(allowed)
            raise PretrainedError(f"{path}: {name} = {reprlib.repr(value)}; must be {must}")
    told = {ours: settings.get(theirs) for ours, theirs in SIZES.items()}
    told["key_heads"] = settings.get("num_key_value_heads") or told["heads"]
    sizes: dict[str, int] = {}
    for ours, value in told.items():
        if type(value) is not int:
            name = SIZES.get(ours, "num_key_value_heads")
            raise PretrainedError(f"{path}: {name} = {value!r}; must be a whole number")
        sizes[ours] = value
    width, heads = sizes["width"], sizes["heads"]
    if settings.get("head_dim") not in (None, width // max(heads, 1)):
        must = f"hidden_size / num_attention_heads = {width / heads:g}"
        raise PretrainedError(f"{path}: head_dim = {settings['head_dim']!r}; must be {must}")
    try:
        return LlamaConfig(
            **sizes,
            base=float(settings.get("rope_theta") or rotary.get("rope_theta") or 10_000),
            eps=float(settings.get("rms_norm_eps", 1e-6)),
            tied=bool(settings.get("tie_word_embeddings", False)),
        )
    except (TypeError, ValueError) as error:
        raise PretrainedError(f"{path}: its sizes cannot be a Llama's ({error})") from None


def _names(config: LlamaConfig, prefix: str) -> dict[str, list[str]]:
    """Of each tensor of the course's the one or two in the files."""
    names = {"embed.weight": [f"{prefix}embed_tokens.weight"], "norm.weight": [f"{prefix}norm.weight"]}
    for layer in range(config.layers):
        for ours, theirs in PARTS.items():
            names[f"blocks.{layer}.{ours}.weight"] = [f"{prefix}layers.{layer}.{each}.weight" for each in theirs]
    return names if config.tied else names | {"unembed.weight": ["lm_head.weight"]}


def _fit(read: list[Tensor], shape: tuple[int, ...], path: Path, name: str) -> None:
    """Raise PretrainedError unless the tensors, one under the other, are floating-point numbers of this shape."""
    for tensor in read:
        if tensor.dtype not in FLOATS:
            raise PretrainedError(
                f"{path}: {name} has dtype {tensor.dtype}; must be floating point of 16 bits or more, not quantized"
            )
    found = (sum(len(tensor) for tensor in read), *read[0].shape[1:])
    if found != shape or any(tensor.shape[1:] != shape[1:] for tensor in read):
        raise PretrainedError(f"{path}: {name} has shape {found}; must be {shape} by config.json")
