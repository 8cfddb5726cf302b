"""The models of the first lesson: what they see, and that runs in one tensor do not meet."""

import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.attention.model import BitHeads, BitMLPs, TokenModel, TokenModelConfig


def test_logits_depend_on_the_tokens_so_far_alone():
    model = TokenModel(TokenModelConfig(vocabulary=7, context=9, width=12, layers=2, heads=2))
    tokens = torch.randint(7, (3, 9))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 7
    assert model(tokens).shape == (3, 9, 7)
    torch.testing.assert_close(model(changed)[:, :5], model(tokens)[:, :5])
    assert not torch.allclose(model(changed)[:, 5:], model(tokens)[:, 5:])


def test_there_is_attention_and_nothing_else():
    model = TokenModel(TokenModelConfig(vocabulary=7, context=9, width=12, layers=2, heads=2))
    assert not [name for name, _ in model.named_parameters() if "mlp" in name]


@pytest.mark.parametrize("kind", [BitHeads, BitMLPs])
def test_runs_are_independent(kind):
    model, xs = kind(4, 6), torch.randn(4, 10, 6).sign()
    torch.nn.init.normal_(model.bias)
    gradient = torch.autograd.grad(model(xs)[2].sum(), list(model.parameters()))
    assert all(not part[[0, 1, 3]].any() and part[2].any() for part in gradient)


@pytest.mark.parametrize("kind", [BitHeads, BitMLPs])
def test_groups_of_runs_on_batches_of_several_sizes_are_the_runs_one_by_one(kind):
    model, alone = kind(6, 5), kind(2, 5)
    batches = [torch.randn(2, size, 5).sign() for size in (3, 9, 4)]
    for group, (xs, logits) in enumerate(zip(batches, model.in_groups([kind.seen(xs) for xs in batches]), strict=True)):
        own = {name: value[2 * group : 2 * group + 2] for name, value in model.state_dict().items()}
        alone.load_state_dict(own)
        torch.testing.assert_close(logits, alone(xs))


def test_a_head_on_bits_is_attention_over_learned_embeddings():
    """Score and value tables are what a query and a readout make of an embedding for each pair of position and bit."""
    embedding, query, readout = torch.randn(2, 6, 5), torch.randn(5), torch.randn(5)
    model, xs = BitHeads(1, 6), torch.randn(1, 8, 6).sign()
    model.score.data[0], model.value.data[0] = embedding @ query, embedding @ readout
    for bits, logit in zip(xs[0], model(xs)[0], strict=True):
        tokens = torch.stack([embedding[0 if bit > 0 else 1, t] for t, bit in enumerate(bits)])
        reference = F.scaled_dot_product_attention(
            query[None, None], tokens[None], (tokens @ readout)[None, :, None], scale=1.0
        )
        torch.testing.assert_close(logit, reference[0, 0, 0], rtol=1e-5, atol=1e-5)


test_a_wrong_config_is_named_with_its_value = refusals(
    ({"vocabulary": 1}, "vocabulary = 1"),
    ({"layers": 0}, "layers = 0"),
    ({"context": 0}, "context = 0"),
    of=lambda wrong: TokenModel(
        TokenModelConfig(**{"vocabulary": 7, "context": 9, "width": 12, "layers": 2, "heads": 2} | wrong)
    ),
)
