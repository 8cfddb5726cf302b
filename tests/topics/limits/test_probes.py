"""A change is measured relative to the output, scores are sharpened, and prefixes are judged point by point."""

import torch
import torch.nn.functional as F
from torch import nn

from companion.core.decoder import Decoder, DecoderConfig
from companion.topics.limits.data import words
from companion.topics.limits.probes import changes_by_place, right_prefixes, sharpen


class Average(nn.Module):
    """Every place gives the mean of all."""

    def forward(self, x):
        return x.mean(1, keepdim=True).expand_as(x)


def test_an_average_moves_by_two_over_its_length():
    torch.testing.assert_close(changes_by_place(Average(), torch.ones(10, 2)), torch.full((9,), 0.2))


def test_each_change_is_that_of_its_own_place():
    network = Decoder(DecoderConfig(8, 2, 2, 200, positions=False)).eval()
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(3))
    found = changes_by_place(network, x)
    with torch.no_grad():
        for place in (0, 90, 198):
            turned = x.clone()
            turned[place] *= -1
            old, new = network(x[None])[0, -1], network(turned[None])[0, -1]
            torch.testing.assert_close(found[place], (new - old).norm() / old.norm(), rtol=1e-3, atol=1e-5)


def test_sharpening_multiplies_the_scores():
    decoder = Decoder(DecoderConfig(8, 2, 2, 6, positions=False)).eval()
    x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))
    _, before = decoder.run_with_cache(x)
    _, after = sharpen(decoder, 3.0).run_with_cache(x)
    name = "blocks.0.attn.hook_"
    torch.testing.assert_close(after[f"{name}q"], 3 * before[f"{name}q"])
    torch.testing.assert_close(after[f"{name}k"], before[f"{name}k"])


def test_a_prefix_is_right_if_all_its_points_are():
    states = words(4, 3, 5, generator=2)
    tables = F.one_hot(states, 5).double()
    tables[0, 1, 2] = tables[0, 1, 2].roll(1)
    assert right_prefixes(tables, states).tolist() == [1.0, 0.75, 1.0]
