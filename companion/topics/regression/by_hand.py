r"""Iterative Newton as a transformer with explicit weights: k + 8 layers for k steps.

Theorem 5.1 of Fu, Chen, Jia, Sharan (2024), arXiv:2310.17086: width O(d), full attention with activation ReLU(.) / n. A
head adds

    V H relu((K H)^T Q H) / n    to the residual stream H, one column a token: a `Head` with W_QK = Q^T K, W_OV = V

Tokens: examples (x_j, y_j) and the query (x_test, y unknown). The stream is cut into named blocks:

    a  x, later M_k x         b  a copy of x                       q       the query's x, held apart
    y  the label              t  1 at the query, 0 elsewhere       w, out  work space of the readout

Two heads whose scores differ in sign and whose values differ in sign compute a product without the ReLU: relu(s) v -
relu(-s) v = s v. **The printed proof gives both heads the same value matrix, V_1 = V_2; that yields |s| v instead**,
and no Newton step. With V_2 = -V_1 the network equals the recurrence to rounding.

Ours: the query is moved out of block a first, so that S sums over examples alone; and the readout. Five layers are what
the theorem grants it. Three of ours would do (sum, product, write); the other two carry the labels through the work
space, as the proof does.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import at_least, positive
from companion.core.blocks import Blocks, Head, Matrix


@dataclass
class Layer:
    """Heads, then an MLP W_out relu(W_in .), each added to the stream; ``mlp`` is the linear map of the MLP."""

    name: str
    heads: list[Head]
    mlp: Matrix

    def __call__(self, H: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "batch tokens width"]:
        H = H + sum(head(H) for head in self.heads)
        mlp, both = self.mlp.to(H.device), torch.eye(len(self.mlp), dtype=H.dtype, device=H.device)
        w_in = torch.cat([mlp, -mlp])  # relu(u) - relu(-u) = u: a ReLU network that is linear
        w_out = torch.cat([both, -both], dim=1)
        return H + torch.relu(H @ w_in.mT) @ w_out.mT


class NewtonTransformer:
    """Predicts a query's label as ``k`` steps of Iterative Newton do, with M_0 = alpha S, in ``k + 8`` layers on ``n``
    examples.

    >>> net = NewtonTransformer(d=5, n=20, k=6, alpha=1e-3)
    >>> len(net.layers)
    14
    >>> net(xs, ys)          # xs (batch, 21, 5): 20 examples and the query; ys (batch, 20)  ->  (batch,)

    ``layers`` may be edited: flip a sign in ``net.layers[3].heads[1].ov`` and see what is left of the theorem. alpha is
    a constant of the network (the theorem's too): Newton converges on a prompt when alpha < 2 / lambda_max(S)^2. Raises
    ValueError for d < 1, n < 1, k < 0, alpha <= 0.
    """

    def __init__(self, d: int, n: int, k: int, alpha: float):
        at_least(d=(d, 1), n=(n, 1), k=(k, 0))
        positive(alpha=alpha)
        self.d, self.n, self.k = d, n, k
        # data, its copy, the query, work space; the label, the query's mark, the sum (see the module's docstring)
        self.blocks = Blocks(a=d, b=d, q=d, w=d, y=1, t=1, out=1)
        copy, product, nothing = self._copy, self._product, torch.zeros(self.width, self.width, dtype=torch.float64)

        half_newton = product("a", "b", value=copy("a", "a", -n / 2))
        self.layers = [
            Layer(
                "move the query to q, copy x to b", [self._gate(copy("a", "q", n) + copy("a", "a", -n))], copy("a", "b")
            ),
            Layer("a = x + alpha S x", product("a", "a", value=copy("a", "a", n * alpha)), nothing),
            Layer("a = alpha S x = M_0 x", [], copy("b", "a", -1)),
            *[Layer("a = 2 M x - M S M x", half_newton, copy("a", "a")) for _ in range(k)],
            Layer("copy the labels into out", [], copy("y", "out")),
            Layer("w = sum of y M x, at the query", product("t", "out", value=copy("a", "w", n)), nothing),
            Layer("clear out", [], copy("out", "out", -1)),
            Layer("out = w . q, which only the query has", product("w", "q", value=copy("t", "out", n)), nothing),
            Layer("write the prediction where the label was missing", [], copy("out", "y") + copy("q", "a")),
        ]

    def __call__(self, xs: Float[Tensor, "batch tokens d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
        """Predictions for the last input of each prompt."""
        return self.streams(xs, ys)[-1][:, -1, self.blocks["y"]][:, 0]

    def streams(
        self, xs: Float[Tensor, "batch tokens d"], ys: Float[Tensor, "batch n"]
    ) -> list[Float[Tensor, "batch tokens width"]]:
        """Return the residual stream before the first layer and after each."""
        if xs.shape[1:] != (self.n + 1, self.d) or ys.shape[1] != self.n:
            raise ValueError(
                f"xs of shape {tuple(xs.shape)}, ys of shape {tuple(ys.shape)}: must be (batch, {self.n + 1}, "
                f"{self.d}), {self.n} examples and the query, and (batch, {self.n})"
            )
        H = torch.zeros(len(xs), self.n + 1, self.width, dtype=torch.float64, device=xs.device)
        H[..., self.blocks["a"]] = xs.double()
        H[:, :-1, self.blocks["y"]] = ys.double()[..., None]
        H[:, -1, self.blocks["t"]] = 1
        streams = [H]
        for layer in self.layers:
            streams.append(layer(streams[-1]))
        return streams

    @property
    def width(self) -> int:
        """Return how many channels the residual stream has: 4 d + 3."""
        return self.blocks.width

    def _copy(self, read: str, write: str, factor: float = 1.0) -> Matrix:
        """The matrix that reads one block and writes a multiple of it to another."""
        return factor * self.blocks.matrix(write, read)

    def _head(self, qk: Matrix, ov: Matrix) -> Head:
        return Head(qk, ov, weights=lambda scores: scores.relu() / self.n)

    def _product(self, query: str, key: str, value: Matrix) -> list[Head]:
        """Two heads that add sum_j (query_i . key_j) value_j / n to token i: the ReLUs cancel because the values' signs
        differ.
        """
        qk = self.blocks.matrix(query, key)
        return [self._head(qk, value), self._head(-qk, -value)]

    def _gate(self, value: Matrix) -> Head:
        """A head through which the query alone attends to itself alone: its score is t_i t_j."""
        return self._head(self.blocks.matrix("t", "t"), value)


def newton_predictions(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], steps: int
) -> Float[Tensor, "steps batch n"]:
    """Compute what a `NewtonTransformer` would answer after each of its ``steps`` Newton layers, for every prefix of a
    prompt.

    A network is built for each prefix length, with an alpha that suits all prompts: the least 1 / |S S|_F among them.
    The readout of the theorem, the sum of y_j (M_k x_j . x), is applied to the stream after each layer.
    """
    answers = torch.zeros(steps, *ys.shape, dtype=ys.dtype, device=ys.device)
    for t in range(1, ys.shape[1]):
        S = (xs[:, :t].mT @ xs[:, :t]).double()
        network = NewtonTransformer(xs.shape[2], t, steps, (1 / torch.linalg.matrix_norm(S @ S)).min().item())
        streams = network.streams(xs[:, : t + 1], ys[:, :t])
        for k in range(steps):
            mapped = streams[4 + k][:, :-1, network.blocks["a"]]
            answers[k, :, t] = torch.einsum("bj,bjd,bd->b", ys[:, :t].double(), mapped, xs[:, t].double())
    return answers
