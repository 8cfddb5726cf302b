"""Tasks: what is asked for can be answered from the inputs, by the best algorithm and not by one that is blind."""

import pytest
import torch
from torch.utils.data import DataLoader

from companion.core.task import Examples, Problems, tasks

COURSE = tasks()
SIZES = [(name, size) for name, task in COURSE.items() for size in (None, *task.sizes)]
EVERY = pytest.mark.parametrize("name", COURSE)


def drawn(name: str, size: int | None = None, batch: int = 300, seed: int = 0) -> Problems:
    return COURSE[name].draw(batch, torch.Generator().manual_seed(seed), size)


def test_there_are_the_tasks_that_the_course_has():
    assert list(COURSE) == [
        *("addition", "bigrams", "connectivity", "hops", "parity", "s3"),
        *("recall", "regression", "sparse", "search"),
    ]
    with pytest.raises(ValueError, match="scale = 'huge': must be one of smoke, course, paper"):
        tasks("huge")


@pytest.mark.parametrize("scale", ["smoke", "course", "paper"])
def test_inputs_and_answers_are_as_a_task_says(scale):
    for name, task in tasks(scale).items():
        features = task.draw(1, torch.Generator()).inputs.shape[-1]
        for size in (None, *task.sizes):
            inputs, targets, counts = task.draw(20, torch.Generator().manual_seed(0), size)
            assert inputs.shape[-1] == features and inputs.shape[:2] == targets.shape == counts.shape, name
            assert counts.any() and counts.dtype == torch.bool
            assert inputs.is_floating_point() == (task.vocabulary == 0), name
            if task.vocabulary:
                assert inputs.min() >= 0 and inputs.max() < task.vocabulary, name
            if task.outputs > 1:
                assert targets.min() >= 0 and targets.max() < task.outputs, name


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_no_evidence_is_overwritten_and_the_best_algorithm_reaches_the_ceiling(name, size):
    """The best algorithm reads the inputs alone: were a pair, an edge or a letter written over, it would be wrong."""
    task, problems = COURSE[name], drawn(name, size)
    ceiling = task.score(task.best(problems.inputs), problems)
    if name == "regression" and size is None:  # with fewer examples than dimensions nobody is right
        assert 0.8 < ceiling < 0.9
    else:
        assert ceiling == pytest.approx(1, abs=1e-4)
    assert task.score(task.blind(problems.inputs), problems) < ceiling - 0.2


@EVERY
def test_the_blind_answer_looks_at_its_own_position_alone(name):
    task, (inputs, *_) = COURSE[name], drawn(name)
    blind = task.blind(inputs)
    for place in (1, inputs.shape[1] - 1):
        others = inputs.roll(1, 0)
        others[:, place] = inputs[:, place]
        assert torch.equal(task.blind(others)[:, place], blind[:, place])


@EVERY
def test_the_best_answer_sees_no_future(name):
    """What it says at a position is the same when all later ones come from another sequence."""
    task, (inputs, _, counts) = COURSE[name], drawn(name)
    best, place = task.best(inputs), int(counts[0].nonzero()[len(counts[0].nonzero()) // 2])
    others = torch.cat([inputs[:, : place + 1], inputs.roll(1, 0)[:, place + 1 :]], 1)
    assert torch.allclose(task.best(others)[:, place].double(), best[:, place].double(), atol=1e-4)


def test_no_key_is_written_twice_and_each_is_asked_for_once():
    inputs, _, counts = drawn("recall", 32)
    keys = inputs[..., 0]
    written, asked = (keys[which].view(len(keys), 32).sort(1).values for which in (~counts, counts))
    assert torch.equal(written, asked) and (written.diff(dim=1) > 0).all()


def test_pairs_of_nodes_are_as_far_apart_as_the_size_says_or_not_connected():
    for steps in (1, 2, 3):
        inputs, targets, counts = drawn("connectivity", steps)
        graphs, one, other = inputs[:, :8, :8], inputs[..., 8:16], inputs[..., 16:]
        paths = [torch.linalg.matrix_power(graphs, k) for k in (steps - 1, steps)]
        shorter, there = (((one @ path) * other).sum(-1) > 0 for path in paths)
        asked = counts & (targets == 1)
        assert asked.sum() > 100 and there[asked].all() and not shorter[asked].any()


def test_a_score_and_a_loss_count_where_it_is_asked_alone():
    task, problems = COURSE["recall"], drawn("recall", 4)
    outputs = torch.nn.functional.one_hot(problems.targets, task.outputs) * 50.0
    elsewhere = torch.where(problems.counts[..., None], outputs, -outputs)
    for right in (outputs, elsewhere):
        assert task.score(task.answers(right), problems) == 1
        assert task.loss(right, problems) < 1e-6
    assert task.loss(-outputs, problems) > 1


def test_the_nearest_algorithm_is_named():
    task, problems = COURSE["regression"], drawn("regression", 10)
    for name, algorithm in task.others.items():
        answers = algorithm(problems.inputs)
        assert task.nearest(answers + 0.01 * torch.randn_like(answers), problems) == name
    assert task.nearest(task.best(problems.inputs), problems) == "best"
    assert COURSE["recall"].nearest(problems.targets, problems) == "-"


@pytest.mark.parametrize("workers", [0, 2])
def test_examples_are_the_same_with_any_number_of_workers(workers):
    loader = iter(DataLoader(Examples(COURSE["parity"], 5, size=8, seed=3), batch_size=None, num_workers=workers))
    there = [next(loader) for _ in range(4)]
    direct = iter(Examples(COURSE["parity"], 5, size=8, seed=3))
    for inputs, targets, counts in there:
        for mine, other in zip((inputs, targets, counts), next(direct), strict=True):
            assert torch.equal(mine, other)
    assert not torch.equal(there[0][0], there[1][0])
