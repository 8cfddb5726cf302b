"""A test that many modules need: what a function cannot take is refused, and named."""

from collections.abc import Callable
from typing import Any

import pytest


def refusals(*cases: tuple[Any, str], of: Callable[[Any], object] = lambda call: call()) -> Callable[..., None]:
    """Return a test for each case, of a call, or of what ``of`` is called with, and what the message of its ValueError
    must match.
    """

    @pytest.mark.parametrize(("wrong", "message"), cases)
    def test(wrong, message):
        with pytest.raises(ValueError, match=message):
            of(wrong)

    return test
