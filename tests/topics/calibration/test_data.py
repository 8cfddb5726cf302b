"""Worlds are distributions with false candidates beside the facts, and a corpus follows them."""

from itertools import permutations, product

import pytest
import torch
from laws import drawn, laws
from refusals import refusals

from companion.topics.calibration.data import FactWorld, biographies, corpus, even_facts, zipf_facts


def test_facts_are_as_likely_as_told():
    assert even_facts(50, 1000).p.unique().tolist() == pytest.approx([0.02])
    zipf = zipf_facts(100, 1000)
    torch.testing.assert_close(zipf.p[0] / zipf.p, torch.arange(1, 101).double())
    assert zipf.p.sum().item() == pytest.approx(1)
    assert (zipf.facts, zipf.sparsity) == (100, 100 / 900)


WORLD, TRIPLES = zipf_facts(3, 9), [*product(range(2), repeat=3)]
CHANCES = WORLD.p.tolist()
test_draws_follow_their_laws = laws(
    (
        lambda g: corpus(WORLD, 20_000, generator=g).view(-1, 2),
        {(i, j): CHANCES[i] * CHANCES[j] for i, j in product(range(3), repeat=2)},
    ),
    (
        drawn(2000, lambda g: str(biographies(2, 2, generator=g).tolist())),
        [str([*map(list, two)]) for two in permutations(TRIPLES, 2)],
    ),
    (drawn(600, lambda g: tuple(biographies(1, 3, generator=g)[0].tolist())), product(range(3), repeat=3)),
)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: even_facts(0, 5), "facts = 0"),
    (lambda: even_facts(5, 5), "candidates = 5: must be at least 6"),
    (
        lambda: FactWorld(torch.tensor([0.5, 0.4]).double(), 5),
        "p: must be at least 0 and sum to 1; the least is 0.4, the sum 0.9",
    ),
    (lambda: corpus(even_facts(2, 5), 0, generator=0), "n = 0"),
    (lambda: biographies(8, 2, generator=0), r"facts = 8: must be below words\^3 = 8"),
    (lambda: biographies(1, 0, generator=0), "words = 0"),
)
