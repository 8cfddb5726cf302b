"""The one LSTM of the course: layers of Hochreiter and Schmidhuber (1997), each reading the hidden states of the one
below.

Like the `companion.core.decoder.Decoder` it maps vectors to vectors, and has hooks: ``hook_embed`` is its input and
``blocks.0.hook_resid_post`` the hidden states of layer 0, so that a readout finds both under one name. Unlike it,
position t sees the past through 2 * width numbers a layer (hidden state and cell), however long the past is.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least
from companion.core.hooks import Hooked, HookPoints


@dataclass(frozen=True)
class LSTMConfig:
    """``layers`` LSTM layers of ``width`` hidden units."""

    width: int
    layers: int

    def __post_init__(self):
        at_least(width=(self.width, 1), layers=(self.layers, 1))


class LSTM(Hooked):
    """A stack of LSTM layers. ``forward`` gives the hidden states of the last; ``streams`` the input and those of
    every one.

    Forget gates start open (bias 1; Gers, Schmidhuber, Cummins 2000): a closed one would hide the first examples from
    the gradient.
    """

    def __init__(self, config: LSTMConfig):
        super().__init__()
        self.config = config
        self.at = HookPoints(["hook_embed", *(f"blocks.{layer}.hook_resid_post" for layer in range(config.layers))])
        self.layers = nn.ModuleList(nn.LSTM(config.width, config.width, batch_first=True) for _ in range(config.layers))
        for layer in self.layers:
            # gates lie as input, forget, cell, output
            nn.init.ones_(layer.get_parameter("bias_ih_l0").data[config.width : 2 * config.width])

    def memory(self, length: int) -> int:  # noqa: ARG002 - the same for every length, and that is the point
        """Return how many numbers keep the past after ``length`` positions: each layer's hidden state and cell."""
        return 2 * self.config.width * self.config.layers

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Compute the hidden states of the last layer."""
        x = self.at("hook_embed", x)
        for number, layer in enumerate(self.layers):
            x = self.at(f"blocks.{number}.hook_resid_post", layer(x)[0])
        return x
