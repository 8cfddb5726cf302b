"""A bank against its formula member by member, in NumPy; what smaller members are filled up with stays zero."""

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.special import softmax

from companion.topics.facts.data import sentences
from companion.topics.facts.model import Bank, BankConfig, Member
from companion.topics.facts.recipes import cross_entropy, facts_of

CONFIG = BankConfig(
    (Member(6, 2, 3, 5, 8, 4), Member(4, 1, 2, 0, 8, 4), Member(5, 3, 2, 7, 6, 2)), answers=3, noise=5, length=7
)
FACTS = facts_of(CONFIG)


def tokens(seed: int) -> torch.Tensor:
    return torch.stack([sentences(10, FACTS, 7, generator=seed + k).tokens for k in range(3)])


def by_hand(bank: Bank, k: int, sentence: np.ndarray) -> np.ndarray:
    member, weights = (
        bank.config.members[k],
        {name: value.detach().double().numpy()[k] for name, value in bank.state_dict().items()},
    )
    d, e = member.d, weights["words"][sentence][:, : member.d]
    x = e[-1].copy()
    for head in range(member.heads):
        key, value, out = weights["key"][head, :, :d], weights["value"][head, :, :d], weights["out"][head, :d]
        attention = softmax(e @ key.T @ weights["query"][head])
        x += out @ value @ (attention @ e)
    hidden = np.maximum(weights["up"][: member.mlp, :d] @ x, 0)
    x += weights["down"][:d, : member.mlp] @ hidden
    return weights["answers"][:, :d] @ x


@pytest.mark.parametrize("seed", range(3))
def test_every_member_is_its_formula(seed):
    torch.manual_seed(seed)
    bank, given = Bank(CONFIG), tokens(seed)
    logits = bank(given)
    for k in range(3):
        for n in range(10):
            np.testing.assert_allclose(logits[k, n].detach(), by_hand(bank, k, given[k, n].numpy()), atol=1e-5)


def test_the_cache_has_what_each_member_computes():
    bank, words = Bank(CONFIG), tokens(4)
    logits, cache = bank.run_with_cache(words)
    assert list(cache) == bank.hook_names
    assert torch.equal(logits, bank(words))
    for k, member in enumerate(CONFIG.members):
        weights = {name: value.detach().double().numpy()[k] for name, value in bank.state_dict().items()}
        e = weights["words"][words[k, 3].numpy()]
        pattern = cache["blocks.0.attn.hook_pattern"].detach()[k, 3]
        added = 0
        for head in range(member.heads):
            expected = softmax(e @ weights["key"][head].T @ weights["query"][head])
            np.testing.assert_allclose(pattern[head], expected, atol=1e-6)
            added = added + weights["out"][head] @ weights["value"][head] @ (expected @ e)
        np.testing.assert_allclose(cache["blocks.0.hook_attn_out"].detach()[k, 3], added, atol=1e-5)
        hidden = np.maximum(weights["up"] @ (e[-1] + added), 0)
        np.testing.assert_allclose(cache["blocks.0.mlp.hook_post"].detach()[k, 3], hidden, atol=1e-5)
        after = weights["answers"] @ cache["blocks.0.hook_resid_post"].detach().double().numpy()[k, 3]
        np.testing.assert_allclose(logits[k, 3].detach(), after, atol=1e-5)


@torch.no_grad()
def test_without_the_hidden_units_a_bank_is_its_attention_alone():
    bank, words = Bank(CONFIG), tokens(5)
    with bank.hooks({"blocks.0.mlp.hook_post": lambda hidden, _: torch.zeros_like(hidden)}):
        ablated = bank(words)
    assert (ablated - bank(words)).abs().max() > 0.01
    bank.down.zero_()
    torch.testing.assert_close(ablated, bank(words))


def test_a_member_does_not_depend_on_its_neighbours_sizes():
    bank, alone = Bank(CONFIG), Bank(BankConfig(CONFIG.members[:1], 3, 5, 7))
    sizes = {name: tuple(slice(0, size) for size in value.shape[1:]) for name, value in alone.state_dict().items()}
    alone.load_state_dict({name: value[:1][(slice(None), *sizes[name])] for name, value in bank.state_dict().items()})
    torch.testing.assert_close(bank(tokens(1))[:1], alone(tokens(1)[:1]))


def test_zeros_stay_zeros_in_training():
    bank = Bank(CONFIG)
    empty = {name: value == 0 for name, value in bank.named_parameters()}
    optimizer = torch.optim.Adam(bank.parameters(), lr=1e-2)
    for step in range(20):
        drawn = [
            sentences(16, FACTS, 7, subjects=m.subjects, relations=m.relations, generator=step) for m in CONFIG.members
        ]
        loss = cross_entropy(
            bank, torch.stack([each.tokens for each in drawn], 1), torch.stack([each.answer for each in drawn], 1)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for name, value in bank.named_parameters():
        assert not value[empty[name]].any()
        assert value[~empty[name]].abs().min() > 0


def test_parameters_are_counted():
    for k, member in enumerate(CONFIG.members):
        assert member.parameters == sum(int((value[k] != 0).sum()) for value in Bank(CONFIG).parameters())


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: Member(0, 1, 1, 0, 1, 1), "d = 0: must be at least 1"),
    (lambda: Member(4, 1, 1, -1, 1, 1), "mlp = -1: must be at least 0"),
    (lambda: Bank(CONFIG)(tokens(0)[:2]), "must begin with 3, the number of members"),
    (lambda: Bank(CONFIG)(tokens(0) + 20), "tokens: .* is out of range"),
)
