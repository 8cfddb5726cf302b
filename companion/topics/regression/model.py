"""A sequence model that reads linear regression prompts and predicts each label from the examples before it.

Garg et al. (2022), arXiv:2208.01066, section 4: a decoder between two linear maps. They lay a prompt out as x1, (y1, 0,
..), x2, .. ("interleaved"). The departure, "triplet": one token [x_{t-1}, y_{t-1}, x_t] for each prediction. It asks
for the same predictions from the same information, in half the length, and saves the layers that would bring a label to
its input.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked
from companion.core.lstm import LSTM, LSTMConfig

MIXERS = ("softmax", "linear", "gated", "delta", "lstm-block", "lstm")


@dataclass(frozen=True)
class RegressorConfig:
    """``n``: examples at most; ``scale``: the labels' and inputs' typical size, divided out before and multiplied back
    after.

    ``mixer`` is what carries information from one position to the next: a transformer's softmax attention; in the same
    decoder, linear attention, linear attention that fades, the delta rule, or an LSTM (``lstm-block``); or layers of an
    LSTM and nothing else (``lstm``).
    """

    d: int
    n: int
    width: int
    layers: int
    heads: int
    tokens: Literal["triplet", "interleaved"] = "triplet"
    mixer: Literal["softmax", "linear", "gated", "delta", "lstm-block", "lstm"] = "softmax"
    scale: float = 1.0

    def __post_init__(self):
        at_least(d=(self.d, 1), n=(self.n, 2))
        if self.tokens not in ("triplet", "interleaved"):
            raise ValueError(f"tokens = {self.tokens!r}: must be 'triplet' or 'interleaved'")
        if self.mixer not in MIXERS:
            raise ValueError(f"mixer = {self.mixer!r}: must be one of {', '.join(map(repr, MIXERS))}")
        if not 0 < self.scale < float("inf"):
            raise ValueError(f"scale = {self.scale!r}: must be positive and finite")


class InContextRegressor(Hooked):
    """Prediction t sees x_1, y_1, .., x_{t-1}, y_{t-1} and x_t, for every t of a prompt in one pass.

    >>> model = InContextRegressor(RegressorConfig(d=5, n=21, width=64, layers=8, heads=4))
    >>> model(xs, ys).shape        # xs (batch, 21, 5), ys (batch, 21); ys[:, -1] is never read
    torch.Size([batch, 21])
    """

    def __init__(self, config: RegressorConfig):
        super().__init__()
        self.config = config
        interleaved = config.tokens == "interleaved"
        features, context = (config.d, 2 * config.n) if interleaved else (2 * config.d + 1, config.n)
        self.stride = 2 if interleaved else 1  # predictions are made at the inputs, every other token
        self.read_in = nn.Linear(features, config.width)
        if config.mixer == "lstm":
            self.decoder = LSTM(LSTMConfig(config.width, config.layers))
        else:
            attention = config.mixer.removesuffix("-block")
            self.decoder = Decoder(
                DecoderConfig(config.width, config.layers, config.heads, context, attention=attention)
            )
        self.at = self.decoder.at
        self.read_out = nn.Linear(config.width, 1)
        nn.init.normal_(self.read_in.weight, std=features**-0.5)

    def tokens(
        self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]
    ) -> Float[Tensor, "batch length features"]:
        """Return the prompt as tokens; raises ValueError when it does not fit the model's d and n."""
        batch, n, d = xs.shape
        if d != self.config.d or n > self.config.n:
            raise ValueError(
                f"xs of shape {tuple(xs.shape)}: must be (batch, n, {self.config.d}), with n at most {self.config.n}"
            )
        if self.config.tokens == "interleaved":
            labels = torch.cat([ys[..., None], ys.new_zeros(batch, n, d - 1)], dim=-1)  # (batch, n, d)
            return torch.stack([xs, labels], dim=2).view(batch, 2 * n, d)
        examples = torch.cat([xs, ys[..., None]], dim=-1)[:, :-1]  # (batch, n - 1, d + 1)
        before = torch.cat([examples.new_zeros(batch, 1, d + 1), examples], dim=1)
        return torch.cat([before, xs], dim=-1)

    def streams(
        self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]
    ) -> Float[Tensor, "depth batch n width"]:
        """Return the residual streams (depth = layers + 1) where predictions are made: what a layer's readout reads."""
        return torch.stack([stream[:, :: self.stride] for stream in super().streams(xs, ys)])

    def read(self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n numbers"]:
        """Return what the readout says where predictions are made."""
        return self.read_out(self.decoder(self.read_in(self.tokens(xs, ys) / self.config.scale))[:, :: self.stride])

    def forward(self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        """Predictions of all n labels."""
        return self.read(xs, ys)[..., 0] * self.config.scale


class StateRegressor(InContextRegressor):
    """The same model, answering from a state that can be read: after its last layer a linear map says which weights w
    it holds at each position, and which matrix P, and its predictions are w . x.

    So the state of recursive least squares can be taught to it, and compared with
    (`companion.topics.regression.recipes`).
    """

    def __init__(self, config: RegressorConfig):
        super().__init__(config)
        self.read_out = nn.Linear(config.width, config.d * (config.d + 1))

    def states(
        self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n d"], Float[Tensor, "batch n d d"]]:
        """Return the weights and the matrix at the positions where predictions are made."""
        d = self.config.d
        ws, matrices = self.read(xs, ys).split([d, d * d], dim=-1)
        return ws, matrices.unflatten(-1, (d, d))

    def forward(
        self, xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], *, states: bool = False
    ) -> Float[Tensor, "batch n"] | tuple[Float[Tensor, "batch n d"], Float[Tensor, "batch n d d"]]:
        """Predictions of all n labels; with ``states`` what they are made from, `states`."""
        found = self.states(xs, ys)
        return found if states else (found[0] * xs).sum(-1)
