"""Number embeddings of a pretrained model come out of its folder row by row; what cannot be read is refused by name."""

import json
import re
import shutil
import socket
import sys

import pytest
import torch
from safetensors import safe_open
from tiny_gpt2 import NUMBERS, WIDTH, planted, rewrite, save_tiny_gpt2, tokenizer
from tokenizers import Tokenizer, models

from companion.core.circuits import Part, ablation, direct_attribution, wire
from companion.core.extras import MissingExtra
from companion.pretrained import language as pretrained
from companion.pretrained.language import (
    LanguageModel,
    PretrainedError,
    number_embeddings,
    number_tokens,
    token_embeddings,
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What ``transformers`` writes, once for all tests."""
    return save_tiny_gpt2(tmp_path_factory.mktemp("saved") / "gpt2")


@pytest.fixture
def folder(saved, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(saved, tmp_path / "gpt2")


def refused(message: str, folder, numbers=None) -> None:
    with pytest.raises(PretrainedError, match=re.escape(message)):
        number_embeddings(folder, numbers)


def test_the_planted_embeddings_come_back(saved):
    for name in (saved, str(saved)):
        assert torch.equal(number_embeddings(name), planted())
    assert torch.equal(number_embeddings(saved, 20), planted()[:20])


def test_it_reads_what_transformers_itself_reads(saved):
    from transformers import GPT2Model, PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(tokenizer_file=str(saved / "tokenizer.json"))
    text = "".join(f" {number}" for number in range(NUMBERS))
    tokens = number_tokens(saved)
    assert list(tokens.values()) == theirs(text)["input_ids"]
    assert "".join(tokens) == text
    assert torch.equal(
        number_embeddings(saved),
        GPT2Model.from_pretrained(saved, local_files_only=True).wte.weight[list(tokens.values())],
    )


@pytest.mark.parametrize("options", [{}, {"max_shard_size": "20KB"}], ids=["one-file", "several-files"])
def test_a_language_model_head_and_several_files_make_no_difference(tmp_path, options):
    folder = save_tiny_gpt2(tmp_path / "gpt2", head=True, **options)
    assert (folder / "model.safetensors.index.json").exists() == bool(options)
    assert torch.equal(number_embeddings(folder), planted())


@pytest.mark.parametrize("name", ["model.embed_tokens.weight", "gpt_neox.embed_in.weight"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_models_names_and_precisions_are_read(folder, name, dtype):
    rewrite(folder / "model.safetensors", lambda tensors: {name: tensors["wte.weight"].to(dtype)})
    read = number_embeddings(folder)
    assert read.dtype == torch.float32
    assert torch.equal(read, planted().to(dtype).float())


def test_only_the_rows_that_are_asked_for_are_read(saved, monkeypatch):
    asked = []

    class Slice:
        def __init__(self, inner):
            self.inner, self.get_shape = inner, inner.get_shape

        def __getitem__(self, index):
            asked.append(index)
            return self.inner[index]

    class File:  # with no get_tensor
        def __init__(self, path, framework):
            self.inner = safe_open(path, framework)
            self.keys, self.get_slice = self.inner.keys, lambda name: Slice(self.inner.get_slice(name))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(pretrained, "opened", lambda path: File(path, "pt"))
    assert torch.equal(
        token_embeddings(saved, [7, 3]), safe_open(saved / "model.safetensors", "pt").get_tensor("wte.weight")[[7, 3]]
    )
    assert asked == [7, 3]


def test_vocabulary_and_merges_do_for_a_tokenizer(folder):
    tokenizer().model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    assert {"vocab.json", "merges.txt"} < {path.name for path in folder.iterdir()}
    assert torch.equal(number_embeddings(folder), planted())


def test_a_vocabulary_without_spaces_is_read_without_them(folder):
    tokenizer(space="", numbers=150).save(str(folder / "tokenizer.json"))
    assert list(number_tokens(folder)) == [str(number) for number in range(150)]
    assert list(number_tokens(folder, 30)) == [str(number) for number in range(30)]


def test_padding_of_the_tokenizers_own_is_ignored(folder):
    padded = tokenizer()
    padded.enable_padding(length=8)
    padded.save(str(folder / "tokenizer.json"))
    assert len(number_tokens(folder)) == NUMBERS


def test_a_tokenizer_that_splits_numbers_is_refused(folder):
    refused(
        "its tokenizer reads ' 200' as ['Ġ20', '0'], not as one token; numbers = 201 needs 0 to 200 as one "
        "token each, and only the first 200 are",
        folder,
        201,
    )
    tokenizer(numbers=60).save(str(folder / "tokenizer.json"))
    refused(
        "reads ' 60' as ['Ġ6', '0'], not as one token; a spectrum of at least 100 numbers needs 0 to 99 as one "
        "token each, and only the first 60 are",
        folder,
    )
    assert torch.isfinite(number_embeddings(folder, 60)).all(), "fewer than 100, if they are asked for"
    tokenizer(numbers=0).save(str(folder / "tokenizer.json"))
    refused("reads '10' as ['1', '0'], not as one token, as its digits are tokens of their own; a spectrum", folder)


def test_an_unknown_word_is_no_number(folder):
    Tokenizer(models.WordLevel({"[UNK]": 0} | {str(n): n + 1 for n in range(120)}, unk_token="[UNK]")).save(
        str(folder / "tokenizer.json")
    )
    assert len(number_tokens(folder)) == 120
    refused("reads '120' as ['[UNK]'], not as one token", folder, 121)
    Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(folder / "tokenizer.json"))
    refused("reads ' 0' as ['[UNK]']", folder)


@pytest.mark.parametrize("numbers", [19, 0, -1])
def test_too_few_numbers_are_refused(saved, numbers):
    with pytest.raises(ValueError, match=f"numbers = {numbers}: must be at least 20, or None"):
        number_embeddings(saved, numbers)


def test_a_missing_folder_is_named_and_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("went to the network"))
    refused("folder = 'gpt2-xl': no such folder; must be one on this machine", "gpt2-xl")
    (tmp_path / "gpt2").touch()
    refused("gpt2': a file; must be one on this machine", tmp_path / "gpt2")


def test_missing_files_are_named(folder):
    weights, tokens = folder / "model.safetensors", folder / "tokenizer.json"
    whole = weights.read_bytes()
    weights.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    lacks = "has no weights; must hold model.safetensors or model.safetensors.index.json"
    refused(f"{folder}: {lacks}; there is pytorch_model.bin. Pickled", folder)
    weights.write_bytes(whole)
    tokens.unlink()
    refused(f"{folder}: has no tokenizer; must hold tokenizer.json, or vocab.json and merges.txt", folder)
    (folder / "vocab.json").write_text("{}")
    refused(f"{folder}: has no tokenizer", folder)
    (folder / "merges.txt").write_text("no merges")
    refused(f"{folder / 'vocab.json'}, merges.txt: not a tokenizer", folder)


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_truncated_file_is_named(folder, name, share):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(share * len(whole))])
    refused(f"{folder / name}: not a {name.split('.')[name == 'model.safetensors']}", folder)


def test_an_index_that_lies_is_refused(folder):
    index = folder / "model.safetensors.index.json"
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    for content in ("", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {'):
        index.write_text(content)
        refused(f"{index}: not the index of a checkpoint in several files, or a truncated one", folder)
    for outside in ("../other.safetensors", "/etc/passwd", "..", ""):
        index.write_text(json.dumps({"weight_map": {"wte.weight": outside}}))
        refused(f"{index}: has wte.weight in {outside!r}; must be the name of a file in this folder", folder)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "other.safetensors"}}))
    refused(f"{folder / 'other.safetensors'}: no such file; model.safetensors.index.json names it", folder)
    index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": "part.safetensors"}}))
    refused(f"{folder / 'part.safetensors'}: has no tensor transformer.wte.weight, though the index says so", folder)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "part.safetensors"}}))
    assert torch.equal(number_embeddings(folder), planted())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda wte: {"shared.weight": wte},
            "no input embedding among its 1 tensors; must be named transformer.wte.weight or wte.weight or",
        ),
        (
            lambda wte: {"wte.weight": wte[:50]},
            "wte.weight has shape (50, 32); must be (tokens, width), with more than 2",
        ),
        (lambda wte: {"wte.weight": wte.flatten()}, "must be (tokens, width)"),
        (
            lambda wte: {"wte.weight": wte / 0},
            "has rows that are all the same, or not finite; must be that of a trained model",
        ),
        (
            lambda wte: {"wte.weight": wte * 0},
            "has rows that are all the same, or not finite; must be that of a trained model",
        ),
        (lambda wte: {"wte.weight": wte.to(torch.int8)}, "wte.weight has dtype torch.int8; must be floating point"),
        (
            lambda wte: {"wte.weight": wte.to(torch.float8_e4m3fn)},
            "wte.weight has dtype torch.float8_e4m3fn; must be floating point of 16 bits or more",
        ),
    ],
    ids=["another name", "too few rows", "no table", "not finite", "all zero", "quantized", "eight bits"],
)
def test_an_embedding_that_is_none_is_refused(folder, change, message):
    rewrite(folder / "model.safetensors", lambda tensors: change(tensors["wte.weight"]))
    refused(message, folder)


@pytest.mark.parametrize("kind", ["gpt_neox", "phi", "roberta"])
@pytest.mark.parametrize("head", [True, False], ids=["with-head", "alone"])
def test_the_models_that_the_lesson_names_are_read(tmp_path, kind, head):
    """Pythia, Phi and RoBERTa, as ``transformers`` writes them."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

    made = tokenizer()
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    sizes |= {"max_position_embeddings": 8, "bos_token_id": 0, "eos_token_id": 0}
    config = AutoConfig.for_model(kind, vocab_size=made.get_vocab_size(), **sizes)
    with_head = AutoModelForMaskedLM if kind == "roberta" else AutoModelForCausalLM
    model = (with_head if head else AutoModel).from_config(config)
    with torch.no_grad():
        ids = [made.token_to_id(f"Ġ{number}") for number in range(NUMBERS)]
        model.get_input_embeddings().weight[ids] = planted()
    model.save_pretrained(tmp_path)
    made.save(str(tmp_path / "tokenizer.json"))
    assert torch.equal(number_embeddings(tmp_path), planted())


@pytest.fixture(scope="module", params=["gpt2", "gpt_neox"])
def language_model(request, tmp_path_factory):
    """A model of each kind, of three heads, at its random start."""
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, made = request.param, tokenizer()
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 16}
    more = {"intermediate_size": 64} if kind == "gpt_neox" else {}
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind, vocab_size=made.get_vocab_size(), bos_token_id=0, eos_token_id=0, **sizes, **more
    )
    folder = tmp_path_factory.mktemp(kind) / kind
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    return LanguageModel(folder)


@torch.no_grad()
def test_the_door_shows_what_the_heads_have_used(language_model):
    tokens = torch.arange(24).view(2, 12)
    logits, cache = language_model.run_with_cache(tokens)
    assert logits.shape == (2, 12, language_model.tokens)
    assert torch.equal(logits, language_model.model(tokens).logits), "looking changes nothing"
    for layer, pattern in enumerate(language_model.patterns(tokens)):
        values, z = cache[f"blocks.{layer}.attn.hook_v"], cache[f"blocks.{layer}.attn.hook_z"]
        torch.testing.assert_close(pattern @ values, z)


@torch.no_grad()
def test_what_is_put_through_the_door_is_used(language_model):
    tokens = torch.arange(12)[None]
    z, v, out = "blocks.1.attn.hook_z", "blocks.1.attn.hook_v", "blocks.1.hook_mlp_out"

    def only_head_1(value, _):
        return value * torch.tensor([0.0, 1.0, 0.0])[:, None, None]

    with language_model.hooks({z: only_head_1}):
        one = language_model(tokens)
    with language_model.hooks({v: only_head_1}):
        torch.testing.assert_close(language_model(tokens), one)
    assert (one - language_model(tokens)).abs().max() > 1e-4
    with language_model.hooks({out: lambda value, _: 0 * value}):
        without = language_model(tokens)
    assert (without - language_model(tokens)).abs().max() > 1e-4


@torch.no_grad()
def test_a_heads_direct_way_is_linear_in_what_it_writes(language_model):
    """One head's share, by hand, from the map out of the heads and the last norm."""
    values = torch.randn(1, 3, 5, 16)
    got = language_model.direct(0, values, torch.arange(7))
    written = torch.zeros(1, 5, 48)
    written[..., 32:] = values[:, 2]
    block = language_model.model.base_model
    out = block.h[0].attn.c_proj if hasattr(block, "h") else block.layers[0].attention.dense
    stream = out(written) - out(torch.zeros(1, 5, 48))
    plain = torch.nn.functional.layer_norm(stream, (48,), eps=0) * stream.std(-1, correction=0, keepdim=True)
    torch.testing.assert_close(got[:, 2], plain @ language_model.model.get_output_embeddings().weight[:7].mT)


@torch.no_grad()
def test_the_tools_take_what_names_it_has_and_name_what_they_miss(language_model):
    tokens = torch.arange(12).view(2, 6)
    plain = language_model(tokens)
    torch.testing.assert_close(language_model(tokens, only_last=True), plain[:, -1:])
    for name, head in (("blocks.1.attn.hook_z", 1), ("blocks.0.hook_mlp_out", None)):
        with language_model.hooks(ablation(name, "mean", head=head)):
            assert (language_model(tokens) - plain).abs().max() > 1e-4
    there = "must be one of blocks.N.{attn.hook_v, attn.hook_z, hook_mlp_out} for N = 0, 1"
    for call, missing in (
        (lambda: direct_attribution(language_model, tokens, direction=torch.ones(48)), "hook_embed"),
        (lambda: language_model.hooks(wire(Part(0), Part(1, 0), "keys")).__enter__(), "blocks.1.hook_k_input"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"hook = '{missing}': {there}")):
            call()
    assert not language_model.at.hooks


def test_another_kind_of_model_is_refused(folder):
    (folder / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(PretrainedError, match=re.escape("model_type = 'bert'; must be gpt2, gpt_neox or llama")):
        LanguageModel(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(PretrainedError, match="cannot be read as a language model"):
        LanguageModel(folder)


def test_without_transformers_it_says_how_to_install_it(saved, monkeypatch):
    for name in ["transformers", *(name for name in sys.modules if name.startswith("transformers."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"transformers is not installed; it comes with the extra 'pretrained'"):
        LanguageModel(saved)
