"""What a layer is told before any training: broken ones are named, right ones of every kind pass."""

import pytest
import torch
from refusals import refusals
from torch import nn

from companion.topics.layers.known import KNOWN
from companion.topics.layers.questions import ask

WIDTH = 16


class Mean(nn.Module):
    """A causal mean of a linear map: nothing is wrong with it, and below it is broken in one way each."""

    def __init__(self, width: int):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        return self.map(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


class Pair(Mean):
    def forward(self, x):
        return super().forward(x), x[:, -1]


class Wider(Mean):
    def forward(self, x):
        return torch.cat([super().forward(x), x], -1)


class Doubled(Mean):
    def forward(self, x):
        return super().forward(x).double()


class Endless(Mean):
    def forward(self, x):
        return super().forward(x) / 0


class Peeking(Mean):
    def forward(self, x):
        return self.map(x) + x.mean(1, keepdim=True)


class PeekingOne(Mean):
    def forward(self, x):
        return super().forward(x).roll(-1, 1)


class DividedByLength(Mean):
    def forward(self, x):
        return self.map(x).cumsum(1) / x.shape[1]


class Leaking(Mean):
    def forward(self, x):
        state, states = x.new_zeros(x.shape[-1]), []
        for sequence in self.map(x):  # the state is never set back to 0
            states.append(sequence.cumsum(0) + state)
            state = states[-1][-1]
        return torch.stack(states)


class Normed(Mean):
    def forward(self, x):
        x = super().forward(x)
        return x - x.mean(0)


class Detached(Mean):
    def forward(self, x):
        return x + super().forward(x).detach()


class Rooted(Mean):
    def forward(self, x):
        return super().forward(x.detach())


class Dropped(Mean):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.1)


class Remembering(Mean):
    state = 0.0

    def forward(self, x):
        y = super().forward(x) + self.state
        self.state = y[:, -1:].mean().detach()
        return y


class Greedy(Mean):
    def __init__(self, width: int):
        super().__init__(width)
        self.more = nn.Linear(width, 12 * width)


class Failing(Mean):
    def forward(self, x):
        return self.map(x.transpose(1, 2))


BROKEN = {
    Pair: r"shape: a tuple comes out; must be a tensor alone",
    Wider: r"shape: \(3, 12, 32\) comes out where \(3, 12, 16\) goes in",
    Doubled: r"dtype: torch.float64 comes out where torch.float32 goes in",
    Endless: "dtype: what comes out is not finite",
    Peeking: "future: what comes out before position 1 changes with what goes in later",
    PeekingOne: "future: what comes out before position 1 changes with what goes in later",
    DividedByLength: "future: the first 7 answers are others where the input ends there",
    Leaking: "batch: a sequence's answers change with the others in its batch",
    Normed: "batch: a sequence's answers change with the others in its batch",
    Detached: "gradient: none reaches map.weight, map.bias",
    Rooted: "gradient: none reaches the input",
    Dropped: "same twice: the same input has another answer each time: something is drawn at random",
    Remembering: "same twice: .* something stays from one call to the next",
    Greedy: "parameters: 3536 of them at width 16; must be at most 3040",
    Failing: "input: the layer raises RuntimeError: mat1 and mat2",
}


test_a_broken_layer_is_told_what_is_wrong = refusals(
    *((broken, f"^{wrong}") for broken, wrong in BROKEN.items()), of=lambda broken: ask(broken, WIDTH)
)


@pytest.mark.parametrize("layer", [Mean, *KNOWN.values()], ids=["mean", *KNOWN])
def test_a_right_layer_passes_and_nothing_global_is_drawn(layer):
    before = torch.get_rng_state()
    ask(layer, WIDTH)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_layer_that_begins_at_zero_passes():
    def layer(width):
        mean = Mean(width)
        nn.init.zeros_(mean.map.weight)
        return mean

    ask(layer, WIDTH)


test_what_is_no_module_and_what_cannot_be_built_is_said = refusals(
    (lambda width: width, r"module: layer\(16\) is int; must be a torch.nn.Module"),
    (nn.Linear, r"module: layer\(16\) raises TypeError: .* 'out_features'"),
    of=lambda broken: ask(broken, WIDTH),
)
