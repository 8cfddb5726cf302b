"""A Llama's folder comes through the same door as GPT-2's; it is the model that ``transformers`` reads there."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file
from tiny_gpt2 import rewrite
from tiny_llama import HEADS, LAYERS, TOKENS, WIDTH, save_tiny_llama, tensors

from companion.core.llama import Llama
from companion.pretrained import fetching, language, memory
from companion.pretrained.folder import PretrainedError
from companion.pretrained.language import LanguageModel
from companion.topics.bigrams import examined

TEXTS = torch.randint(TOKENS, (3, 17), generator=torch.Generator().manual_seed(1))


def theirs(folder):
    """What ``transformers`` makes of a folder."""
    transformers = pytest.importorskip(
        "transformers", reason="the equality with transformers needs the extra `pretrained`"
    )
    transformers.logging.disable_progress_bar()
    if "rope_parameters" in (folder / "config.json").read_text() and transformers.__version__ < "5":
        pytest.skip("transformers 4 does not read rope_parameters, which its successor writes")
    return transformers.LlamaForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tie_word_embeddings": False},
        {"shards": 3},
        {"dtype": torch.float16},
        {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 100.0}},
    ],
    ids=str,
)
@torch.no_grad()
def test_the_logits_are_those_of_transformers(tmp_path, options):
    folder = save_tiny_llama(tmp_path / "llama", **options)
    expected = theirs(folder)(TEXTS).logits
    got = LanguageModel(folder)(TEXTS)
    assert got.dtype == torch.float32
    assert (got - expected).abs().max() <= 1e-4 * expected.abs().max()


PROMPTS = [
    "The capital of France is",
    "Madrid is located in",
    "When Kate and Peter went to the school, Kate gave a ball to",
    "1, 2, 3,",
    "def f(x):\n    return",
    "Monday, Tuesday, Wednesday,",
    "The opposite of hot is",
    "Once upon a time there was a",
    "é, ü and € are",
    "One cat, two",
]


@torch.no_grad()
def test_the_fetched_model_is_the_one_that_transformers_reads(smollm2):
    ours, other = LanguageModel("smollm2"), theirs(smollm2)
    for text in PROMPTS:
        tokens = ours.batch([text])
        expected = other(tokens).logits
        assert (ours(tokens) - expected).abs().max() <= 1e-4 * expected.abs().max(), text
    tokens = ours.batch(PROMPTS[:1])
    assert ours.decode(ours(tokens, only_last=True)[0, -1].topk(1).indices) == " Paris"


@torch.no_grad()
def test_what_transformers_writes_is_read_as_well(tmp_path, llama_folder):
    """Its configuration has other fields than older ones; its model without a head, other names."""
    whole = theirs(llama_folder)
    whole.save_pretrained(tmp_path / "whole")
    whole.model.save_pretrained(tmp_path / "headless")
    for folder in (tmp_path / "whole", tmp_path / "headless"):
        (folder / "tokenizer.json").write_bytes((llama_folder / "tokenizer.json").read_bytes())
        torch.testing.assert_close(LanguageModel(folder)(TEXTS), LanguageModel(llama_folder)(TEXTS))


def test_every_tensor_lies_where_it_belongs(llama):
    weights, state = tensors(), llama.model.state_dict()
    assert len(state) == len(weights) - LAYERS  # gate and up are one
    for name in ("embed.weight", "norm.weight"):
        torch.testing.assert_close(state[name], weights[f"model.{name.replace('embed', 'embed_tokens')}"])
    prefix = "model.layers.1.mlp."
    gate_and_up = torch.cat([weights[f"{prefix}gate_proj.weight"], weights[f"{prefix}up_proj.weight"]])
    torch.testing.assert_close(state["blocks.1.mlp.gate_and_up.weight"], gate_and_up)
    torch.testing.assert_close(
        state["blocks.1.attention.keys.weight"], weights["model.layers.1.self_attn.k_proj.weight"]
    )
    assert not any(weight.requires_grad or weight.is_meta for weight in llama.parameters())
    assert not llama.training


def test_the_door_has_all_names_and_sizes(llama):
    assert isinstance(llama.model, Llama)
    assert (llama.layers, llama.heads, llama.context) == (LAYERS, HEADS, 32)
    assert llama.tokens == llama.tokenizer.get_vocab_size()
    logits, cache = llama.run_with_cache(TEXTS)
    assert list(cache) == llama.hook_names == llama.model.hook_names
    assert logits.shape == (3, 17, TOKENS)
    for layer, pattern in enumerate(llama.patterns(TEXTS)):
        torch.testing.assert_close(pattern, cache[f"blocks.{layer}.attn.hook_pattern"])
    torch.testing.assert_close(llama(TEXTS, only_last=True), logits[:, -1:])
    assert llama.body is llama.model


def test_a_fetched_model_comes_by_its_name(tmp_path, monkeypatch):
    """The name is not a folder that lies about; nothing is fetched here."""
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(fetching, "fetch", lambda *_, **__: pytest.fail("fetched"))
    monkeypatch.chdir(tmp_path)
    save_tiny_llama(tmp_path / "smollm2", num_hidden_layers=1)
    missing = f"folder = 'smollm2': not in {tmp_path / 'models'}; `python3 -m companion fetch smollm2` in the course's"
    with pytest.raises(PretrainedError, match=re.escape(missing)):
        LanguageModel("smollm2")
    save_tiny_llama(tmp_path / "models/smollm2")
    assert LanguageModel("smollm2").layers == LAYERS
    assert LanguageModel("./smollm2").layers == 1
    with pytest.raises(PretrainedError, match="folder = 'smollm3': no such folder"):
        LanguageModel("smollm3")


def test_text_goes_in_and_comes_out(llama):
    tokens = llama.batch([" 12 30", " 15 39"])
    assert tokens.shape == (2, 2)
    assert tokens.tolist() == [llama.encode(" 12 30"), llama.encode(" 15 39")]
    assert llama.decode(tokens[1]) == " 15 39"
    with pytest.raises(ValueError, match=re.escape("texts: ' 7' has 1 tokens, ' 12 30' 2; must all have as many")):
        llama.batch([" 12 30", " 7"])


def test_a_heads_direct_way_is_what_it_adds_to_the_logits(llama):
    """One head's result, alone in the stream, times the last norm's weight and the unembedding's rows."""
    _, cache = llama.run_with_cache(TEXTS, names=["blocks.1.attn.hook_z", "blocks.1.attn.hook_result"])
    got = llama.direct(1, cache["blocks.1.attn.hook_z"], torch.arange(7))
    expected = cache["blocks.1.attn.hook_result"] * llama.norm.weight @ tensors()["model.embed_tokens.weight"][:7].mT
    torch.testing.assert_close(got, expected)


def test_a_cut_of_an_mlps_first_matrix_is_felt(llama_folder):
    model = LanguageModel(llama_folder)
    plain = model(TEXTS)
    model.inputs[1].zero_()
    _, cache = model.run_with_cache(TEXTS)
    assert not cache["blocks.1.hook_mlp_out"].any()
    assert (model(TEXTS) - plain).abs().max() > 0.01


def test_lesson_06s_probes_run_on_it(llama, capsys):
    before = [matrix.clone() for matrix in llama.inputs]
    examined.examine(llama, name="tiny")
    assert f"tiny: {LAYERS} layers of {HEADS} heads" in capsys.readouterr().out
    assert all(torch.equal(matrix, whole) for matrix, whole in zip(llama.inputs, before, strict=True))


def test_half_the_precision_on_request(llama_folder, llama):
    half = LanguageModel(llama_folder, dtype=torch.bfloat16)
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    torch.testing.assert_close(half(TEXTS).float(), llama(TEXTS), rtol=0, atol=0.1 * llama(TEXTS).abs().max().item())


SCALED = {"rope_type": "llama3", "factor": 8.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rope_scaling": SCALED}, "rope_scaling = {'factor': 8.0, 'rope_type': 'llama3'}; must be null: plain rotary"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling = {'type': 'linear'}; must be null: plain rotary"),
        ({"rope_parameters": SCALED | {"rope_theta": 1e4}}, "rope_scaling = {'factor': 8.0, "),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor = 0.5; must be 1"),
        ({"rope_interleaved": True}, "rope_interleaved = True; must be False"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu'; must be 'silu'"),
        ({"attention_bias": True}, "attention_bias = True; must be False"),
        ({"mlp_bias": True}, "mlp_bias = True; must be False"),
        ({"head_dim": 16}, "head_dim = 16; must be hidden_size / num_attention_heads = 8"),
        ({"hidden_size": None}, "hidden_size = None; must be a whole number"),
        ({"num_key_value_heads": "two"}, "num_key_value_heads = 'two'; must be a whole number"),
        ({"num_key_value_heads": 3}, "its sizes cannot be a Llama's (key_heads = 3: must divide heads = 4)"),
        ({"num_attention_heads": 0}, "its sizes cannot be a Llama's (heads = 0: must be at least 1)"),
    ],
    ids=str,
)
def test_what_is_no_plain_llama_is_refused_by_name(tmp_path, settings, message):
    folder = save_tiny_llama(tmp_path / "llama", **settings)
    with pytest.raises(PretrainedError, match=re.escape(f"{folder / 'config.json'}: {message}")):
        LanguageModel(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda w: w.pop("model.norm.weight"),
            "has no tensor model.norm.weight; must have it, by the sizes in config.json",
        ),
        (
            lambda w: w.update({"model.norm.weight": torch.ones(7)}),
            f"model.norm.weight has shape (7,); must be ({WIDTH},) by config.json",
        ),
        (
            lambda w: w.update({"model.layers.0.mlp.up_proj.weight": torch.ones(3, WIDTH)}),
            "gate_proj.weight and model.layers.0.mlp.up_proj.weight has shape (27, 32); must be (48, 32)",
        ),
        (
            lambda w: w.update({"model.norm.weight": torch.ones(WIDTH, dtype=torch.int8)}),
            "model.norm.weight has dtype torch.int8; must be floating point of 16 bits or more, not quantized",
        ),
    ],
    ids=["missing", "another shape", "halves that do not fit", "quantized"],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path, change, message):
    folder = save_tiny_llama(tmp_path / "llama")

    def changed(weights):
        change(weights)
        return weights

    rewrite(folder / "model.safetensors", changed)
    with pytest.raises(PretrainedError, match=re.escape(message)):
        LanguageModel(folder)


def test_a_damaged_configuration_is_named(tmp_path):
    folder = save_tiny_llama(tmp_path / "llama")
    for content, message in (
        ("{", "not JSON, or truncated"),
        ("[]", "names no model_type"),
        ("{}", "names no model_type"),
    ):
        (folder / "config.json").write_text(content)
        with pytest.raises(PretrainedError, match=re.escape(f"{folder / 'config.json'}: {message}")):
            LanguageModel(folder)
    (folder / "config.json").unlink()
    with pytest.raises(PretrainedError, match=re.escape("has no config.json")):
        LanguageModel(folder)


def test_too_little_memory_is_said_before_anything_is_read(llama_folder, monkeypatch):
    monkeypatch.setattr(language, "free_memory", lambda: 60_000_000)
    monkeypatch.setattr(language, "read_llama", lambda *_: pytest.fail("read"))
    entries = sum(tensor.numel() for tensor in tensors().values())
    message = (
        f"needs {(4 * entries + language.WORKING) / 1e6:.0f} MB of memory, and 60 MB are free; shut down other kernels"
    )
    with pytest.raises(PretrainedError, match=re.escape(message)):
        LanguageModel(llama_folder)


GROUP = {"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 500\ninactive_file 100\n"}
OLD = {"memory.limit_in_bytes": "900", "memory.usage_in_bytes": "850", "memory.stat": "total_inactive_file 30\n"}


@pytest.mark.parametrize(
    ("groups", "own", "left"),
    [
        ({"": GROUP}, "0::/\n", 400),
        ({"user": {"memory.max": "max"}, "": GROUP}, "0::/user/me\n", 400),
        ({"user": GROUP, "": GROUP | {"memory.current": "950"}}, "0::/user/me\n", 150),
        ({"memory/docker": OLD}, "12:cpu:/docker\n9:memory:/docker/one\n", 80),
        ({"": GROUP | {"memory.current": "1300"}}, "0::/\n", 0),
        ({}, "0::/\n", 10_000),
        ({"": {"memory.max": "max"}}, "0::/\n", 10_000),
    ],
    ids=["own", "of an outer group", "the narrowest", "version 1", "over it", "none", "no limit"],
)
def test_the_memory_that_is_free_is_the_least_of_the_machines_and_the_groups(tmp_path, monkeypatch, groups, own, left):
    for place, files in groups.items():
        (tmp_path / "fs" / place).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (tmp_path / "fs" / place / name).write_text(content)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "fs")
    monkeypatch.setattr(memory, "OWN", tmp_path / "own")
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Free", (), {"available": 10_000}))
    assert memory.free_memory() == left
    (tmp_path / "own").unlink()
    assert memory.free_memory() == 10_000, "a system without groups"


def test_this_machine_has_memory():
    assert memory.free_memory() > 2**20


def test_a_tensor_that_the_index_promises_and_no_file_has_is_named(tmp_path):
    folder = save_tiny_llama(tmp_path / "llama", shards=2)
    index = folder / "model.safetensors.index.json"
    files = json.loads(index.read_text())["weight_map"]
    save_file({"other": torch.ones(1)}, folder / files["model.norm.weight"])
    with pytest.raises(PretrainedError, match="has no tensor "):
        LanguageModel(folder)
