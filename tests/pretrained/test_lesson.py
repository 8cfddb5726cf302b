"""A lesson has a language model on any machine: where there is none, a small random one that does what it does."""

import re

import pytest
import torch
from tiny_llama import save_tiny_llama

from companion.core.circuits import Part, wire
from companion.pretrained.fetching import MODELS
from companion.pretrained.lesson import SMALL, RandomModel, language_model

TEXTS = ["The capital of France is", "The capital of Zubrowka is"]


@pytest.fixture
def models(tmp_path, monkeypatch):
    """The folder of all models, with none in it."""
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    return tmp_path


@torch.no_grad()
def test_the_small_one_has_the_door_of_a_real_one(models, capsys):
    model = language_model("smollm2", "smoke")
    assert not model.trained and not capsys.readouterr().out
    tokens = model.batch(TEXTS)
    assert model.decode(tokens[1]) == TEXTS[1] and model.decode(tokens[0, 3:4]) == " France"
    logits, cache = model.run_with_cache(tokens)
    assert logits.shape == (2, 5, model.tokens) and logits.isfinite().all()
    assert model.decode(model(tokens, only_last=True)[0, -1].argmax(-1, keepdim=True))
    pattern = "blocks.18.attn.hook_pattern"
    assert torch.equal(model.patterns(tokens)[18], cache[pattern])
    with model.hooks(wire(Part(16, 0), Part(18, 6), "keys")):
        changed = model.run_with_cache(tokens, names=pattern)[1][pattern] - cache[pattern]
    assert changed[:, 6].abs().max() > 1e-3 > 100 * changed[:, :6].abs().max()
    assert not any(weights.requires_grad for weights in model.parameters())


def test_it_is_small_and_always_the_same_and_leaves_the_random_numbers_as_they_were():
    torch.manual_seed(7)
    first, then = RandomModel(SMALL["smollm2"]), torch.randn(3)
    torch.manual_seed(7)
    assert torch.equal(torch.randn(3), then)
    assert all(map(torch.equal, first.parameters(), RandomModel(SMALL["smollm2"]).parameters()))
    assert sum(weights.nbytes for weights in first.parameters()) < 10e6


def test_more_words_than_it_has_tokens_share_them():
    model = RandomModel(SMALL["smollm2"])
    tokens = model.encode(" ".join(chr(0x4E00 + number) for number in range(model.tokens + 9)))
    assert max(tokens) == model.tokens - 1 and len(set(tokens)) == model.tokens
    assert model.decode([9999]) == " <9999>"


def test_where_the_real_one_is_not_there_a_sentence_says_so(models, capsys):
    assert not language_model("smollm2", "course").trained
    said = capsys.readouterr().out
    assert "`python3 -m companion fetch smollm2` in the course's folder brings it. Until then a small random" in said
    assert said.count("\n") == 1
    (models / "smollm2").mkdir()  # not what it should be
    assert not language_model("smollm2", "paper").trained
    assert "smollm2: has no tokenizer" in capsys.readouterr().out


def test_where_it_is_there_it_is_the_lessons(models, capsys):
    save_tiny_llama(models / "smollm2")
    model = language_model("smollm2", "course")
    assert model.trained and model.layers == 2 and not capsys.readouterr().out
    assert not language_model("smollm2", "smoke").trained


@pytest.mark.parametrize(
    "words, message",
    [
        (("gpt2", "smoke"), "name = 'gpt2': must be 'smollm2'"),
        (("smollm2", "large"), "scale = 'large': must be one of smoke, course, paper"),
    ],
)
def test_another_name_or_scale_is_refused(words, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        language_model(*words)


def test_each_model_that_can_be_fetched_has_a_small_one():
    assert SMALL.keys() == MODELS.keys()


def test_the_small_one_has_the_layers_and_heads_of_the_real_one(smollm2):
    real, small = language_model("smollm2", "course"), RandomModel(SMALL["smollm2"])
    assert real.trained
    for size in ("layers", "heads", "key_heads", "base"):
        assert getattr(small.model.config, size) == getattr(real.model.config, size)
    assert len(small.encode(TEXTS[0])) == len(real.encode(TEXTS[0]))
