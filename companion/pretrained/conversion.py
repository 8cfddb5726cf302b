"""A Llama out of a GGUF, the one file of llama.cpp, into Hugging Face's layout: ``model.safetensors`` in float16,
``config.json``, ``tokenizer.json`` and ``tokenizer_config.json``.

Tensors are dequantized one by one, and each is written before the next is read, so that the memory is that of the
largest. Of the weights only the names, the rounding to float16 and the order of the rows of queries and keys change:
llama.cpp rotates neighbouring pairs of a head's entries, Hugging Face the entries that are half a head apart. Float16
keeps 11 bits of a weight (bfloat16 8): of SmolLM2, on ten prompts, no logit changes by more than .036 (bfloat16: .18),
where the largest are 26 to 38, and no first guess at any place.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from companion.core.extras import Extra

with Extra("pretrained"):
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",  # where the output embedding is not the input's
}
INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ROWS = 8192  # dequantized at a time: a table of embeddings has more
CONTROL = 3  # the type of a token that stands for no text


def convert_gguf(gguf: Path, folder: Path, header: dict[str, str], written: Callable[[int], object]) -> None:
    """Make ``folder`` from a GGUF. Raises OSError where it cannot be written, KeyError for a GGUF that is no Llama.

    ``gguf``: the file.
    ``folder``: made here.
    ``header``: what the safetensors' header is to say of the weights.
    ``written``: called with the number of bytes whenever some were written.
    """
    reader = GGUFReader(gguf)
    folder.mkdir()
    config = configuration(reader)
    for name, value in (("config.json", config), ("tokenizer_config.json", _tokenizer_configuration(reader))):
        written((folder / name).write_bytes((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()))
    written((folder / "tokenizer.json").write_bytes(tokenizer(reader).to_str(pretty=True).encode()))
    _write_weights(reader, config, folder / "model.safetensors", header, written)


def configuration(reader: GGUFReader) -> dict:
    """Return Hugging Face's ``config.json`` of a GGUF's Llama."""

    def size(name: str) -> int:
        return _value(reader, f"llama.{name}")

    def plain(name: str) -> float:
        """The decimal number that was meant: a GGUF has 1e-5 as the float32 next to it."""
        return float(str(np.float32(_value(reader, f"llama.{name}"))))

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(_value(reader, "tokenizer.ggml.tokens")),
        "hidden_size": size("embedding_length"),
        "intermediate_size": size("feed_forward_length"),
        "num_hidden_layers": size("block_count"),
        "num_attention_heads": size("attention.head_count"),
        "num_key_value_heads": size("attention.head_count_kv"),
        "head_dim": size("rope.dimension_count"),
        "hidden_act": "silu",
        "max_position_embeddings": size("context_length"),
        "rms_norm_eps": plain("attention.layer_norm_rms_epsilon"),
        "rope_theta": plain("rope.freq_base"),
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "bos_token_id": _value(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": _value(reader, "tokenizer.ggml.eos_token_id"),
        "torch_dtype": "float16",
    }


def tokenizer(reader: GGUFReader) -> Tokenizer:
    """Return the tokenizer of a GGUF: byte pairs as GPT-2 has them, with each digit a token of its own."""
    tokens = _value(reader, "tokenizer.ggml.tokens")
    merges = [tuple(pair.split(" ")) for pair in _value(reader, "tokenizer.ggml.merges")]
    found = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges))
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    found.decoder = decoders.ByteLevel()
    types = _value(reader, "tokenizer.ggml.token_type")
    control = [token for token, kind in zip(tokens, types, strict=True) if kind == CONTROL]
    found.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return found


def _tokenizer_configuration(reader: GGUFReader) -> dict:
    tokens = _value(reader, "tokenizer.ggml.tokens")
    kinds = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    special = {
        f"{ours}_token": tokens[_value(reader, f"tokenizer.ggml.{theirs}_token_id")] for ours, theirs in kinds.items()
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": _value(reader, "llama.context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": _value(reader, "tokenizer.chat_template"),
        **special,
    }


def _write_weights(
    reader: GGUFReader, config: dict, path: Path, header: dict[str, str], written: Callable[[int], object]
) -> None:
    """A safetensors file: the length of its header, the header, which says where each tensor lies, and the tensors."""
    head: dict[str, dict] = {"__metadata__": {"format": "pt", **header}}
    end = 0
    for tensor in reader.tensors:
        start, end = end, end + 2 * int(tensor.n_elements)
        shape = [int(size) for size in reversed(tensor.shape)]
        head[hugging_face_name(tensor.name)] = {"dtype": "F16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    with path.open("wb") as file:
        written(file.write(len(text).to_bytes(8, "little") + text))
        for tensor in reader.tensors:
            rotated = heads.get(tensor.name.removesuffix(".weight").rpartition(".")[2])
            step = ROWS if rotated is None else len(tensor.data)
            for start in range(0, len(tensor.data), step):
                rows = dequantize(tensor.data[start : start + step], tensor.tensor_type)
                rows = rows if rotated is None else halves_from_pairs(rows, rotated)
                written(file.write(rows.astype("<f2").tobytes()))
        file.flush()
        os.fsync(file.fileno())


def hugging_face_name(name: str) -> str:
    """Return what Hugging Face's files call a GGUF's tensor of a Llama. Raises KeyError for one that it has not."""
    if name in OUTSIDE:
        return OUTSIDE[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{INSIDE[part]}.{kind}"


def halves_from_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows (heads times size, width) of a map to queries or keys in Hugging Face's order: in each head the
    first of all pairs, then the second.
    """
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def _value(reader: GGUFReader, key: str):
    return reader.fields[key].contents()
