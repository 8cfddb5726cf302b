"""One interface for all that is compared: a sequence of vectors in, class logits out, by a transformer, an LSTM, an MLP
or a CNN.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import as_generator, at_least, check_range, positive
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.lstm import LSTM, LSTMConfig
from companion.topics.sensitivity.data import PATCH, SIDE, pixels

KINDS = ("transformer", "lstm", "mlp", "cnn")
TOLD = ("nothing", "places", "shuffled")


@dataclass(frozen=True)
class ClassifierConfig:
    """Sequences of ``length`` vectors of ``features`` numbers, in ``classes`` classes.

    ``kind``: what computes; a CNN takes the vectors for the patches of a digit, row by row.
    ``width``, ``layers``, ``heads``: of the network; heads mean nothing but to the transformer.
    ``readout``: of the last place, or of the mean of all; the MLP and the CNN have neither.
    ``told``: what stands beside each vector: nothing, its place as a one-hot vector, or, as a control, one of these
        places by a shuffle that every sequence draws anew, which tells nothing.
    """

    kind: str
    length: int
    features: int = 2
    classes: int = 2
    width: int = 32
    layers: int = 2
    heads: int = 2
    readout: str = "mean"
    told: str = "nothing"

    def __post_init__(self):
        at_least(length=(self.length, 1), features=(self.features, 1), classes=(self.classes, 2))
        at_least(width=(self.width, 1), layers=(self.layers, 1))
        if self.kind not in KINDS:
            raise ValueError(f"kind = {self.kind!r}: must be one of {', '.join(KINDS)}")
        if self.readout not in ("last", "mean"):
            raise ValueError(f"readout = {self.readout!r}: must be 'last' or 'mean'")
        if self.told not in TOLD or (self.told != "nothing" and self.kind == "cnn"):
            raise ValueError(f"told = {self.told!r}: must be one of {', '.join(TOLD)}, and nothing for a CNN")
        if self.kind == "cnn" and (self.length, self.features) != (SIDE**2 // PATCH**2, PATCH**2):
            due = f"{SIDE**2 // PATCH**2} and {PATCH**2}, the patches of a digit"
            raise ValueError(f"length = {self.length}, features = {self.features}: for a CNN must be {due}")


class Classifier(nn.Module):
    """A linear map into the network, the network, a linear readout. Tokens enter as `one_hot` vectors."""

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        width, into, out = config.width, config.features, config.width
        if config.told != "nothing":
            into += config.length
        if config.kind == "mlp":
            sizes = pairwise([config.length * into, *[width] * config.layers])
            self.network = nn.Sequential(
                nn.Flatten(), *(part for pair in sizes for part in (nn.Linear(*pair), nn.GELU()))
            )
        elif config.kind == "cnn":
            sizes = pairwise([1, *[width] * config.layers])
            halving = {"kernel_size": 3, "stride": 2, "padding": 1}
            self.network = nn.Sequential(
                *(part for pair in sizes for part in (nn.Conv2d(*pair, **halving), nn.GELU())), nn.Flatten()
            )
            out *= math.ceil(SIDE / 2**config.layers) ** 2
        elif config.kind == "lstm":
            self.network = LSTM(LSTMConfig(width, config.layers))
        else:
            shape = {"heads": config.heads, "context": config.length, "causal": False}
            self.network = Decoder(DecoderConfig(width, config.layers, **shape))
        self.read = nn.Linear(into, width) if config.kind in ("transformer", "lstm") else nn.Identity()
        self.answer = nn.Linear(out, config.classes)

    def forward(self, x: Float[Tensor, "batch length features"]) -> Float[Tensor, "batch classes"]:
        if self.config.kind == "cnn":
            x = pixels(x)[:, None]  # (batch, 1, 8, 8)
        if self.config.told != "nothing":
            x = torch.cat([x, self.places(len(x)).to(x)], -1)
        states = self.network(self.read(x))
        if states.ndim == 3:
            states = states[:, -1] if self.config.readout == "last" else states.mean(1)
        return self.answer(states)

    def places(self, many: int) -> Float[Tensor, "batch length length"]:
        """Return what stands beside the vectors of so many sequences: one-hot places, in order or shuffled; the shuffle
        is the CPU's global generator's, on every device.
        """
        n = self.config.length
        order = torch.arange(n).expand(many, n)
        return one_hot(torch.rand(many, n).argsort(-1) if self.config.told == "shuffled" else order, n)


def one_hot(tokens: Int[Tensor, "*batch length"], vocabulary: int) -> Float[Tensor, "*batch length vocabulary"]:
    """Return a 1 at each token's place. Raises ValueError for an unknown token."""
    check_range(tokens=(tokens, vocabulary))
    return F.one_hot(tokens, vocabulary).float()


@torch.no_grad()
def uniform_weights(model: nn.Module, size: float, *, generator: torch.Generator | int) -> nn.Module:
    """Draw all matrices of a model again, uniformly from -size to size, set all biases to 0, and return the model.

    Bhattamishra et al. (2023, arXiv:2211.12316) take size = 10; norms keep what they have. Raises ValueError for a size
    that is not positive.
    """
    positive(size=size)
    generator = as_generator(generator)
    for name, numbers in model.named_parameters():
        if numbers.ndim > 1:
            drawn = torch.empty_like(numbers, device=generator.device).uniform_(-size, size, generator=generator)
            numbers.copy_(drawn)
        elif "bias" in name:
            numbers.zero_()
    return model
