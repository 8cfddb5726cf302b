"""The adder: four tokens, one table that reads and writes, and embeddings that stay as they are given."""

import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.addition.model import Adder, AdderConfig

CONFIG = AdderConfig(numbers=12, width=16, layers=2, heads=4, frozen=False)
OPERANDS = torch.tensor([[0, 11], [7, 7], [11, 0], [3, 5]])


def test_four_tokens_are_read():
    adder = Adder(CONFIG)
    embedded = adder.embed(OPERANDS)
    assert embedded.shape == (4, 4, 16)
    for row, (a, b) in zip(embedded, OPERANDS.tolist(), strict=True):
        for token, expected in zip(
            row, (adder.numbers[a], adder.signs[0], adder.numbers[b], adder.signs[1]), strict=True
        ):
            assert torch.equal(token, expected)


def test_the_same_table_writes_the_answer():
    adder = Adder(CONFIG)
    last = adder.decoder.streams(adder.embed(OPERANDS))[-1][:, -1]
    expected = torch.stack(
        [F.layer_norm(last, (16,)) @ adder.numbers[n] for n in range(23)], 1
    )  # a fresh norm has weight 1 and bias 0
    torch.testing.assert_close(adder(OPERANDS), expected)
    assert not [name for name, value in adder.named_parameters() if 23 in value.shape and name != "numbers"]


def test_the_order_of_operands_is_seen():
    adder = Adder(CONFIG)
    assert not torch.allclose(adder(OPERANDS[:1]), adder(OPERANDS[2:3]))


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_embeddings_get_no_gradient_and_do_not_move(frozen):
    given = torch.randn(23, 16, dtype=torch.float64)
    adder = Adder(AdderConfig(12, 16, 2, 4, frozen), given)
    torch.testing.assert_close(adder.numbers.detach(), given.float(), rtol=0, atol=0)
    optimizer = torch.optim.SGD([each for each in adder.parameters() if each.requires_grad], lr=0.1)
    F.cross_entropy(adder(OPERANDS), OPERANDS.sum(1)).backward()
    assert (adder.numbers.grad is None) == frozen
    assert adder.signs.grad.abs().min() > 0
    optimizer.step()
    moved = (adder.numbers.detach() != given.float()).any(1)
    assert moved.tolist() == [not frozen] * 23  # those that are no operand, too: they are written


def test_what_is_given_is_not_changed_by_training():
    given = torch.randn(23, 16)
    adder, before = Adder(CONFIG, given), given.clone()
    with torch.no_grad():
        adder.numbers += 1
    assert torch.equal(given, before)


def test_sizes_at_the_start():
    adder = Adder(AdderConfig(200, 256, 1, 4, frozen=False))
    assert adder.numbers.std().item() == pytest.approx(0.02, rel=0.02)
    assert adder.signs.std().item() == pytest.approx(0.02, rel=0.2)
    given = 0.5 * torch.randn(399, 256)
    assert Adder(AdderConfig(200, 256, 1, 4, frozen=True), given).signs.std().item() == pytest.approx(0.5, rel=0.2)


def test_answers_are_counted():
    assert CONFIG.answers == 23 == Adder(CONFIG)(OPERANDS).shape[1]


test_an_operand_out_of_range_is_refused = refusals(
    ([[0, 12]], "operands: 12 is out of range; must be 0 to 11"),
    ([[-1, 3]], "-1 is out"),
    of=lambda operands: Adder(CONFIG)(torch.tensor(operands)),
)


test_bad_sizes_are_named = refusals(
    *((name, f"{name} = 0: must be at least 1") for name in ("numbers", "width", "layers", "heads")),
    of=lambda name: AdderConfig(**{"numbers": 12, "width": 16, "layers": 2, "heads": 4} | {name: 0}, frozen=True),
)
