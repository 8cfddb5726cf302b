"""Every exercise on another device than the CPU: the course's answer computes there what it computes here."""

import pytest
import torch
from torch import Tensor
from wrong_answers import cases

from companion.lesson.summit import Summit
from companion.lesson.trials import CPU_ADVICE

# many answers to a summit are right
EXERCISES = {name: value for (_, name), value in cases.EXERCISES.items() if not isinstance(value, Summit)}
COUNTED = {"rest"}  # counts one by one in Python, and gives a number that mixes with everything


@pytest.mark.parametrize("name", EXERCISES)
def test_the_answer_stays_where_the_inputs_are(name, device):
    exercise = EXERCISES[name]
    inputs = exercise.draw(torch.Generator().manual_seed(0))
    moved = {key: value.to(device) if isinstance(value, Tensor) else value for key, value in inputs.items()}
    answer, there = exercise.answer(**inputs), exercise.answer(**moved)
    if name not in COUNTED and any(isinstance(value, Tensor) for value in inputs.values()):
        assert there.device.type == device.type
    near = 1e-6 if device.type == "cuda" and answer.dtype == torch.float32 else 1e-9
    torch.testing.assert_close(there.cpu(), answer, rtol=near, atol=near, equal_nan=True)


def on_the_cpu(edges, steps):
    start = torch.eye(len(edges), dtype=edges.dtype)
    return torch.linalg.matrix_power(edges + start, steps) > 0


def test_a_tensor_made_on_the_cpu_is_advice_alone(capsys):
    exercise = EXERCISES["within_steps"]
    exercise.check(on_the_cpu)
    assert capsys.readouterr().out.split() == f"within_steps: correct: {exercise.now} Advice: {CPU_ADVICE}.".split()
    exercise.check(exercise.answer)
    assert " ".join(capsys.readouterr().out.split()) == f"within_steps: correct: {exercise.now}"


@pytest.mark.parametrize("read", [Tensor.tolist, lambda index: [int(each) for each in index]])
def test_numbers_read_from_a_tensor_earn_no_advice(capsys, read):
    exercise = EXERCISES["key_memory"]
    exercise.check(lambda E, R, triggers: E[read(triggers)].mT @ (E[read(triggers)] @ R.mT))
    assert "Advice" not in capsys.readouterr().out
