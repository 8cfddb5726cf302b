r"""Memories from explicit weights: sums of outer products, and what they become with a bottleneck, a nonlinearity, or a
softmax.

A fact is a token z with an embedding u_z (a row of ``U``) and an answer f(z) with an output embedding v_f(z) (a row of
``V``). All that is stored lies in one matrix

    W = sum_z q(z) v_f(z) u_z^T,         read as the logits  v_k^T W u_z.

Cabannes, Dohmatob, Bietti (2024), arXiv:2310.02984; Nichani, Lee, Bietti (2024), arXiv:2412.06538; Bietti et al.
(2023), arXiv:2306.00802, for the gradients. Hopfield networks: Hopfield (1982); Krotov, Hopfield (2016),
arXiv:1606.01164; Ramsauer et al. (2020), arXiv:2008.02217. Any number of independent ``runs`` may stand in front of the
shapes.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range, positive

Tokens = Float[Tensor, "*runs n d"]
Answers = Float[Tensor, "*runs m d"]
Square = Float[Tensor, "*runs d d"]
Logits = Float[Tensor, "*runs n m"]


# -- linear memories


def write(U: Tokens, V: Answers, answers: Int[Tensor, "n"], weights: Float[Tensor, "*runs n"] | None = None) -> Square:
    """W = sum_z weights[z] v_answers[z] u_z^T; every weight is 1 unless told.

    ``U``, ``V``: a row for each token z, and for each answer.
    ``answers``: of each token, f(z).
    ``weights``: how strongly each pair is written.

    Raises ValueError for an answer that has no embedding.
    """
    check_range(answers=(answers, V.shape[-2]))
    return V[..., answers, :].mT @ (U if weights is None else weights[..., None] * U)


def read(W: Square, U: Tokens, V: Answers) -> Logits:
    """Compute the logits v_k^T W u_z: a row for each token z, a column for each answer k."""
    return U @ (V @ W).mT


def gradient(W: Square, U: Tokens, V: Answers, p: Float[Tensor, "n m"]) -> Square:
    """Compute the gradient of the cross-entropy under the joint distribution ``p``[z, k]: itself a sum of outer
    products,

    grad L(W) = sum_k E_z[(p_W(k | z) - p(k | z)) v_k u_z^T]         (Bietti et al. 2023, lemma 1).

    ``W``: the memory.
    ``U``, ``V``: a row for each token z, and for each answer k.
    ``p``: the probability of each pair.
    """
    _distribution(p)
    believed = read(W, U, V).softmax(-1) * p.sum(1, keepdim=True)
    return V.mT @ (believed - p).mT @ U


def random_factors(W: Square, rank: int, *, generator: torch.Generator | int = 0) -> tuple[Tensor, Tensor]:
    """W_1 and W_2, each (*runs, rank, d), whose product W_1^T W_2 stands for the memory ``W``.

    W_1 is random, with entries N(0, 1/rank), and W_2 = W_1 W is what one gradient step on W_2 from 0 gives, if one on W
    gives W. Raises ValueError for a rank below 1 or above d.
    """
    d = W.shape[-1]
    if not 1 <= rank <= d:
        raise ValueError(f"rank = {rank!r}: must be at least 1 and at most {d}")
    generator = as_generator(generator)
    left = torch.randn(*W.shape[:-2], rank, d, generator=generator, device=generator.device, dtype=W.dtype)
    left = left.to(W.device) / rank**0.5
    return left, left @ W


# -- an MLP as a memory


def hermite(x: Float[Tensor, "*shape"], degree: int) -> Float[Tensor, "*shape"]:
    """Evaluate the Hermite polynomial of this degree, normalised: E h(g)^2 = 1 for g ~ N(0, 1). Raises ValueError for a
    degree below 1.

    Its use here: E_w[h(w.u) h(w.u')] = (u.u')^degree for unit vectors u, u' and w ~ N(0, I).
    """
    at_least(degree=(degree, 1))
    before, now = torch.ones_like(x), x
    for k in range(1, degree):  # He_{k+1} = x He_k - k He_{k-1}
        before, now = now, x * now - k * before
    return now / math.factorial(degree) ** 0.5


def mlp_logits(
    U: Tokens, V: Answers, answers: Int[Tensor, "n"], width: int, degree: int, *, generator: torch.Generator | int = 0
) -> Logits:
    """Logits of an MLP with ``width`` Hermite units that has stored the facts, on the tokens themselves:

        F(u) = sum_i a_i h(w_i.u),      a_i = (1/width) sum_z h(w_i.u_z) v_f(z),      w_i ~ N(0, I).

    The w_i stay random; the a_i are what one gradient step gives. ``U`` should have unit rows. Raises ValueError for a
    width below 1.

    ``U``, ``V``: a row for each token z, and for each answer.
    ``answers``: of each token, f(z).
    ``width``: how many units there are.
    ``degree``: of the Hermite polynomial h.
    ``generator``: a seed, or a generator, for the w_i.
    """
    check_range(answers=(answers, V.shape[-2]))
    at_least(width=(width, 1))
    generator = as_generator(generator)
    w = torch.randn(*U.shape[:-2], width, U.shape[-1], generator=generator, device=generator.device, dtype=U.dtype)
    w = w.to(U.device)
    hidden = hermite(U @ w.mT, degree)  # (*runs, n, width)
    out = V[..., answers, :].mT @ hidden / width  # (*runs, d, width): column i is a_i
    return hidden @ (V @ out).mT


# -- retrieval: a state is pulled to the pattern that it resembles


def dense_update(X: Float[Tensor, "n d"], states: Float[Tensor, "t d"], power: int) -> Float[Tensor, "t d"]:
    """Compute one update of every sign of every state towards the stored patterns ``X``, by the energy -sum_mu F(x_mu .
    s) with F(x) = x^power.

    Sign i becomes the one of lower energy, all others held: the sign of sum_mu F(o + x_i) - F(o - x_i), where o = x_mu
    . s without i (Krotov, Hopfield 2016, eq. 7). With power 2 this is Hopfield's network of 1982, without
    self-coupling. As x_i and s_i are signs, the sum over all i at once takes two matrix products: with o = X s,

        1/2 [X^T (F(o + 2) - F(o - 2)) - s sum_mu (F(o + 2) - 2 F(o) + F(o - 2))].

    A sign whose two energies are equal stays as it is. Raises ValueError for a power below 2.
    """
    at_least(power=(power, 2))
    X, s = X.double(), states.double()  # the powers of d need the digits
    o = s @ X.mT
    up, down = (o + 2) ** power, (o - 2) ** power
    field = (up - down) @ X - s * (up - 2 * o**power + down).sum(1, keepdim=True)
    return torch.where(field == 0, s, field.sign()).to(states)


def softmax_update(X: Float[Tensor, "n d"], states: Float[Tensor, "t d"], beta: float) -> Float[Tensor, "t d"]:
    """Compute the update of the modern Hopfield network, X^T softmax(beta X s): attention with keys and values X
    (Ramsauer et al. 2020).

    Raises ValueError for a beta that is not positive and finite.
    """
    positive(beta=beta)
    return (beta * states @ X.mT).softmax(-1) @ X


def _distribution(p: Tensor) -> None:
    if (p < 0).any() or abs(p.sum().item() - 1) > 1e-5:
        raise ValueError(f"p: probabilities must be at least 0 and sum to 1, not to {p.sum().item():.6g}")
