"""The student of lesson 09, and what it has still to learn of a parity."""

import numpy as np
from refusals import refusals

from companion.core.measuring import measured_table
from companion.topics.multihead.measured import ARMS, parity_parts


def test_the_table_of_students_begins_as_the_function_does():
    """Steps, then parity of 3 and 5; four arms; three runs; where it is asked for and elsewhere."""
    table = measured_table("multihead-students-of-parities")
    stored = table.grid("step", "support", "arm", "seed", of=("asked", "elsewhere"))
    assert table.values("step") == [*range(0, 1200, 20)] and stored.shape == (60, 2, 4, 3, 2)
    for place, support in enumerate((3, 5)):
        for other, arm in enumerate(ARMS):
            first = parity_parts(support, arm=arm, steps=1, seed=1)
            np.testing.assert_allclose(first[0], stored[0, place, other, 1], rtol=1e-3)


def test_a_student_learns_where_there_is_no_parity_to_know_first():
    parts = parity_parts(1, steps=120, every=30, d=4)
    assert parts.shape == (4, 2)
    assert parts[-1, 1] < parts[0, 1] / 10


def test_who_is_told_where_to_look_learns_a_parity_and_no_coin():
    """With the teacher's Theta a linear fit is left; of a coin nothing can be known, and its best answer is 0."""
    asked = {arm: parity_parts(2, arm=arm, steps=200, every=199, d=4)[-1, 0] for arm in ARMS[2:]}
    assert asked["told where to look"] < 0.1 and 0.9 < asked["a coin"] < 1.2


test_bad_arguments_are_named = refusals(
    (lambda: parity_parts(3, arm="a hint"), "arm = 'a hint': must be one of a parity, signs agree, told"),
    (lambda: parity_parts(0), "support = 0: must be at least 1"),
    (lambda: parity_parts(3, steps=0), "steps = 0: must be at least 1"),
    (lambda: parity_parts(3, every=0), "every = 0: must be at least 1"),
)
