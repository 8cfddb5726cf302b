"""Numbers beside their bars: compared always, kept where somebody asks."""

import math

from companion.lesson.bars import Measured, reaches, recorded, stays_within


def test_a_bar_is_reached_or_not():
    assert reaches("share", 0.5, 0.5) and not reaches("share", 0.4, 0.5)
    assert stays_within("loss", 0.5, 0.5) and not stays_within("loss", 0.6, 0.5)
    assert not reaches("share", math.nan, 0.5) and not stays_within("loss", math.nan, 0.5)


def test_what_is_compared_is_kept_within_the_block_alone():
    reaches("before", 1, 0)
    with recorded() as found:
        reaches("share", 0.75, 0.5)
        with recorded() as inner:
            stays_within("loss", 2, 1)
        stays_within("gap", 0.25, 1)
    reaches("after", 1, 0)
    assert found == [Measured("share", 0.75, 0.5, 1), Measured("gap", 0.25, 1.0, -1)]
    assert [one.beyond for one in found] == [0.25, 0.75]
    assert [one.beyond for one in inner] == [-1.0]
