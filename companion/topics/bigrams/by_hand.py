r"""An induction head from three associative memories on random embeddings: written down, and found by three gradient
steps.

Bietti, Cabannes, Bouchacourt, Jegou, Bottou (2023), arXiv:2306.00802, sections 4 and 5. With R = W_O^1 W_V^1, the
random map that layer 1 applies to what it looks at, and S = W_V^2, that of layer 2:

    W_K^1 = sum_t p_t p_{t-1}^T         position t looks at t - 1, and R copies its token into another "subspace"
    W_K^2 = sum_k e_k (R e_k)^T         token k looks where R e_k has been written: after an earlier k
    W_O^2 = sum_j u_j (S e_j)^T         what it finds there, token j, is what is said
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range, positive
from companion.topics.bigrams.model import BigramModel


def write_memories(
    model: BigramModel,
    triggers: Int[Tensor, "K"] | None = None,
    *,
    beta: float = 20.0,
    reads: Literal["previous", "token"] = "previous",
    places: Int[Tensor, "context"] | None = None,
) -> BigramModel:
    """Write the three memories into a model with ``trains='memories'``, in place, and return it.

    Raises ValueError for a model of another kind or depth, for beta <= 0, and for an unknown token among the triggers.

    ``model``: of two layers; its embeddings and its W_V and W_O^1 stay as they are.
    ``triggers``: the tokens k of W_K^2, all unless told.
    ``beta``: about the score of a right key.
    ``reads``: 'token' spoils the circuit: W_K^2 then reads e_k where it should read R e_k.
    ``places``: spoils it otherwise: a permutation of the keys' positions in W_K^1.
    """
    config = model.config
    if config.trains != "memories" or config.layers != 2:
        raise ValueError(
            f"model: has trains = {config.trains!r}, layers = {config.layers}; must have 'memories' and 2 layers"
        )
    positive(beta=beta)
    if reads not in ("previous", "token"):
        raise ValueError(f"reads = {reads!r}: must be 'previous' or 'token'")
    E, P, U = model.embed.weight.data, model.decoder.positions.data, model.unembed.weight.data
    triggers = torch.arange(len(E)) if triggers is None else triggers
    check_range(triggers=(triggers, len(E)))
    written = E @ (model.outputs(0) @ model.values(0)).mT if reads == "previous" else E
    keys = P if places is None else P[places]
    scale = beta * config.width**-1.5  # |e|^2 and |p|^2 are about d, and attention divides by sqrt(d)
    model.keys(0)[:] = scale * P[1:].mT @ keys[:-1]
    model.keys(1)[:] = scale * E[triggers].mT @ written[triggers]
    model.outputs(1)[:] = U.mT @ (E @ model.values(1).mT)
    return model


@dataclass
class ThreeStepModel:
    """The model of the theorem (section 5 there): layer 1 sees positions alone, layer 2 the output of layer 1, and
    there is no residual.

        h_s = sum_{r <= s} softmax_r(p_s^T W_K1 p_r) R e_{z_r}
        o = sum_s softmax_s(e_q^T W_K2 h_s) S e_{z_s},      logits U W_O2 o

    for the last token q = z_T. ``embed`` (N, d), ``positions`` (T, c) and ``unembed`` (N, d) are random, or one-hot.
    """

    embed: Float[Tensor, "N d"]
    positions: Float[Tensor, "T c"]
    unembed: Float[Tensor, "N d"]
    R: Float[Tensor, "d d"]
    S: Float[Tensor, "d d"]
    W_K1: Float[Tensor, "c c"]
    W_K2: Float[Tensor, "d d"]
    W_O2: Float[Tensor, "d d"]

    def logits(self, tokens: Int[Tensor, "batch T"]) -> Float[Tensor, "batch N"]:
        """Return what is said after the last token. All scores are looked up in tables over positions and tokens, so
        that d costs little.
        """
        N, T = len(self.embed), len(self.positions)
        future = torch.ones(T, T, dtype=torch.bool, device=tokens.device).triu(1)
        first = (self.positions @ self.W_K1 @ self.positions.mT).masked_fill(future, -torch.inf).softmax(-1)  # [s, r]
        score = self.embed @ self.W_K2 @ (self.embed @ self.R.mT).mT  # [query token, token that layer 1 copied]
        second = (score[tokens[:, -1:], tokens] @ first.mT).softmax(-1)  # (batch, T)
        share = torch.zeros(len(tokens), N, device=tokens.device, dtype=second.dtype).scatter_add(1, tokens, second)
        return share @ (self.embed @ self.S.mT @ self.W_O2.mT @ self.unembed.mT)

    def targets(self) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
        """Return, for each memory, its inputs, its candidates, and which is right. W_K1 is asked at 1 .. T - 2, where
        an answer may stand.
        """
        N, T = len(self.embed), len(self.positions)
        tokens, places = (torch.arange(many, device=self.embed.device) for many in (N, T - 2))
        return {
            "W_O2": (self.embed @ self.S.mT, self.unembed, tokens),
            "W_K2": (self.embed, self.embed @ self.R.mT, tokens),
            "W_K1": (self.positions[1:-1], self.positions, places),
        }

    def recalls(self) -> dict[str, float]:
        """Measure the share of each memory's associations that is recalled, of all candidates."""
        found = {}
        for name, (u, v, target) in self.targets().items():
            table = u @ (self.W_O2.mT if name == "W_O2" else getattr(self, name)) @ v.mT
            found[name] = (table.argmax(1) == target).float().mean().item()
        return found


def three_steps(
    draw: Callable[[torch.Generator], tuple[Tensor, Tensor]],
    N: int,
    T: int,
    d: int | None = None,
    *,
    generator: torch.Generator | int = 0,
) -> ThreeStepModel:
    """Train all memories from 0 by one large gradient step each: on W_O2, then W_K2, then W_K1.

    Steps are as large as makes the right answers' mean logits (scores) 10, 10 and 20; the theorem has infinite batches
    and widths, N >> T, and steps that grow without bound. Raises ValueError for N < 2, T < 3 or d < 1.

    ``draw``: ``draw(generator)`` gives a fresh batch of tokens (batch, T) and targets (batch,) for every step.
    ``N``: how many tokens there are.
    ``T``: how long a sequence is.
    ``d``: the width; embeddings and R, S then have entries N(0, 1/d). Without, they are one-hot and the identity.
    ``generator``: of embeddings and batches, or its seed.
    """
    at_least(N=(N, 2), T=(T, 3), d=(1 if d is None else d, 1))
    generator = as_generator(generator)
    if d is None:
        embed, positions, unembed, R, S = (torch.eye(n, device=generator.device) for n in (N, T, N, N, N))
    else:
        where = {"generator": generator, "device": generator.device}
        embed, positions, unembed, R, S = (torch.randn(n, d, **where) / d**0.5 for n in (N, T, N, d, d))
    zeros = [matrix.new_zeros(matrix.shape[1], matrix.shape[1]) for matrix in (positions, embed, embed)]
    model = ThreeStepModel(embed, positions, unembed, R, S, *zeros)
    for name, size in (("W_O2", 10.0), ("W_K2", 10.0), ("W_K1", 20.0)):
        gradient = _gradient(model, name, *draw(generator))
        u, v, target = model.targets()[name]
        reached = ((u @ (gradient.mT if name == "W_O2" else gradient)) * v[target]).sum(1).abs().mean()
        setattr(model, name, -gradient * size / reached)
    return model


def _gradient(model: ThreeStepModel, name: str, tokens: Tensor, targets: Tensor, chunk: int = 8192) -> Tensor:
    """Of the mean loss with respect to one matrix, a chunk of the batch after the other."""
    W = getattr(model, name).requires_grad_(True)
    total = torch.zeros_like(W)
    for part, wanted in zip(tokens.split(chunk), targets.split(chunk), strict=True):
        total += torch.autograd.grad(F.cross_entropy(model.logits(part), wanted, reduction="sum"), W)[0]
    W.requires_grad_(False)
    return total / len(tokens)
