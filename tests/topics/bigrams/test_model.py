"""The trigger-bigram model: its logits from the formula, and that only three memories move."""

import torch
import torch.nn.functional as F
from refusals import refusals

from companion.core.training import Schedule, train
from companion.topics.bigrams.data import Bigrams, trigger_sequences
from companion.topics.bigrams.model import BigramModel, BigramModelConfig

CONFIG = BigramModelConfig(vocabulary=65, context=12, width=16)


def batch(generator=0):
    return trigger_sequences(4, 12, Bigrams.shakespeare(), generator=generator)[:2]


def loss(model, tokens, known):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def filled(config=CONFIG):
    model = BigramModel(config)
    for layer in range(config.layers):
        model.keys(layer).normal_(std=0.2)
    model.outputs(config.layers - 1).normal_(std=0.3)
    return model


def test_logits_are_those_of_the_formula():
    """One token after the other, with the three memories and the frozen parts written out."""
    model, tokens = filled(), batch()[0][:, :-1]
    d, U = 16, model.unembed.weight
    with torch.no_grad():
        for row, logits in zip(tokens, model(tokens), strict=True):
            x = [model.embed.weight[z] + model.decoder.positions[t] for t, z in enumerate(row)]
            for layer in range(2):
                W_K, W_OV = model.keys(layer), model.outputs(layer) @ model.values(layer)
                added = []
                for t in range(len(x)):
                    scores = torch.stack([x[t] @ W_K @ x[s] / d**0.5 for s in range(t + 1)])
                    added.append(sum(weight * W_OV @ x[s] for s, weight in enumerate(scores.softmax(0))))
                x = [here + more for here, more in zip(x, added, strict=True)]
            torch.testing.assert_close(logits, torch.stack([U @ here for here in x]), rtol=1e-4, atol=1e-4)


def test_training_moves_the_three_memories_and_nothing_else():
    model = filled()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, lambda n, generator: batch(generator), loss, Schedule(steps=5, batch=4, lr=1e-2), device="cpu")
    moved = {
        name: (value - before[name]).abs()
        for name, value in model.state_dict().items()
        if not torch.equal(value, before[name])
    }
    first, second = "decoder.blocks.0.attention", "decoder.blocks.1.attention"
    assert moved.keys() == {f"{first}.qkv.weight", f"{second}.qkv.weight", f"{second}.out.weight"}
    for name in (f"{first}.qkv.weight", f"{second}.qkv.weight"):
        assert not moved[name][:16].any()
        assert moved[name][16:32].all()
        assert not moved[name][32:].any()
    torch.testing.assert_close(model.state_dict()[f"{first}.qkv.weight"][:16], torch.eye(16))


def test_at_the_start_the_second_keys_have_no_gradient():
    model = BigramModel(CONFIG)
    loss(model, *batch()).backward()
    second = model.decoder.blocks[1].attention
    assert second.out.weight.grad.any()
    assert not second.qkv.weight.grad.any()


def test_everything_can_be_trained():
    model = BigramModel(BigramModelConfig(65, 12, 16, layers=1, mlp=2, trains="everything"))
    loss(model, *batch()).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_logits_depend_on_the_tokens_so_far_alone():
    model, tokens = filled(), batch()[0][:, :-1]
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 65
    torch.testing.assert_close(model(changed)[:, :7], model(tokens)[:, :7])
    assert not torch.allclose(model(changed)[:, 7:], model(tokens)[:, 7:])


test_a_wrong_config_is_named_with_its_value = refusals(
    ({"vocabulary": 1}, "vocabulary = 1"),
    ({"context": 1}, "context = 1: must be at least 2"),
    ({"width": 0}, "width = 0: must be at least 1"),
    ({"layers": 0}, "layers = 0"),
    ({"mlp": -1}, "mlp = -1"),
    of=lambda wrong: BigramModel(BigramModelConfig(**{"vocabulary": 7, "context": 9, "width": 12} | wrong)),
)


test_tokens_that_it_cannot_read_are_refused = refusals(
    ([[1, 65]], "tokens: 65 is out of range; must be 0 to 64"),
    ([[-1, 3]], "tokens: -1 is out of range"),
    ([[4]], "length must be at least 2"),
    ([[0] * 13], "at most 12"),
    of=lambda tokens: BigramModel(CONFIG)(torch.tensor(tokens)),
)
