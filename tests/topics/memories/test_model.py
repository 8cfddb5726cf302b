"""The trained memories compute what they say, and refuse tokens that they do not know."""

import torch
from refusals import refusals

from companion.topics.memories.model import Facts, FactsConfig


def test_logits_are_inner_products_through_the_store():
    linear, mlp = Facts(FactsConfig(6, 4)), Facts(FactsConfig(6, 4, 9))
    torch.nn.init.normal_(linear.store.weight)
    z = torch.tensor([5, 0, 3])
    torch.testing.assert_close(linear(z)[1, 2], linear.v[2] @ linear.store.weight @ linear.u[0])
    hidden = (mlp.store[0].weight @ mlp.u[5]).clamp_min(0)
    torch.testing.assert_close(mlp(z)[0, 4], mlp.v[4] @ mlp.store[2].weight @ hidden)


def test_embeddings_are_kept_but_not_trained():
    model = Facts(FactsConfig(6, 4, 9))
    assert {name for name, _ in model.named_parameters()} == {"store.0.weight", "store.2.weight"}
    assert {"u", "v"} <= model.state_dict().keys()


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: FactsConfig(1, 4), "facts = 1: must be at least 2"),
    (lambda: FactsConfig(3, 0), "d = 0: must be at least 1"),
    (lambda: FactsConfig(3, 4, -1), "width = -1: must be at least 0"),
    (lambda: Facts(FactsConfig(3, 4))(torch.tensor([0, 3])), "z: 3 is out of range; must be 0 to 2"),
    (lambda: Facts(FactsConfig(3, 4))(torch.tensor([-1])), "z: -1 is out of range"),
)
