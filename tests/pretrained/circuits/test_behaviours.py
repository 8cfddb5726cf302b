"""Each behaviour in the box draws pairs that change one thing, and both answers change their roles."""

from random import Random

import pytest

from companion.pretrained.circuits.behaviours import BEHAVIOURS
from companion.pretrained.circuits.runs import Runs, draw
from companion.pretrained.circuits.scoring import check_shown


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_pairs_differ_in_what_decides_and_answers_change(name):
    random = Random(0)
    pairs = [BEHAVIOURS[name](random) for _ in range(200)]
    assert all(pair.clean != pair.corrupted and pair.right != pair.wrong for pair in pairs)
    assert len(set(pairs)) >= 20 and {pair.right for pair in pairs} & {pair.wrong for pair in pairs}
    assert [BEHAVIOURS[name](Random(1)) for _ in range(3)] == [BEHAVIOURS[name](Random(1)) for _ in range(3)]
    words = [abs(len(pair.clean.split()) - len(pair.corrupted.split())) for pair in pairs]
    assert max(words) == (1 if name == "country or the" else 0) or name == "country or the"


def test_what_is_due_is_right():
    for name, of in BEHAVIOURS.items():
        pair = of(Random(3))
        last = pair.clean.split()
        if name == "said twice":
            assert last[last.index(last[-1]) + 1] == pair.right.strip()
        if name == "indirect objects":
            assert pair.clean.count(pair.right) == 1 and pair.clean.count(pair.wrong.strip()) == 2
        if name == "larger year":
            assert int(pair.wrong) < int(last[6][2]) < int(pair.right)
        if name == "agreement":
            assert (pair.right == " are") == last[1].endswith("s")
        if name == "closing bracket":
            assert (pair.right == ")") == ("(" in pair.clean)


@pytest.mark.parametrize("name", ["capitals", "agreement"])
def test_the_model_shows_it(name, smollm2):
    from companion.pretrained.language import LanguageModel

    model = LanguageModel(smollm2)
    assert check_shown(Runs(model, draw(model, BEHAVIOURS[name], 10)))[0] > 0.8


def test_every_prompt_of_the_box_has_its_pair_of_equal_length(smollm2):
    from companion.pretrained.language import LanguageModel

    model = LanguageModel(smollm2)
    for of in BEHAVIOURS.values():
        assert len(draw(model, of, 100, seed=7).right) >= 20
