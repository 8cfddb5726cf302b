"""Tasks on another device than the CPU: what is drawn there is answered there."""

import pytest
import torch

from companion.core.task import tasks


@pytest.mark.parametrize("name", tasks())
def test_a_task_is_drawn_and_answered_where_its_generator_is(name, device):
    task = tasks()[name]
    for size in (None, task.sizes[0]):
        problems = task.draw(6, torch.Generator(device=device).manual_seed(0), size)
        answers = [task.best(problems.inputs), task.blind(problems.inputs)]
        answers += [algorithm(problems.inputs) for algorithm in task.others.values()]
        assert {tensor.device.type for tensor in (*problems, *answers)} == {device.type}
        assert task.score(answers[0], problems) > task.score(answers[1], problems)
