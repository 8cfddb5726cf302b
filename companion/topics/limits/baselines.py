"""One step a symbol, one hop at a time, and the linear learner that worked steps suffice for."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least

STEPS, LR = 300, 0.1  # of Adam, on all examples at once


def running_products(words: Int[Tensor, "batch length n"]) -> Int[Tensor, "batch length n"]:
    """Compute what every prefix of a word does to each point, by a recurrence with a step for each symbol."""
    state, states = words[:, 0], [words[:, 0]]
    for t in range(1, words.shape[1]):
        state = words[:, t].gather(-1, state)
        states.append(state)
    return torch.stack(states, 1)


def follow(pointers: Int[Tensor, "batch n"], k: int) -> Int[Tensor, "batch n"]:
    """Return where k hops lead from every place, one hop after the other. Raises ValueError for a k below 0."""
    at_least(k=(k, 0))
    place = torch.arange(pointers.shape[1], device=pointers.device).expand_as(pointers)
    for _ in range(k):
        place = pointers.gather(-1, place)
    return place


class LinearSteps:
    """A linear next-token predictor: each token that follows the input has a logistic regression of its own, on the
    input and all tokens before it (Malach 2023, arXiv:2309.06979).

    It is trained on worked examples, all places at once, and answers alone: what it has said is what it reads.
    """

    def __init__(self, inputs: Int[Tensor, "m n"], tokens: Int[Tensor, "m steps"]):
        """Fit to m inputs of n bits, and the bits that are to follow each."""
        n, steps = inputs.shape[1], tokens.shape[1]
        seen = 2 * torch.cat([inputs, tokens[:, :-1]], 1).double() - 1
        # what stands at step i may read the n inputs and the i tokens before it
        self.earlier = torch.ones(steps, n + steps - 1, dtype=torch.float64, device=inputs.device).tril(n - 1)
        self.weights = torch.zeros_like(self.earlier).requires_grad_()
        self.bias = torch.zeros(steps, dtype=torch.float64, device=inputs.device, requires_grad=True)
        optimizer = torch.optim.Adam([self.weights, self.bias], lr=LR)
        for _ in range(STEPS):
            loss = F.binary_cross_entropy_with_logits(self._logits(seen), tokens.double())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.n, self.steps = n, steps

    def _logits(self, seen: Float[Tensor, "m seen"]) -> Float[Tensor, "m steps"]:
        return seen @ (self.weights * self.earlier).mT + self.bias

    @torch.no_grad()
    def __call__(self, inputs: Int[Tensor, "m n"]) -> Int[Tensor, "m steps"]:
        """The tokens that it says, each from the input and its own tokens before; the last one is its answer."""
        seen = F.pad(2 * inputs.double() - 1, (0, self.steps - 1))
        said = []
        for step in range(self.steps):
            said.append((self._logits(seen)[:, step] > 0).long())
            if step < self.steps - 1:
                seen[:, self.n + step] = 2 * said[-1].double() - 1
        return torch.stack(said, 1)
