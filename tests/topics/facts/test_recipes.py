"""The shipped banks say what lesson 07 says of them; linear attention goes through its phases."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.core.checkpoints import shipped
from companion.core.recipe import recipe
from companion.topics.facts.data import counts, every_fact, random_world, sentences
from companion.topics.facts.exercises import learn_facts, saw_gradient
from companion.topics.facts.measured import by_learning_rate
from companion.topics.facts.probes import conserved, knowledge, recall_accuracy
from companion.topics.facts.recipes import cross_entropy, facts_of


def test_the_loss_of_a_bank_is_the_sum_of_its_members():
    plan = recipe("facts-heads", "smoke")
    bank = plan.model(seed=1)
    tokens, answer = plan.draw(20, torch.Generator().manual_seed(1))
    logits = bank(tokens.transpose(0, 1))
    each = [F.cross_entropy(logits[k], answer[:, k]) for k in range(len(logits))]
    torch.testing.assert_close(cross_entropy(bank, tokens, answer), sum(each))


@pytest.mark.parametrize("seed", range(2))
def test_the_shipped_model_knows_every_fact(seed):
    bank, _ = shipped("facts")
    assert recall_accuracy(bank, every_fact(facts_of(bank.config), 16, rounds=4, generator=seed)).item() > 0.995


def test_heads_and_neurons_make_up_for_each_other():
    bank, _ = shipped("facts-heads")
    known = recall_accuracy(bank, every_fact(facts_of(bank.config), 16, rounds=4, generator=5)).view(4, 5)
    assert known[0].max() < 0.7  # one head has no room for 24 subjects and 24 relations
    assert known[3, 1:].min() > 0.9
    assert (known[1:, -1] > known[1:, 0] + 0.05).all()


def test_the_phases_are_those_of_the_theorem():
    facts = random_world(8, 2, 4, noise=12, generator=1)
    taught, asked = (every_fact(facts, 12, rounds=20, generator=seed) for seed in (3, 4))
    n = counts(taught.tokens, facts.words).double()
    film = learn_facts.answer(n, taught.answer, facts.all_answers, 100)
    losses = [F.cross_entropy((n * frame[-1]) @ frame[:-1].mT, taught.answer).item() for frame in film]
    assert losses[0] == pytest.approx(math.log(8), abs=1e-3)
    assert min(abs(value / math.log(4) - 1) for value in losses) < 0.02
    assert losses[-1] < 0.3
    n = counts(asked.tokens, facts.words).double()
    middle = next(at for at, value in enumerate(losses) if value < 1.02 * math.log(4))
    for at, low, high in ((middle, 0.2, 0.3), (-1, 0.9, 1)):  # 1/4 is what the relation alone is worth
        logits = (n * film[at, -1]) @ film[at, :-1].mT
        assert knowledge(logits, asked.answer, 4).relation == 1
        assert low < logits.softmax(-1).gather(1, asked.answer[:, None]).mean() < high
    drift = torch.stack([conserved(frame[-1], frame[:-1]) for frame in film])
    assert (drift - drift[0]).abs().max() < 0.03 * film[-1, -1].square().max()


def test_a_step_is_plain_gradient_descent():
    facts = random_world(4, 2, 2, noise=3, generator=1)
    drawn = sentences(64, facts, 5, generator=2)
    n = counts(drawn.tokens, facts.words).double()
    both = torch.randn(facts.all_answers + 1, facts.words, dtype=torch.float64).requires_grad_(True)
    F.cross_entropy((n * both[-1]) @ both[:-1].mT, drawn.answer).backward()
    found = saw_gradient.answer(n, both[-1].detach(), both[:-1].detach(), drawn.answer)
    torch.testing.assert_close(found, both.grad, atol=1e-12, rtol=0)


def test_another_rate_stores_little_in_few_steps_and_no_rate_is_named():
    [row] = by_learning_rate(seed=0, scale="smoke", rate=0.03)
    assert 0 <= row["facts"] < 100  # of worlds with 361 to 1,600 facts; after 5,000 steps 509
    with pytest.raises(ValueError, match="lr = 0"):
        by_learning_rate(seed=0, scale="smoke", rate=0.0)
