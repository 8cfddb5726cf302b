"""What is computed again where heads are resampled is what the whole model gives, and each measure its plain form."""

import pytest
import torch

from companion.core.circuits import Part, ablation, direct_attribution, wires
from companion.pretrained.indirect import CHOSEN, by_class, by_head, parts, sets_at_random, told_sentences
from companion.pretrained.lesson import language_model
from companion.topics.language.data import WORDINGS, indirect_objects
from companion.topics.language.probes import toward_receivers


@pytest.fixture(scope="module")
def of():
    return told_sentences(language_model("smollm2", "smoke"), indirect_objects(6, wording="other", generator=3))


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("place", [None, 2])
def test_resampled_heads_give_what_hooks_give(of, place):
    sets = [[Part(3, 1), Part(7, 4)], [Part(12, 0)]]
    places = None if place is None else of.places[:, place]
    last, _ = of.without(sets, places)
    for found, heads in zip(last, sets, strict=True):
        at = -1 if place is None else int(of.places[0, place])
        hooks = {}
        for part in heads:
            name = f"blocks.{part.layer}.attn.hook_z"
            hooks |= ablation(name, "resample", head=part.head, place=at, other=of.third[name])
        with of.model.hooks(hooks):
            due = of.model(of.tokens, only_last=True)[:, -1]
        torch.testing.assert_close(of.model.norm(found) @ of.model.unembedding.mT, due, rtol=1e-4, atol=1e-4)


def test_places_may_differ_from_text_to_text(of):
    at = of.places[:, 1] + 1
    assert len(set(at.tolist())) == 2
    together = of.costs([[Part(2, 3)]], at)[0]
    for text in range(len(at)):
        name = "blocks.2.attn.hook_z"
        with of.model.hooks(ablation(name, "resample", head=3, place=int(at[text]), other=of.third[name])):
            logits = of.model(of.tokens, only_last=True)[text, -1]
        difference = logits[of.receivers[text]] - logits[of.givers[text]]
        assert together[text] == pytest.approx((of.difference(of.last)[text] - difference).item(), abs=1e-4)


def test_direct_effects_are_those_of_direct_attribution(of):
    toward = of.model.unembedding[of.receivers] - of.model.unembedding[of.givers]
    due = direct_attribution(of.model, of.tokens, direction=toward).heads
    torch.testing.assert_close(of.direct(of.at_last(of.run), of.last), due, rtol=1e-4, atol=1e-5)


def test_a_share_lost_by_the_queries_is_that_of_cut_wires(of):
    reader = Part(5, 2)
    weights = toward_receivers(of.tokens, of.receivers.tolist(), of.givers.tolist())
    others = of.model.batch(indirect_objects(6, wording="other", generator=3).others)
    cut = wires(
        of.model, of.tokens, reader=reader, side="queries", measure=lambda p: (weights * p).sum(), others=[others]
    )
    pattern = of.run["blocks.5.attn.hook_pattern"][:, 2]
    whole = (weights * pattern).sum()
    lost = of.lost_by_queries([[Part(layer, head)] for layer in range(5) for head in range(9)], [reader])
    torch.testing.assert_close(lost.mean(1).view(5, 9), (whole - cut) / whole, rtol=1e-3, atol=1e-3)


def test_without_anything_nothing_changes_and_some_are_the_first(of):
    same = told_sentences(of.model, indirect_objects(6, wording="other", generator=3), of.tokens.clone())
    few = of.some(2)
    assert few.difference(few.last).tolist() == of.difference(of.last)[:2].tolist()
    assert few.costs([[Part(20, 0)]]).shape == (1, 2)
    changes = of.changes([[Part(23, 0)]], of.direct(of.at_last(of.run), of.last))
    assert changes[0, :, 23, 0].abs().max() == 0 and changes[0, :, 24:].abs().max() > 0
    assert same.costs([[Part(20, 0)]]).abs().max() < 1e-4


def test_what_copies_and_what_opposes_change_places_with_the_sign(of):
    found, weight = of.copies(), of.model.outputs[28]
    weight.neg_()
    try:
        turned = of.copies()
    finally:
        weight.neg_()
    assert torch.equal(turned[28], found[28].flip(-1)) and torch.equal(turned[:28], found[:28])
    assert found[28].sum() > 0


def test_sets_at_random_have_the_layers_and_none_of_the_chosen():
    generator = torch.Generator().manual_seed(0)
    taken = {part for kind in CHOSEN for part in parts(kind)}
    for chosen in (parts("duplicate token"), parts("induction")):
        for drawn in sets_at_random(chosen, None, 20, generator):
            assert sorted(part.layer for part in drawn) == sorted(part.layer for part in chosen)
            assert len(set(drawn)) == len(drawn) and not taken & set(drawn)
    assert all(len(each) == 4 for each in sets_at_random(parts("name movers"), range(19, 25), 5, generator))


def test_tables_have_a_row_for_each_head_and_class():
    model, drawn = language_model("smollm2", "smoke"), indirect_objects(16, wording="lesson", generator=0)
    assert len(by_head(model, drawn)) == 270
    rows = by_class(model, drawn, 0)
    assert {row["class"] for row in rows} == {"all", *CHOSEN}
    assert set(WORDINGS) == {"lesson", "other"}
