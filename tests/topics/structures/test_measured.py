"""The loop by which a table trains is the learner's."""

import pytest
import torch

from companion.topics.structures import exercises
from companion.topics.structures.data import problems
from companion.topics.structures.measured import train_as_asked
from companion.topics.structures.model import Structure, StructureConfig


@pytest.mark.parametrize("frozen", [False, True])
def test_the_loop_of_the_table_of_sixteen_numbers_is_the_one_that_is_asked_for(frozen):
    test, drawn = problems("line", 6)(50, torch.Generator().manual_seed(1)), torch.Generator().manual_seed(0)
    sets = exercises.training_sets(6, 3, 20, 8, 4, drawn)
    with torch.random.fork_rng():
        due = exercises.train_store.answer(**sets, test_points=test.points, test_query=test.query)
        torch.manual_seed(0)
        network = Structure(StructureConfig(6, 1, 3, norm=True, frozen=frozen))
    train_as_asked(network, sets)
    with torch.no_grad():
        stored = network.store(test.points)
        looks = network.lookups(stored.values, test.query).argmax(-1)
    assert torch.equal(torch.cat([stored.order.argmax(-1), looks], 1), due) == (not frozen)
