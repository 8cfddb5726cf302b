"""Recall, and truncation of the rank, against loops and numpy."""

import numpy as np
import pytest
import torch
from refusals import refusals

from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.bigrams.probes import copying, memories, prefix_matching, recalled, truncated


@pytest.mark.parametrize("candidates", [9, 14])
def test_recall_is_the_argmax_of_every_pair(candidates):
    W, u, v = torch.randn(5, 4), torch.randn(9, 4), torch.randn(candidates, 5)
    expected = [max(range(candidates), key=lambda j: float(v[j] @ W @ u[i])) == i for i in range(9)]
    assert recalled(W, u, v).tolist() == expected
    targets = torch.randint(candidates, (9,))
    expected = [max(range(candidates), key=lambda j: float(v[j] @ W @ u[i])) == targets[i] for i in range(9)]
    assert recalled(W, u, v, targets).tolist() == expected


def test_a_sum_of_outer_products_is_recalled_and_random_weights_are_not():
    u, v = torch.randn(20, 200), torch.randn(20, 200)
    assert recalled(v.mT @ u, u, v).all()
    assert recalled(torch.randn(200, 200), u, v).float().mean() < 0.3


def test_each_memory_is_read_from_its_own_matrix():
    torch.manual_seed(1)
    model, triggers = BigramModel(BigramModelConfig(20, 30, 256)), torch.tensor([3, 11])
    E, P, U = model.embed.weight.data, model.decoder.positions.data, model.unembed.weight.data
    rule = memories(model, triggers)
    assert rule["W_K2"] == 0  # all scores are 0, and the first of all 20 candidates wins
    assert rule["W_O2"] == pytest.approx(0.05)  # the same for tokens
    model.outputs(1)[:] = sum(torch.outer(U[j], model.values(1) @ E[j]) for j in range(20))
    assert memories(model, triggers) == rule | {"W_O2": 1.0}
    model.keys(1)[:] = sum(torch.outer(E[k], model.outputs(0) @ model.values(0) @ E[k]) for k in triggers)
    assert memories(model, triggers) == rule | {"W_O2": 1.0, "W_K2": 1.0}
    model.keys(0)[:] = sum(torch.outer(P[t], P[t - 1]) for t in range(1, 30))
    assert memories(model, triggers) == {"W_O2": 1.0, "W_K2": 1.0, "W_K1": 1.0}


@pytest.mark.parametrize("shape", [(6, 10), (10, 6), (7, 7)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_truncation_is_the_best_matrix_of_its_rank(shape, share):
    W = torch.randn(shape, dtype=torch.float64)
    U, S, V = np.linalg.svd(W.numpy(), full_matrices=False)
    S[int(share * min(shape)) :] = 0
    np.testing.assert_allclose(truncated(W, share).numpy(), (U * S) @ V, atol=1e-12)


test_bad_arguments_are_named = refusals(
    (lambda: truncated(torch.randn(3, 4), -0.1), "share = -0.1"),
    (lambda: truncated(torch.randn(3, 4), 1.1), "share = 1.1"),
    (lambda: prefix_matching(torch.rand(3, 4, 11, 11), 1), "period = 1: must be 2 to 5"),
    (lambda: prefix_matching(torch.rand(3, 4, 11, 11), 6), "period = 6: must be 2 to 5"),
)


def test_prefix_matching_is_the_attention_to_what_came_next_before():
    pattern, period = torch.rand(3, 4, 11, 11), 4
    expected = [
        np.mean([pattern[b, head, t, t - period + 1].item() for b in range(3) for t in range(7, 11)])
        for head in range(4)
    ]
    torch.testing.assert_close(prefix_matching(pattern, period), torch.tensor(expected, dtype=torch.float32))


def test_copying_compares_with_what_a_head_says_anyway():
    logits, own = torch.randn(2, 3, 4, 5), torch.randint(5, (2, 4))
    shares = torch.zeros(3)
    for b, head, t in np.ndindex(2, 3, 4):
        raised = [logits[b, head, t, j] - np.mean(logits[:, head, :, j].tolist()) for j in range(5)]
        shares[head] += (np.argmax(raised) == own[b, t]) / 8
    torch.testing.assert_close(copying(logits, own), shares)
    own = torch.tensor([[2, 0, 1], [1, 2, 0]])
    copies = torch.nn.functional.one_hot(own, 3).float()
    loud = torch.tensor([0.0, 50.0, 0.0])  # what it says wherever it looks
    logits = torch.stack([copies, copies + loud, loud.expand(2, 3, 3), -copies], 1)
    assert copying(logits, own)[[0, 1, 3]].tolist() == [1, 1, 0]
    assert copying(logits, own)[2] < 0.5
