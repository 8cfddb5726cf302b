"""The one LSTM of the course: layers of Hochreiter and Schmidhuber (1997), each reading the hidden states of the one below.

Like the `companion.models.decoder.Decoder` it maps vectors to vectors and shows its streams. Unlike it, position t sees the past
through 2 * width numbers a layer (hidden state and cell), however long the past is.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class LSTMConfig:
    """``layers`` LSTM layers of ``width`` hidden units."""

    width: int
    layers: int

    def __post_init__(self):
        for name in ("width", "layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)!r}: must be at least 1")


class LSTM(nn.Module):
    """A stack of LSTM layers. ``forward`` gives the hidden states of the last; ``streams`` those of every one, after its input.

    Forget gates start open (bias 1; Gers, Schmidhuber, Cummins 2000): a closed one would hide the first examples from the gradient.
    """

    def __init__(self, config: LSTMConfig):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(nn.LSTM(config.width, config.width, batch_first=True) for _ in range(config.layers))
        for layer in self.layers:
            nn.init.ones_(layer.bias_ih_l0.data[config.width : 2 * config.width])  # gates lie as input, forget, cell, output

    def memory(self, length: int) -> int:  # noqa: ARG002 - the same for every length, and that is the point
        """How many numbers the past is kept in after ``length`` positions: the hidden state and the cell of every layer."""
        return 2 * self.config.width * self.config.layers

    def streams(self, x: Float[Tensor, "batch length width"]) -> list[Float[Tensor, "batch length width"]]:
        """The input and the hidden states of each layer: layers + 1 tensors."""
        streams = [x]
        for layer in self.layers:
            streams.append(layer(streams[-1])[0])
        return streams

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """The hidden states of the last layer."""
        return self.streams(x)[-1]
