"""The rule for verdicts: made-up measurements on both sides of each of its lines."""

from dataclasses import replace

import pytest
from refusals import refusals

from companion.lesson.verdicts import NONE_PUBLISHED, Construction, Experiment, decide, in_all, tally

REPRODUCED, WEAKER, DIFFERENT, UNASSESSED = "reproduced", "same direction, weaker", "different", "not assessed"

FORM = {"ours": [10, 10, 10.1], "measure": "value", "form": "linear", "fit": [0.99] * 3, "rival": [0.9] * 3}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({}, REPRODUCED),
        ({"fails": False}, UNASSESSED),
        ({"exact": False}, DIFFERENT),
        ({"stand_in": "one part is counted, not built"}, WEAKER),
        ({"trend": "a rate is claimed, and seven worlds simulated"}, WEAKER),
        ({"exact": False, "stand_in": "one part is counted, not built"}, UNASSESSED),
    ],
)
def test_a_construction_is_exact_and_its_negative_world_fails(found, verdict):
    assert decide(Construction(**{"exact": True, "fails": True} | found)) == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        # three training seeds or draws, or an interval over draws
        ({"ours": [10, 10]}, UNASSESSED),
        ({"ours": [10, 10, 10.1]}, REPRODUCED),
        ({"ours": [10], "interval": [9, 11]}, REPRODUCED),
        ({"interval": [9, 11]}, REPRODUCED),
        ({"ours": [10, 10], "over": "seeds"}, UNASSESSED),
        ({"ours": [10, 10, 10.1], "over": "seeds"}, REPRODUCED),
        # fresh data on one network trained here say nothing, on one that others trained little; and so does one fit
        ({"interval": [9, 11], "over": "prompts"}, UNASSESSED),
        ({"interval": [-2, -1], "over": "prompts"}, UNASSESSED),
        ({"interval": [9, 11], "over": "others"}, WEAKER),
        ({"interval": [-2, -1], "over": "others"}, DIFFERENT),
        ({"interval": [9, 11], "over": "sizes"}, WEAKER),
        # at the source's size: within 10 % ...
        ({"ours": [9.0, 9.0, 9.01]}, REPRODUCED),
        ({"ours": [8.9, 8.9, 8.91]}, WEAKER),
        # ... or two points of accuracy ...
        ({"published": 99, "ours": [97, 97, 97.1], "measure": "points"}, REPRODUCED),
        ({"published": 99, "ours": [96.8, 96.9, 96.9], "measure": "points"}, WEAKER),
        # ... or inside the interval ...
        ({"ours": [7], "interval": [3.9, 10.1]}, REPRODUCED),
        ({"ours": [7], "interval": [4.1, 9.9]}, WEAKER),
        ({"ours": [7], "interval": [3.9, 13.9]}, REPRODUCED),
        ({"ours": [7], "interval": [3.9, 14]}, WEAKER),  # wider than the effect
        ({"ours": [4, 7, 10]}, WEAKER),  # in an interval that holds 0 is everything
        # ... or better than published, where there is a better
        ({"ours": [20, 20, 20.1]}, REPRODUCED),
        ({"ours": [20, 20, 20.1], "measure": "value"}, WEAKER),
        ({"ours": [10.9, 11, 11], "measure": "value"}, REPRODUCED),
        # at a smaller size: half of the published effect
        ({"ours": [5, 5, 5.1], "size": "a tenth"}, REPRODUCED),
        ({"ours": [4.9, 4.9, 5], "size": "a tenth"}, WEAKER),
        ({"ours": [19, 20, 20], "measure": "value", "size": "a tenth"}, REPRODUCED),
        ({"ours": [20, 20, 20.1], "measure": "value", "size": "a tenth"}, WEAKER),
        # no number printed: the ordering in every seed
        ({"published": None, "ours": [0.1, 0.1, 5]}, REPRODUCED),
        ({"published": None, "ours": [-0.1, 5, 5, 5, 5, 5, 5, 5]}, WEAKER),  # its interval is beyond 0
        ({"published": None, "ours": [0.1, 0.1]}, UNASSESSED),
        ({"published": None, "interval": [0.1, 5]}, WEAKER),  # says nothing of every draw
        ({"published": None, "ours": [2, 3], "interval": [0.1, 5]}, WEAKER),
        ({"published": None, "ours": [2, 3, 4], "interval": [0.1, 5]}, REPRODUCED),
        ({"published": None, "ours": [-0.1, 3, 4], "interval": [0.1, 5]}, WEAKER),
        ({"published": None, "interval": [-0.1, 5]}, UNASSESSED),
        # stand-ins, and a trend for a rate
        ({"ours": [10, 10, 10.1], "stand_in": "digits for photographs"}, WEAKER),
        ({"ours": [10, 10, 10.1], "trend": "one ratio for a rate"}, WEAKER),
        # the other sign, or 0 in the interval and half of the effect outside
        ({"ours": [-1, -1, -0.1]}, DIFFERENT),
        ({"ours": [-1, -1, 0]}, DIFFERENT),
        ({"ours": [-10, -10, 10]}, UNASSESSED),
        ({"ours": [-1, -1, 0.1]}, DIFFERENT),  # -2.2 to 0.9: half would be 5
        ({"interval": [-1, 4.9]}, DIFFERENT),
        ({"interval": [-1, 5.1]}, UNASSESSED),
        ({"interval": [-2, -1], "published": None}, DIFFERENT),
        ({"ours": [-1, -1, 0.1], "published": None}, UNASSESSED),
        ({"ours": [-1, -1, -0.1], "stand_in": "digits for photographs"}, UNASSESSED),
        ({"interval": [-1, 4.9], "stand_in": "digits for photographs"}, UNASSESSED),
        # a form: it explains more than its rival in every seed, nearly all, and has the published slope
        (FORM, REPRODUCED),
        (FORM | {"fit": [0.94, 0.99, 0.99]}, WEAKER),
        (FORM | {"rival": [0.9, 0.9, 0.995]}, UNASSESSED),
        (FORM | {"rival": [0.995, 0.995, 0.995]}, DIFFERENT),
        (FORM | {"ours": [5, 5, 5.1]}, WEAKER),
        (FORM | {"ours": [5, 5, 5.1], "published": None}, REPRODUCED),
        # what comes out different at another size is told, and what says nothing there is not
        ({"ours": [10, 10, 10.1], "beside": [Experiment("n = 8", "draws", None, (-1, -1, -1))]}, WEAKER),
        ({"ours": [10, 10, 10.1], "beside": [Experiment("n = 8", "draws", None, (-1, -1, 1))]}, REPRODUCED),
        ({"ours": [10, 10, 10.1], "beside": [Experiment("n = 8", "prompts", None, (-1,), (-2, 0))]}, REPRODUCED),
        ({"ours": [-1, -1, -1], "beside": [Experiment("n = 8", "draws", None, (1, 1, 1))]}, DIFFERENT),
        # a measure that cannot tell
        ({"ours": [10, 10, 10.1], "cannot": "it could not fail"}, UNASSESSED),
        ({"ours": [-1, -1, -0.1], "cannot": "it could not succeed"}, UNASSESSED),
    ],
)
def test_an_experiment_on_each_side_of_each_line(found, verdict):
    found = {"published": 10, "over": "draws"} | {
        name: tuple(v) if isinstance(v, list) else v for name, v in found.items()
    }
    assert decide(Experiment("made up", **found)) == verdict


def test_a_verdict_says_what_it_rests_on():
    found = Experiment("margin", "draws", 0.034, (0.0046,), (0.0014, 0.0079), size="d = 5")
    told = "margin: 0.0046 (0.0014 to 0.0079) for 0.034; at a smaller size: d = 5"
    assert found.why() == told
    assert replace(found, over="prompts").why() == f"{told}; one trained network"
    assert replace(found, over="others").why() == f"{told}; on a model that others trained"
    assert replace(found, beside=(found,)).why() == f"{told}. Beside it {told}"
    lead = Experiment("lead", "draws", None, (1, 2))
    assert lead.why() == "lead: 1.5 (1, 2); fewer than three draws, and no interval"
    formed = replace(lead, over="seeds", form="linear", fit=(0.98, 1), rival=(0.9, 0.9))
    assert formed.why() == "lead: 1.5 (1, 2); linear explains 0.99, its rival 0.9; fewer than three training seeds"
    assert Experiment("", "draws", cannot="it could not fail").why() == "it could not fail"
    assert Construction(exact=True, fails=False).why() == "exact, but no world fails it"


test_what_decides_nothing_is_refused = refusals(
    ({"measure": "error"}, "measure = 'error': must be one of effect, points, value"),
    ({"over": "networks"}, "over = 'networks': must be one of seeds, draws, sizes, prompts, others"),
    ({"over": "seeds", "interval": (1, 2)}, r"interval = \[1, 2\]: must be left out where over = 'seeds'"),
    ({"form": "linear", "fit": (1,)}, r"fit = \[1\], rival = \[\]: must have as many numbers as ours"),
    ({"fit": (1,), "rival": (1,)}, r"fit = \[1\], rival = \[1\]: must be left out, as there is no form"),
    ({"published": 0}, "published = 0: must be above 0"),
    ({"interval": (2, 1)}, r"interval = \[2, 1\]: must be the lower end, then the upper end"),
    ({"ours": ()}, r"ours = \[\]: must have numbers where there is no interval"),
    of=lambda wrong: Experiment(**{"of": "made up", "over": "draws", "ours": (1,)} | wrong),
)


def test_a_tally_has_four_numbers_or_there_is_none():
    assert [tally([]), tally(["", ""]), in_all([])] == ["none", "none", NONE_PUBLISHED]
    assert tally([REPRODUCED, "", WEAKER, REPRODUCED]) == (
        "2 reproduced; 1 same direction, weaker; 0 different; 0 not assessed"
    )
