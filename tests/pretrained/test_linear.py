"""The linear maps of a language model: the half of an MLP's rank that is left, what a ridge regression finds, and what
capitals a head, or a fitted map, has for countries.
"""

import pytest
import torch

from companion.pretrained import linear
from companion.pretrained.facts import COUNTRIES
from companion.pretrained.language import LanguageModel
from companion.pretrained.lesson import language_model
from companion.topics.language.probes import head_maps


def test_half_of_the_rank_of_an_mlp_is_left(llama_folder):
    model = LanguageModel(llama_folder)
    linear.halve_rank(model, 1)
    for layer, rank in ((0, 24), (1, 12)):
        mlp = model.body.blocks[layer].mlp
        for matrix in (*mlp.gate_and_up.weight.chunk(2), mlp.down.weight):
            assert torch.linalg.matrix_rank(matrix) == rank


def test_a_ridge_finds_the_map_and_the_offset_of_a_linear_relation():
    generator = torch.Generator().manual_seed(0)
    x, A = torch.randn(4000, 6, generator=generator) + 3, torch.randn(6, 6, generator=generator)
    found, offset = linear.ridge(x, x @ A + 2)
    torch.testing.assert_close(found, A / (1 + linear.RIDGE), atol=0.01, rtol=0)
    torch.testing.assert_close(x.mean(0) @ found + offset, x.mean(0) @ A + 2, atol=1e-3, rtol=0)


def test_countries_are_one_token_and_no_two_capitals_begin_alike(smollm2):
    model = LanguageModel("smollm2")
    drawn = linear.drawn_countries(model, 0, 1000)
    assert len(drawn) == len(set(drawn.values())) == 79
    assert [model.decode([drawn[country]]) for country in ("Norway", "Turkey")] == [" Oslo", " Ank"]
    draws = [linear.drawn_countries(model, seed, 64) for seed in range(3)]
    assert len({tuple(draw) for draw in draws}) == 3 and {len(draw) for draw in draws} == {64}


def test_a_lead_is_over_the_other_answers():
    gains = torch.tensor([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 4.0, 9.0]])
    right, lead = linear.lead_of_diagonal(gains)
    assert right.tolist() == [True, False, True]
    torch.testing.assert_close(lead, torch.tensor([2.5 / 0.5, 0.0, 7.0 / 2.0]))


def test_a_head_is_read_as_what_it_writes_and_by_the_directions_of_its_matrix():
    model = language_model("smollm2", "smoke")
    rows = linear.held_capitals(model, 0, 16)
    drawn = linear.drawn_countries(model, 0, 16)
    tokens = model.batch([linear.HEARD[1].format(country) for country in drawn])
    name = "blocks.23.hook_resid_pre"
    _, cache = model.run_with_cache(tokens, names=[name])
    block = model.body.blocks[23]
    _, _, WV, WO = head_maps(model, 23)[4]
    written = block.norm1(cache[name][:, -1]) @ WV.mT @ WO * model.norm.weight
    gains = written @ model.unembedding[list(drawn.values())].mT
    right, lead = linear.lead_of_diagonal(gains)
    whole = {"text": 1, "of": "head", "layer": 23, "head": 4, "rank": 64, "countries": 16}
    [found] = [row for row in rows if whole.items() <= row.items()]
    assert found["right"] == right.double().mean() and found["lead"] == pytest.approx(lead.mean().item(), abs=1e-4)
    for of in ("largest", "random", "best"):  # from the rank of the head on, nothing is taken away
        [all_of_it] = [row for row in rows if (whole | {"of": of}).items() <= row.items()]
        assert all_of_it["lead"] == pytest.approx(found["lead"], abs=1e-3)
    pairs = [row["right"] for row in rows if row["text"] == 1 and row["of"] == "head" and row["countries"] == 2]
    alone = [gains[i, i] > gains[i, i ^ 1] for i in range(16)]
    assert pairs == [sum(alone).item() / 16]
    each = [row for row in rows if row["of"] == "each head"]
    assert [(row["layer"], row["head"]) for row in each] == [divmod(at, 9) for at in range(270)]


def test_words_in_the_place_of_a_country_are_neither_countries_nor_their_capitals(smollm2):
    model = LanguageModel("smollm2")
    words = linear.drawn_words(model, 0, 10_000)
    assert 3000 < len(words) == len(set(words)) < 10_000 and {"Texas", "Boston", "John"} <= set(words)
    assert not set(words) & {*COUNTRIES, *COUNTRIES.values()}


def test_a_map_that_was_fitted_to_words_is_asked_for_countries(monkeypatch):
    model, fits, ridge = language_model("smollm2", "smoke"), [], linear.ridge
    model.encode(" ".join(["", "Oslo", "Norway", *(f"W{chr(97 + at % 26)}{chr(97 + at // 26)}e" for at in range(90))]))
    monkeypatch.setattr(linear, "ridge", lambda x, y: fits.append((x, y)) or ridge(x, y))
    rows = linear.known_capitals(model, 0, 16, 80)
    assert len(rows) == 31 * 2 * 4 and len(fits) == 31 * 2 * 3 and {len(x) for x, _ in fits[::3]} == {80}
    x, y = fits[-3]  # after the last layer, at the last place: what the output embedding reads
    torch.testing.assert_close(x, y)
    assert len({tuple(end.tolist()) for end in torch.cat([y, fits[-2][1]])}) == 80  # shuffled, they are the same ends
    tokens = model.batch([linear.PROMPT.format(country) for country in linear.drawn_countries(model, 0, 16)])
    gains = model(tokens, only_last=True)[:, -1][:, list(linear.drawn_countries(model, 0, 16).values())]
    of_words = y @ model.unembedding[list(linear.drawn_countries(model, 0, 16).values())].mT
    of_words -= of_words.mean(1, keepdim=True)
    far = [(each - of_words.mean(0) < 3 * of_words.std(0)).all() for each in of_words]
    assert rows[-1]["words"] == sum(far).item() == len(fits[-1][0]) < 80
    direct = next(row for row in rows[::-1] if row["readout"] == "direct")
    assert direct["lead"] == pytest.approx(linear.lead_of_diagonal(gains)[1].mean().item(), abs=1e-4)
