"""What lesson 05 trains: a matrix and an MLP that store facts; and memories in bulk, to see how much training adds to
one step.

Embeddings are frozen, as in Nichani, Lee, Bietti (2024), arXiv:2412.06538, who train such memories at the sizes of
``paper``.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least, positive
from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.memories.by_hand import read
from companion.topics.memories.data import embeddings, tokens
from companion.topics.memories.model import Facts, FactsConfig


def recall_loss(model, z):
    """Cross-entropy of the answer to each token, the mean over ``z`` (batch,): fact z's answer is number z."""
    return F.cross_entropy(model(z), z)


@as_sampler
def uniform_facts(config: FactsConfig, batch, generator):
    """Facts at random, each as often as any other."""
    return (torch.randint(config.facts, (batch,), generator=generator, device=generator.device),)


register(
    "memories-linear",
    "one matrix between frozen embeddings, given more facts than it can hold (lesson 05)",
    model=Facts,
    sampler=uniform_facts,
    loss=recall_loss,
    smoke=(FactsConfig(128, 16), Schedule(steps=150, batch=128, lr=0.3, warmup=10)),
    course=(FactsConfig(1024, 32), Schedule(steps=600, batch=512, lr=0.3, warmup=20)),
    paper=(FactsConfig(16_384, 128), Schedule(steps=5000, batch=4096, lr=0.3, warmup=100)),
)
register(
    "memories-mlp",
    "one hidden layer between frozen embeddings, that the learner trains (lesson 05)",
    model=Facts,
    sampler=uniform_facts,
    loss=recall_loss,
    smoke=(FactsConfig(128, 16, 64), Schedule(steps=150, batch=128, lr=3e-2, warmup=10)),
    course=(FactsConfig(1024, 32, 128), Schedule(steps=1200, batch=512, lr=3e-2, warmup=20)),
    paper=(FactsConfig(16_384, 128, 1024), Schedule(steps=10_000, batch=4096, lr=1e-2, warmup=100)),
)


def trained_accuracy(N: int, d: int, *, runs: int = 1, steps: int = 150, lr: float = 0.5, seed: int = 0) -> float:
    """The share of ``N`` facts that a trained d x d memory gets right, over ``runs`` memories trained at once by
    full-batch Adam.

    Raises ValueError for N, d, runs or steps below 1.

    ``N``, ``d``: how many facts there are, and the width.
    ``runs``: how many memories.
    ``steps``, ``lr``: of Adam.
    ``seed``: of embeddings and starts.
    """
    at_least(N=(N, 1), d=(d, 1), runs=(runs, 1), steps=(steps, 1))
    generator = torch.Generator().manual_seed(seed)
    U, V = (embeddings(N, d, runs=(runs,), generator=generator) for _ in range(2))
    W = nn.Parameter(torch.zeros(runs, d, d))
    optimizer = torch.optim.Adam([W], lr=lr, betas=(0.9, 0.99))
    target = torch.arange(N).expand(runs, N)

    # A loop of its own: all facts at every step and a rate that falls in a line, for many memories at once.
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        # the sum over runs of a mean over facts
        loss = runs * F.cross_entropy(read(W, U, V).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (read(W, U, V).argmax(-1) == target).float().mean().item()


def converged_accuracy(N: int, d: int, *, seed: int = 0) -> float:
    """The share of ``N`` facts that a d x d memory gets right at the minimum of its cross-entropy, which is convex in
    the memory; found by L-BFGS.

    ``N``, ``d``: how many facts there are, and the width.
    ``seed``: of embeddings.

    Raises ValueError for N or d below 1.
    """
    at_least(N=(N, 1), d=(d, 1))
    generator = torch.Generator().manual_seed(seed)
    U, V = (embeddings(N, d, unit=True, generator=generator) for _ in range(2))
    W, target = nn.Parameter(torch.zeros(d, d)), torch.arange(N)
    optimizer = torch.optim.LBFGS([W], max_iter=300, line_search_fn="strong_wolfe")

    def slope():
        optimizer.zero_grad()
        loss = F.cross_entropy(read(W, U, V), target)
        loss.backward()
        return loss

    optimizer.step(slope)
    with torch.no_grad():
        return (read(W, U, V).argmax(-1) == target).float().mean().item()


def optimise(
    p: Float[Tensor, "N"],
    d: int,
    *,
    lrs: Sequence[float],
    batch: int = 1,
    steps: int = 1000,
    repeats: int = 4,
    seed: int = 0,
) -> Float[Tensor, "lrs repeats N"]:
    """Train d x d memories from 0 by SGD on tokens with frequencies ``p``, each token its own answer, all step sizes
    and repeats at once, and return how strongly each token is stored.

    ``p``: the probability of each of the N tokens.
    ``d``: dimensions of their embeddings.
    ``lrs``: step sizes, each for memories of its own.
    ``batch``: tokens a step.
    ``steps``: how many.
    ``repeats``: memories for each step size, with embeddings and tokens of their own.
    ``seed``: decides embeddings and tokens.

    The strength of z is the coefficient of v_z u_z^T in W = sum_{k, z} C[k, z] v_k u_z^T, by least squares: exact where
    the embeddings are independent and W lies in their span. Raises ValueError for
    d, batch, steps, repeats or a step size that are not positive.
    """
    positive(d=d, batch=batch, steps=steps, repeats=repeats, lrs=min(lrs, default=0))
    generator = torch.Generator().manual_seed(seed)
    N, runs = len(p), len(lrs) * repeats
    U, V = (embeddings(N, d, runs=(repeats,), generator=generator).repeat(len(lrs), 1, 1) for _ in range(2))
    size = torch.tensor(lrs, dtype=torch.float32).repeat_interleave(repeats)[:, None, None]
    W = torch.zeros(runs, d, d)
    each_run = torch.arange(runs)[:, None]
    # A loop of its own: its updates are the subject, written out for all step sizes at once.
    for _ in range(steps):
        z = tokens(p, repeats * batch, generator=generator).view(repeats, batch).repeat(len(lrs), 1)
        u = U[each_run, z]
        residual = (u @ W.mT @ V.mT).softmax(-1)
        residual[each_run, torch.arange(batch), z] -= 1
        W = W - size * (residual @ V).mT @ u / batch
    C = torch.linalg.pinv(V.mT) @ W @ torch.linalg.pinv(U)
    return C.diagonal(dim1=1, dim2=2).unflatten(0, (len(lrs), repeats))
