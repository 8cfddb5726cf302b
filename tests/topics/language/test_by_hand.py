"""The planted wires are there, and no others; cut by zero, one more seems to be."""

import pytest
import torch

from companion.core.circuits import Part, ablation
from companion.topics.language.by_hand import HEADS, KINDS, LAGS, LOOK, SHARES, SIDES, number, planted
from companion.topics.language.exercises import find_wires
from companion.topics.language.probes import head_maps, streams_and_writers

SEEDS = range(6)


def drawn(seed):
    return planted(2, torch.Generator().manual_seed(seed))


def inputs(of, other):
    """What a search is handed, where a cut wire carries ``other``, or what is written on the other texts."""
    stream, wrote = streams_and_writers(of.model, of.tokens, 1)
    resampled = streams_and_writers(of.model, of.others, 1)[1]
    mean = wrote.mean((1, 2), keepdim=True).expand_as(wrote)
    other = {"zero": torch.zeros_like(wrote), "mean": mean, "resample": resampled}[other]
    heads, norm = head_maps(of.model, 1)[: len(of.readers)], of.model.blocks[1].norm1.weight
    return [stream, wrote, other, norm, heads, of.model.config.base, of.asked, of.toward]


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_wire_takes_most_of_the_number_and_any_other_hardly_any(seed):
    of = drawn(seed)
    for r, reader in enumerate(of.readers):
        whole = number(of, r)
        assert 0.45 < whole < 1.01
        for side, name in enumerate(SIDES):
            needed = of.wired[r, :, side].nonzero()[:, 0].tolist()
            parts = [*reader.values, *reader.beside] if name == "values" and reader.kind in SHARES else []
            parts += reader.beside if name == "keys" and reader.kind == "keys" else ()
            idle = [w for w in range(HEADS) if w not in {*needed, *parts}][:3]
            lost = {w: 1 - number(of, r, name, [w]) / whole for w in (*needed, *parts, *idle)}
            assert all(abs(lost[w]) < 0.1 for w in idle)
            if reader.kind.startswith("spare"):
                assert all(abs(lost[w]) < 0.1 for w in needed)
                assert not needed or number(of, r, name, needed) < 0.2 * whole
            elif parts and reader.kind in SHARES:
                shares = torch.tensor(SHARES[reader.kind])
                due = shares[1:] / shares.sum() * (1 - LOOK / whole)
                assert [lost[w] for w in parts] == pytest.approx(due.tolist(), abs=0.02)
            elif parts:
                assert 0.1 < lost[parts[0]] < 0.3 and lost[needed[0]] > 1
            elif reader.kind == "key and spare" and needed:
                one, *spare = reader.keys
                assert lost[one] > 0.8 and all(abs(lost[w]) < 0.1 for w in spare)
                assert number(of, r, name, spare) < 0.2 * whole
            else:
                assert all(lost[w] > 0.8 for w in needed)


@pytest.mark.parametrize("other", ["mean", "resample"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_finds_them(seed, other):
    of = drawn(seed)
    assert torch.equal(find_wires.answer(*inputs(of, other)), of.wired)


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_by_zero_a_sign_that_every_text_has_seems_to_be_needed(seed):
    of = drawn(seed)
    said = next(r for r, reader in enumerate(of.readers) if reader.kind == "said")
    more = (find_wires.answer(*inputs(of, "zero")) & ~of.wired)[said].nonzero().tolist()
    assert more == [[*of.readers[said].sign, SIDES.index("queries")]]


def test_every_draw_has_every_kind_at_other_places():
    draws = [drawn(seed) for seed in SEEDS]
    assert all(sorted(reader.kind for reader in of.readers) == sorted(KINDS) for of in draws)
    assert all(sorted(of.lags) == sorted(LAGS) for of in draws)
    assert not any(torch.equal(draws[0].wired, of.wired) for of in draws[1:])
    assert {len({tuple(row) for row in of.wired.nonzero().tolist()}) for of in draws} == {14}


def test_a_writer_copies_the_token_so_far_back():
    of = drawn(0)
    _, cache = of.model.run_with_cache(of.tokens, names="blocks.0.attn.hook_pattern")
    for w, lag in enumerate(of.lags):
        assert cache["blocks.0.attn.hook_pattern"][:, w].diagonal(-lag, dim1=-2, dim2=-1).min() > 0.95


def test_texts_and_others_have_no_word_in_common():
    of = drawn(0)
    for text, other in zip(of.tokens.tolist(), of.others.tolist(), strict=True):
        assert not {*text} & {*other}


def test_each_reader_hears_a_writer_in_vain_as_loudly_as_one_that_it_needs():
    """So the size of what a head reads does not tell what it needs."""
    of = drawn(0)
    _, wrote = streams_and_writers(of.model, of.tokens, 1)
    heard = torch.einsum("wbtd,rshd->rswbth", wrote * of.model.blocks[1].norm1.weight, head_maps(of.model, 1)[:, :3])
    size = heard.square().mean((-3, -2, -1)).transpose(1, 2)[: len(of.readers)]
    loudest = torch.zeros_like(of.wired).scatter(1, size.argmax(1, keepdim=True), True)
    assert (loudest & ~of.wired).sum() > len(of.readers)


def test_a_reader_that_needs_no_writer_keeps_its_number_whatever_they_write_on_other_texts():
    of = drawn(0)
    said = next(r for r, reader in enumerate(of.readers) if reader.kind == "said")
    assert all(number(of, said, side, range(HEADS)) > 0.9 * number(of, said) for side in ("queries", "keys"))
    (sign,) = of.readers[said].sign
    with of.model.hooks(ablation(Part(0, 0).written, "zero", head=sign)):
        assert number(of, said) < 0.1  # by zero it loses the sign, which every text has
