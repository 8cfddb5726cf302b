"""``examine facts`` against whole runs with hooks, on a tiny random Llama; what it cannot compare is named."""

import re
from argparse import Namespace

import torch
from PIL import Image
from tiny_gpt2 import save_tiny_gpt2
from tiny_llama import HEADS, LAYERS

from companion.topics.facts import examined
from companion.workshop.cli import examine

PAIRS = {"12": "3", "13": "5", "20": "8", "31": "2"}
PROMPT = "0 {} 1 7"


def arguments(folder, *, facts=None, prompt=PROMPT, out=None) -> Namespace:
    return Namespace(topic="facts", folder=str(folder), facts=facts and str(facts), prompt=prompt, out=out)


@torch.no_grad()
def test_what_one_value_brings_back_is_what_a_whole_run_says(llama):
    facts = examined.comparable(llama, PAIRS, PROMPT)
    assert facts.subjects == list(PAIRS)
    assert facts.prompts.shape == (4, 4)
    assert facts.place == 1
    found = examined.what_brings_back(llama, facts)
    others, wrong = facts.prompts[[1, 2, 3, 0]], facts.answers[[1, 2, 3, 0]]  # five further, of four: one
    rows = torch.arange(4)

    def gap(tokens, hooks):
        with llama.hooks(hooks):
            logits = llama(tokens)[:, -1]
        return logits[rows, facts.answers] - logits[rows, wrong]

    best, worst = gap(facts.prompts, {}), gap(others, {})
    _, clean = llama.run_with_cache(facts.prompts)
    for layer in range(LAYERS):
        stream, z = f"blocks.{layer}.hook_resid_pre", f"blocks.{layer}.attn.hook_z"
        for place in range(4):

            def at_place(value, name, place=place):
                value = value.clone()
                value[:, place] = clean[name][:, place]
                return value

            share = (gap(others, {stream: at_place}) - worst) / (best - worst)
            torch.testing.assert_close(found.streams[layer, place], share.mean(), rtol=1e-3, atol=1e-4)
        for head in range(HEADS):

            def one_head(value, name, head=head):
                value = value.clone()
                value[:, head, -1] = clean[name][:, head, -1]
                return value

            share = (gap(others, {z: one_head}) - worst) / (best - worst)
            torch.testing.assert_close(found.heads[layer, head], share.mean(), rtol=1e-3, atol=1e-4)
        looks = clean[f"blocks.{layer}.attn.hook_pattern"][:, :, 3, 1].mean(0)
        torch.testing.assert_close(found.attention[layer], looks)
    expected = torch.tensor([0.0, 1.0, 0.0, 0.0])  # before the first layer all of it is where the subject stands
    torch.testing.assert_close(found.streams[0], expected, rtol=0, atol=1e-4)


def test_the_command_prints_both_tables_and_draws_them(llama_folder, tmp_path, capsys):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("".join(f"{subject}, {answer}\n" for subject, answer in PAIRS.items()))
    out = tmp_path / "facts.png"
    assert examine.main(arguments(llama_folder, facts=pairs, out=str(out))) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{llama_folder}: 4 facts, as in '0 12 1 7'\nThe answer is the first guess for ")
    assert len(re.findall(r"^ +\d+ +\d+ +0\.\d{3} +\d+  \S", text, re.MULTILINE)) == 4
    assert re.search(r"^ +layer +0 +\(subject\) +1 +7$", text, re.MULTILINE)
    assert len(re.findall(r"^ +\d+( +-?\d+\.\d\d){4}$", text, re.MULTILINE)) == LAYERS
    assert len(re.findall(r"^ +\d\.\d +-?\d+\.\d\d +\d\.\d\d$", text, re.MULTILINE)) == min(8, LAYERS * HEADS)
    assert text.endswith(f"What brings the answers back is drawn in {out}\n")
    with Image.open(out) as picture:
        assert picture.size == (1200, 675)


@torch.no_grad()
def test_two_facts_with_the_same_answer_do_not_spoil_the_mean(llama):
    facts = examined.comparable(llama, {"12": "3", "13": "3", "20": "8", "31": "2"}, PROMPT)
    found = examined.what_brings_back(llama, facts)
    torch.testing.assert_close(found.streams[0], torch.tensor([0.0, 1.0, 0.0, 0.0]), rtol=0, atol=1e-4)


def test_a_fact_of_another_length_or_with_a_longer_answer_is_left_out(llama):
    pairs = PAIRS | {"12 13": "4", "33": "4 5"}
    assert examined.comparable(llama, pairs, PROMPT).subjects == list(PAIRS)


def test_what_cannot_be_compared_is_named(llama_folder, tmp_path, capsys):
    lines = tmp_path / "lines.csv"
    few = "facts: 0 of 16 can be used; must be at least 3 whose answer is one token and whose prompts have"
    for content, given, message in (
        ("12,3\n13\n", {"facts": lines}, f"facts = '{lines}': '13' is not a pair; each line must be subject,answer"),
        ("12,3\n13,\n", {"facts": lines}, f"facts = '{lines}': '13,' is not a pair; each line must be subject,answer"),
        ("", {"facts": tmp_path / "none.csv"}, f"facts = '{tmp_path / 'none.csv'}': cannot be read"),
        ("", {"prompt": "The capital is"}, "prompt = 'The capital is': must have one {}, where the subject stands"),
        ("", {}, few),
        ("12,3\n13,3\n20,3\n", {"facts": lines}, "facts: all have the same answer; must have at least two"),
    ):
        lines.write_text(content)
        assert examine.main(arguments(llama_folder, **given)) == 2
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith(f"examine facts: {message}")


def test_a_model_without_the_names_of_streams_is_refused(tmp_path, capsys):
    folder = save_tiny_gpt2(tmp_path / "gpt2", head=True)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("12,3\n13,5\n20,8\n")
    assert examine.main(arguments(folder, facts=pairs)) == 2
    assert "examine facts: hook = 'blocks.0.hook_resid_pre': must be one of" in capsys.readouterr().out
