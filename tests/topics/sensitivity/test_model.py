"""One interface for four kinds: vectors in, class logits out; random weights are drawn as told."""

import pytest
import torch
from refusals import refusals

from companion.topics.sensitivity.model import KINDS, Classifier, ClassifierConfig, one_hot, uniform_weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_every_kind_gives_logits_and_sees_all_of_its_input(kind, readout):
    model = Classifier(ClassifierConfig(kind, 16, 4, 3, width=8, readout=readout)).eval()
    x = torch.randn(5, 16, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    logits = model(x)
    assert logits.shape == (5, 3)
    [slope] = torch.autograd.grad(logits[:, 0].sum(), x)
    assert (slope.abs().sum(-1) > 0).all()


def test_the_readouts_differ():
    x = one_hot(torch.randint(2, (4, 6), generator=torch.Generator().manual_seed(1)), 2)
    for kind in ("transformer", "lstm"):
        last = Classifier(ClassifierConfig(kind, 6, width=8, readout="last")).eval()
        mean = Classifier(ClassifierConfig(kind, 6, width=8, readout="mean")).eval()
        mean.load_state_dict(last.state_dict())
        assert not torch.allclose(last(x), mean(x))


def test_a_convolution_sees_neighbours_where_they_are():
    model = Classifier(ClassifierConfig("cnn", 16, 4, 2, width=4, layers=1)).eval()
    x = torch.zeros(2, 16, 4)
    x[1, 0, 0] = 1  # the first pixel of the first patch
    moved = (model.network(torch.nn.functional.fold(x.mT, (8, 8), 2, stride=2)).view(2, 4, 4, 4)).diff(dim=0)[0]
    assert moved[:, 0, 0].any() and not moved[:, 1:].any() and not moved[:, :, 1:].any()


def test_uniform_weights_are_uniform_and_biases_zero():
    model = uniform_weights(Classifier(ClassifierConfig("lstm", 6, width=16)), 10, generator=1)
    again = uniform_weights(Classifier(ClassifierConfig("lstm", 6, width=16)), 10, generator=1)
    for (name, numbers), other in zip(model.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(numbers, other)
        if numbers.ndim > 1:
            assert numbers.abs().max() <= 10 and numbers.std() > 4
        elif "bias" in name:
            assert not numbers.any()


test_bad_arguments_are_named = refusals(
    (lambda: ClassifierConfig("tree", 4), "kind = 'tree'"),
    (lambda: ClassifierConfig("mlp", 4, readout="first"), "readout = 'first'"),
    (lambda: ClassifierConfig("lstm", 4, told="all"), "told = 'all': must be one of nothing, places, shuffled"),
    (lambda: ClassifierConfig("cnn", 15, 4), "for a CNN must be 16 and 4, the patches of a digit"),
    (lambda: ClassifierConfig("mlp", 0), "length = 0"),
    (lambda: one_hot(torch.tensor([[2]]), 2), "tokens: 2 is out of range"),
    (lambda: uniform_weights(Classifier(ClassifierConfig("mlp", 4)), 0, generator=0), "size = 0"),
)


def test_what_stands_beside_a_bit_is_its_place_or_by_a_shuffle_one_that_tells_nothing():
    told, shuffled = (Classifier(ClassifierConfig("lstm", 5, 2, told=told)) for told in ("places", "shuffled"))
    assert torch.equal(told.places(2), torch.eye(5).expand(2, 5, 5))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = shuffled.places(2000)
    assert torch.equal(drawn.sum(1), torch.ones(2000, 5)) and torch.equal(drawn.sum(2), torch.ones(2000, 5))
    assert drawn.mean(0) == pytest.approx(torch.full((5, 5), 0.2), abs=0.05)
    x = torch.rand(3, 5, 2)
    assert torch.equal(told(x), told(x)) and not torch.equal(shuffled(x), shuffled(x))
