"""Knowledge, counted by a loop; and the conserved quantity, against the gradients that conserve it."""

import pytest
import torch
from hypothesis.strategies import integers, lists, tuples
from laws import holds

from companion.topics.facts.data import counts, every_fact, random_world, sentences
from companion.topics.facts.exercises import saw_gradient
from companion.topics.facts.model import Bank, BankConfig, Member
from companion.topics.facts.probes import conserved, knowledge, recall_accuracy
from companion.topics.facts.recipes import facts_of


@holds(each=integers(1, 3), pairs=lists(tuples(integers(0, 5), integers(0, 5)), min_size=1, max_size=8))
def test_knowledge_is_counted(each, pairs):
    guesses, answers = torch.tensor(pairs).T
    known = knowledge(torch.eye(6)[guesses], answers, each)
    assert known.answer.item() == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert known.relation.item() == pytest.approx(sum(a // each == b // each for a, b in pairs) / len(pairs))
    with pytest.raises(ValueError, match="each = 0"):
        knowledge(torch.eye(6)[guesses], answers, 0)


def test_each_member_is_asked_about_its_own_world():
    config = BankConfig((Member(6, 2, 3, 5, 8, 4), Member(4, 1, 2, 0, 3, 2)), answers=3, noise=5, length=7)
    facts, bank = facts_of(config), Bank(config)
    drawn = every_fact(facts, 7, rounds=20, generator=1)
    logits = bank(drawn.tokens.expand(2, -1, -1))
    for k, share in enumerate(recall_accuracy(bank, drawn)):
        member = config.members[k]
        right = [
            bool(logits[k, n].argmax() == drawn.answer[n])
            for n in range(len(drawn.answer))
            if drawn.subject[n] < member.subjects and drawn.relation[n] < member.relations
        ]
        assert share.item() == pytest.approx(sum(right) / len(right))


def test_gradient_flow_does_not_change_what_is_conserved():
    facts = random_world(6, 2, 3, noise=4)
    w, W = torch.randn(13, dtype=torch.float64), torch.randn(6, 13, dtype=torch.float64)
    drawn = sentences(50, facts, 8, generator=1)
    gradient = saw_gradient.answer(counts(drawn.tokens, 13).double(), w, W, drawn.answer)
    rate = 2 * (W * gradient[:-1]).sum(0) - 2 * w * gradient[-1]
    assert rate.abs().max() < 1e-12 < gradient[-1].abs().max()
    torch.testing.assert_close(conserved(w, W)[3], W[:, 3] @ W[:, 3] - w[3] ** 2)
