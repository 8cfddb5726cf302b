"""The layers that the course knows, each with about 4 width^2 parameters: `companion.core.decoder`'s attention with
softmax, linear, linear that fades, and the delta rule, of four heads; and an LSTM of width / 2 hidden units.
"""

from collections.abc import Callable
from functools import partial

from torch import nn

from companion.core.decoder import Attention, DecoderConfig, Recurrence
from companion.core.hooks import HookPoints

Layer = Callable[[int], nn.Module]
CONTEXT = 16  # linear attention divides what it adds up by this


def _known(width: int, kind: str) -> nn.Module:
    heads = width if kind == "lstm" else 4  # an LSTM has width^2 / (2 heads) hidden units
    config = DecoderConfig(width, 1, heads, CONTEXT, attention=kind)
    return (Recurrence if kind == "lstm" else Attention)(config, HookPoints(()))


KNOWN: dict[str, Layer] = {kind: partial(_known, kind=kind) for kind in ("softmax", "linear", "gated", "delta", "lstm")}
