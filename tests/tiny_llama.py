"""A tiny random Llama in Hugging Face's layout, written without ``transformers``."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny_gpt2 import tokenizer

TOKENS, WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS = 60, 32, 24, 2, 4, 2
SETTINGS = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": TOKENS,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "hidden_act": "silu",
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def tensors(*, tied: bool = True) -> dict[str, torch.Tensor]:
    """Random weights, of a size at which every part matters, by Hugging Face's names."""
    generator = torch.Generator().manual_seed(0)
    h = WIDTH // HEADS
    shapes = {"model.embed_tokens": (TOKENS, WIDTH)} | ({} if tied else {"lm_head": (TOKENS, WIDTH)})
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes |= {f"{prefix}self_attn.{kind}_proj": (WIDTH, WIDTH) for kind in "qo"}
        shapes |= {f"{prefix}self_attn.{kind}_proj": (KEY_HEADS * h, WIDTH) for kind in "kv"}
        shapes |= {f"{prefix}mlp.{kind}_proj": (HIDDEN, WIDTH) for kind in ("gate", "up")}
        shapes |= {f"{prefix}mlp.down_proj": (WIDTH, HIDDEN)}
    made = {
        f"{name}.weight": torch.randn(shape, generator=generator) / shape[1] ** 0.5 for name, shape in shapes.items()
    }
    norms = [
        f"model.layers.{layer}.{norm}"
        for layer in range(LAYERS)
        for norm in ("input_layernorm", "post_attention_layernorm")
    ]
    return made | {
        f"{name}.weight": 1 + 0.3 * torch.randn(WIDTH, generator=generator) for name in (*norms, "model.norm")
    }


def save_tiny_llama(folder: Path, *, dtype: torch.dtype = torch.float32, shards: int = 1, **settings) -> Path:
    """Write weights in one file or several, ``config.json`` with changed ``settings``, and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = SETTINGS | settings
    weights = {name: tensor.to(dtype) for name, tensor in tensors(tied=settings["tie_word_embeddings"]).items()}
    files = {name: f"part-{place % shards}.safetensors" for place, name in enumerate(weights)}
    if shards == 1:
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    else:
        for file in set(files.values()):
            part = {name: weights[name] for name in weights if files[name] == file}
            save_file(part, folder / file, {"format": "pt"})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (folder / "config.json").write_text(json.dumps(settings))
    made = tokenizer(numbers=40)
    assert made.get_vocab_size() <= TOKENS
    made.save(str(folder / "tokenizer.json"))
    return folder
