"""The student has its teacher's formula."""

import torch
from refusals import refusals

from companion.topics.multihead.data import Teacher, sequences
from companion.topics.multihead.model import MultiHead, MultiHeadConfig


@torch.no_grad()
def test_a_student_with_the_teachers_weights_is_the_teacher():
    student, X = MultiHead(MultiHeadConfig(d=6, heads=3)), sequences(20, 4, 6, kind="gaussian", generator=1)
    torch.testing.assert_close(student(X), Teacher(student.thetas, student.ws)(X))


test_a_wrong_config_is_named = refusals(
    ({"d": 0}, "d = 0"), ({"heads": 0}, "heads = 0"), of=lambda wrong: MultiHeadConfig(**{"d": 4, "heads": 2} | wrong)
)
