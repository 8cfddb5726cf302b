"""What a run saw, beside what is written of it: which numbers are the same, and which rows are named."""

import pytest
from sample_lesson import CLAIM, NAME, checkout
from written_claims import alike, differences

from companion.workshop.cli import scoreboard
from companion.workshop.cli.lessons import all_lessons


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("one layer 0.37, two layers 0.998", "one layer 0.38, two layers 0.996", True),
        ("one layer 0.37, two layers 0.998", "one layer 0.37, two layers 0.39", False),
        ("one layer 0.37, two layers 0.998", "two layers 0.998, one layer 0.37", False),
        ("1 + 1 of 8,192", "1 + 1 of 8,300", True),
        ("after step 230", "after step 300", False),
        ("largest error 5e-07 at beta 20", "largest error 8e-07 at beta 20", True),
        ("largest error 5e-07 at beta 20", "largest error 5e-04 at beta 20", False),
        ("-0.5 dex", "0.5 dex", False),
        ("T^1.99", "T^2.00", True),
        ("2 (as expected)", "2 (not as expected)", False),
        ("all heads", "all heads", True),
    ],
)
def test_another_machines_rounding_is_no_difference_and_another_outcome_is_one(ours, theirs, same):
    assert alike(ours, theirs) == alike(theirs, ours) == same


def test_a_row_that_is_another_or_missing_is_named(tmp_path):
    [lesson] = all_lessons(checkout(tmp_path))
    doubles = CLAIM | {"run": "2.00", "checkpoint": "2.1"}
    written = scoreboard.table(
        {"lessons": [{"lesson": NAME, "scale": "course", "seed": 0, "claims": [doubles]}]}, [lesson]
    )
    assert not differences(lesson, [doubles], written)
    assert not differences(lesson, [doubles | {"run": "2.01"}], written)
    assert not differences(lesson, [], written)
    [found] = differences(lesson, [doubles | {"run": "3.00"}], written)
    assert "3.00" in found and "2.00" in found
    [found] = differences(lesson, [doubles | {"statement": "Trebles"}], written)
    assert found.endswith("no such row")
