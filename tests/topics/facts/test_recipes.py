"""The shipped banks say what lesson 07 says of them; the linear model goes through its phases."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.core.checkpoints import shipped
from companion.core.recipe import recipe
from companion.core.training import batch_generator
from companion.topics.facts.data import counts, every_fact, random_world, sentences
from companion.topics.facts.measured import facts_at
from companion.topics.facts.model import LinearRecaller
from companion.topics.facts.probes import conserved, knowledge, recall_accuracy
from companion.topics.facts.recipes import cross_entropy, facts_of, phases


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
    run = phases(facts, steps=2600, length=12, batch=256, seed=3)
    loss = dict(zip(run.steps, run.losses.tolist(), strict=True))
    assert loss[0] == pytest.approx(math.log(8), abs=1e-3)
    assert min(abs(value / math.log(4) - 1) for value in loss.values()) < 0.02
    assert run.losses[-1] < 0.3
    asked = every_fact(facts, 12, rounds=20, generator=4)
    n = counts(asked.tokens, facts.words).double()
    middle = next(i for i, value in enumerate(run.losses.tolist()) if value < 1.02 * math.log(4))
    for at, share in ((middle, 0.55), (-1, 0.99)):
        known = knowledge((n * run.w[at]) @ run.W[at].mT, asked.answer, 4)
        assert known.relation == 1
        assert (known.answer < share) if at == middle else (known.answer > share)
    drift = torch.stack([conserved(w, W) for w, W in zip(run.w, run.W, strict=True)])
    assert (drift - drift[0]).abs().max() < 0.03 * run.w[-1].square().max()


def test_a_run_is_plain_gradient_descent():
    facts = random_world(4, 2, 2, noise=3, generator=1)
    run = phases(facts, steps=2, length=5, batch=64, every=1, lr=0.5, seed=2)
    torch.testing.assert_close(run.w[0], LinearRecaller(facts.words, facts.all_answers).w.detach().double())
    assert run.steps == [0, 1]
    drawn = sentences(64, facts, 5, generator=batch_generator(2, 0, torch.device("cpu")))
    n, W = counts(drawn.tokens, facts.words).double(), run.W[0].clone().requires_grad_(True)
    F.cross_entropy((n * run.w[0]) @ W.mT, drawn.answer).backward()
    torch.testing.assert_close(run.W[1], run.W[0] - 0.5 * W.grad, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"steps": 0}, "steps = 0"), ({"steps": 2, "batch": 0}, "batch = 0"), ({"steps": 2, "lr": 0.0}, "lr = 0.0")],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        phases(random_world(4, 2, 2), **arguments)


def test_another_rate_stores_little_in_few_steps_and_bad_arguments_are_named():
    assert 0 <= facts_at(0.03, steps=2) < 100  # of worlds with 361 to 1,600 facts; after 5,000 steps 509
    with pytest.raises(ValueError, match="lr = 0"):
        facts_at(0.0)
    with pytest.raises(ValueError, match="steps = 0"):
        facts_at(0.03, steps=0)
