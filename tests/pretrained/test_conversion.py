"""A GGUF in Hugging Face's layout is the same model, rounded to float16 alone."""

import json

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors import safe_open
from tiny_gguf import HEADS, KEYS, SIZE, TOKENS, write_tiny_gguf
from tokenizers import Tokenizer

from companion.pretrained.conversion import convert_gguf, halves_from_pairs, hugging_face_name

HEADER = {"about": "a test", "licence": "none"}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """The GGUF, and the folder that it became, with the bytes that were reported."""
    place = tmp_path_factory.mktemp("converted")
    write_tiny_gguf(place / "tiny.gguf")
    written = []
    convert_gguf(place / "tiny.gguf", place / "tiny", HEADER, written.append)
    return place / "tiny.gguf", place / "tiny", sum(written)


def test_every_byte_is_reported(converted):
    _, folder, written = converted
    assert written == sum(path.stat().st_size for path in folder.iterdir())
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_each_tensor_is_the_dequantized_one_in_float16_and_the_header_says_what_it_is(converted):
    gguf, folder, _ = converted
    heads = {"attn_q": HEADS, "attn_k": KEYS}
    with safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt", **HEADER}
        names = set(file.keys())
        for tensor in GGUFReader(gguf).tensors:
            expected = dequantize(tensor.data, tensor.tensor_type)
            if rotated := heads.get(tensor.name.split(".")[-2]):
                expected = halves_from_pairs(expected, rotated)
            found = file.get_tensor(hugging_face_name(tensor.name))
            assert found.dtype == np.float16
            assert np.array_equal(found, expected.astype(np.float16))
            names.remove(hugging_face_name(tensor.name))
    assert not names


def test_rotating_halves_of_what_was_reordered_is_rotating_pairs_of_what_was_there():
    queries = np.random.default_rng(0).standard_normal((HEADS * SIZE, 1))
    angles = 0.3 / 10 ** np.arange(SIZE // 2)
    turn = np.exp(1j * angles)
    pairs = queries.reshape(HEADS, SIZE // 2, 2)
    halves = halves_from_pairs(queries, HEADS).reshape(HEADS, 2, SIZE // 2)
    by_pairs = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
    by_halves = (halves[:, 0] + 1j * halves[:, 1]) * turn
    assert np.allclose(by_pairs, by_halves)


def test_the_tokenizer_has_its_tokens_and_splits_numbers_into_digits(converted):
    _, folder, _ = converted
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.get_vocab() == {token: place for place, token in enumerate(TOKENS)}
    assert tokenizer.encode("in the 17<|im_end|>").tokens == ["i", "n", "Ġthe", "Ġ", "1", "7", "<|im_end|>"]
    assert tokenizer.decode(tokenizer.encode("über 17").ids) == "über 17"


def test_transformers_reads_the_folder_and_computes_what_the_gguf_does(converted):
    transformers = pytest.importorskip("transformers", reason="the extra pretrained is not installed")
    transformers.logging.disable_progress_bar()
    gguf, folder, _ = converted
    model, found = transformers.AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
    )
    assert not any(found.values())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tokens = tokenizer("in the 17", return_tensors="pt").input_ids
    assert tokenizer.convert_ids_to_tokens(tokens[0]) == ["i", "n", "Ġthe", "Ġ", "1", "7"]
    with torch.no_grad():
        logits = model(tokens).logits
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    expected = logits_by_pairs(gguf, tokens, config["rope_theta"], config["rms_norm_eps"])
    assert (logits - expected).abs().max() < 1e-4 * expected.abs().max()


def logits_by_pairs(gguf, tokens, theta: float, eps: float) -> torch.Tensor:
    """The forward pass on the GGUF's own tensors in float16, with llama.cpp's rotation of neighbouring pairs."""
    weights = {
        tensor.name.removesuffix(".weight"): torch.tensor(dequantize(tensor.data, tensor.tensor_type)).half().float()
        for tensor in GGUFReader(gguf).tensors
    }

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weights[name]

    def heads(x, name, rotated):
        split = (x @ weights[name].T).unflatten(-1, (-1, SIZE)).transpose(1, 2)
        if not rotated:
            return split
        angles = torch.arange(split.shape[-2])[:, None] / theta ** (torch.arange(0, SIZE, 2) / SIZE)
        pairs = torch.view_as_complex(split.unflatten(-1, (-1, 2)).contiguous()) * torch.exp(1j * angles)
        return torch.view_as_real(pairs).flatten(-2)

    x = weights["token_embd"][tokens]
    for layer in sorted({name.rpartition(".")[0] for name in weights if "." in name}):
        h = norm(x, f"{layer}.attn_norm")
        q, k, v = (heads(h, f"{layer}.attn_{part}", part != "v") for part in "qkv")
        k, v = (part.repeat_interleave(HEADS // KEYS, 1) for part in (k, v))
        z = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + z.transpose(1, 2).flatten(2) @ weights[f"{layer}.attn_output"].T
        h = norm(x, f"{layer}.ffn_norm")
        gate = torch.nn.functional.silu(h @ weights[f"{layer}.ffn_gate"].T)
        x = x + (gate * (h @ weights[f"{layer}.ffn_up"].T)) @ weights[f"{layer}.ffn_down"].T
    return norm(x, "output_norm") @ weights["token_embd"].T


def test_the_real_model_is_the_whole_of_it(smollm2):
    with safe_open(smollm2 / "model.safetensors", "np") as file:
        header, names = file.metadata(), list(file.keys())
    assert len(names) == 272
    assert "Instruct" in header["about"] and "4 bits" in header["about"] and "Apache" in header["licence"]
    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == 49_152
    assert tokenizer.encode("The capital of France is").ids == [504, 3575, 282, 4649, 314]
    assert tokenizer.encode(" 1743").tokens == ["Ġ", "1", "7", "4", "3"]
