"""The checks of types that `conftest` puts around the course's functions: with shapes, without, and off."""

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError

from companion import regression
from companion.core.files import atomic_write
from companion.core.lstm import LSTMConfig

XS, YS = torch.zeros(2, 5, 3), torch.zeros(2, 5)


def test_a_wrong_shape_is_an_error():
    regression.baselines.moments(XS, YS)
    with pytest.raises(TypeCheckError):
        regression.baselines.moments(XS, YS[:, :4])


@pytest.mark.parametrize("call", [lambda: atomic_write("a path as text", "text"), lambda: LSTMConfig("wide", 2)])
def test_a_wrong_type_is_an_error_where_there_are_no_shapes(call):
    with pytest.raises((TypeCheckError, BeartypeCallHintViolation)):
        call()


@pytest.mark.types_unchecked
def test_nothing_is_checked_where_a_test_says_so():
    with pytest.raises(ValueError, match="must be"):
        regression.baselines.moments(XS, YS[:, :4])
