"""The induction head by hand: how well it does, and that a wrong block or shuffled positions ruin it; and by three
gradient steps.
"""

import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.bigrams.by_hand import three_steps, write_memories
from companion.topics.bigrams.data import Bigrams, recurrences, trigger_sequences
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.bigrams.probes import memories

TABLE = Bigrams.shakespeare()


def accuracy(model, length, seed=3, fixed=True):
    tokens, known, *_ = trigger_sequences(32, length, TABLE, generator=seed, fixed=fixed)
    with torch.no_grad():
        return (model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:])[known].float().mean().item()


def fresh(seed, width=256, length=64):
    torch.manual_seed(seed)
    return BigramModel(BigramModelConfig(65, length, width))


@pytest.mark.parametrize("seed", range(3))
def test_three_sums_of_outer_products_solve_the_task(seed):
    triggers = TABLE.most_frequent(5)
    model = write_memories(fresh(seed, width=384), triggers)
    assert all(value > 0.97 for value in memories(model, triggers).values())
    tokens, known, *_ = trigger_sequences(64, 64, TABLE, generator=3)
    with torch.no_grad():
        right = model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]
    clean = ~torch.isin(
        tokens[:, :1], triggers
    )  # position 0 has none before it, and layer 1 copies its own token: the one flaw
    assert right[known & clean].float().mean() > 0.97
    assert right[known & ~clean].float().mean() > 0.8


def test_all_tokens_may_be_triggers():
    assert accuracy(write_memories(fresh(0, width=512)), 64, fixed=False) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_the_wrong_block_or_shuffled_positions_ruin_it(seed):
    triggers, shuffled = TABLE.most_frequent(5), torch.randperm(64)
    assert accuracy(write_memories(fresh(seed, 384), triggers, reads="token"), 64) < 0.4
    assert accuracy(write_memories(fresh(seed, 384), triggers, places=shuffled), 64) < 0.5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beta": 0.0}, r"beta = 0\.0"),
        ({"reads": "tokens"}, "reads = 'tokens'"),
        ({"triggers": torch.tensor([3, 65])}, "triggers: 65 is out of range"),
    ],
)
def test_bad_arguments_are_named(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message if "reads" not in wrong else "reads"):
        write_memories(fresh(0, 16), **wrong)


def test_only_a_model_of_two_layers_of_memories_is_written_into():
    with pytest.raises(ValueError, match="trains = 'everything', layers = 2"):
        write_memories(BigramModel(BigramModelConfig(65, 8, 16, trains="everything")))


def steps(N, T, d=None, seed=0, batch=16_384):
    return three_steps(lambda generator: recurrences(batch, T, N, generator=generator), N, T, d, generator=seed)


@pytest.mark.parametrize("seed", range(3))
def test_three_gradient_steps_recall_everything_on_one_hot_embeddings(seed):
    model = steps(100, 16, seed=seed)
    assert model.recalls() == {"W_O2": 1.0, "W_K2": 1.0, "W_K1": 1.0}
    tokens, targets = recurrences(4000, 16, 100, generator=seed + 50)
    assert (model.logits(tokens).argmax(1) == targets).float().mean() > 0.9


def test_logits_of_the_theorems_model_are_those_of_the_formula():
    model = steps(6, 5, d=7, batch=64)
    tokens, _ = recurrences(8, 5, 6, generator=1)
    e, p = model.embed, model.positions
    for row, logits in zip(tokens, model.logits(tokens), strict=True):
        h = []
        for s in range(5):
            weights = torch.stack([p[s] @ model.W_K1 @ p[r] for r in range(s + 1)]).softmax(0)
            h.append(sum(weights[r] * model.R @ e[row[r]] for r in range(s + 1)))
        weights = torch.stack([e[row[-1]] @ model.W_K2 @ here for here in h]).softmax(0)
        out = sum(weights[s] * model.S @ e[row[s]] for s in range(5))
        torch.testing.assert_close(logits, model.unembed @ model.W_O2 @ out, rtol=1e-4, atol=1e-4)


def test_the_first_step_is_the_lemmas():
    """W_O2 moves along sum_k p(y = k) u_k (mu_k - mean x)^T, with x what layer 2 gives at the start: the mean of the
    values.
    """
    tokens, targets = recurrences(3000, 8, 10, generator=4)
    model = three_steps(lambda generator: (tokens, targets), 10, 8, d=12, generator=5)
    assert model.embed.std().item() == pytest.approx(12**-0.5, rel=0.3)
    x = (model.embed @ model.S.mT)[tokens].mean(1)
    error = F.one_hot(targets, 10).float() - 0.1
    lemma = (error @ model.unembed).mT @ x
    torch.testing.assert_close(model.W_O2 / model.W_O2.norm(), lemma / lemma.norm(), rtol=1e-3, atol=1e-5)


test_bad_sizes_are_named = refusals(
    ((1, 8, None), "N = 1"),
    ((5, 2, None), "T = 2: must be at least 3"),
    ((5, 8, 0), "d = 0: must be at least 1"),
    of=lambda sizes: steps(*sizes),
)
