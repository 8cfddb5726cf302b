r"""Iterative Newton as a transformer with explicit weights: k + 8 layers for k steps.

Theorem 5.1 of Fu, Chen, Jia, Sharan (2024), arXiv:2310.17086: width O(d), full attention with activation ReLU(.) / n. A head adds

    V H relu((K H)^T Q H) / n          to the residual stream H (one column a token; here one row a token)

Tokens: examples (x_j, y_j) and the query (x_test, y unknown). The stream is cut into named blocks:

    a  x, later M_k x         b  a copy of x          q  the query's x, held apart         w, out  work space of the readout
    y  the label              t  1 at the query, 0 elsewhere

Two heads whose scores differ in sign and whose values differ in sign compute a product without the ReLU:
relu(s) v - relu(-s) v = s v. **The printed proof gives both heads the same value matrix, V_1 = V_2; that yields |s| v instead**, and no
Newton step. With V_2 = -V_1 the network equals the recurrence to rounding.

Ours: the query is moved out of block a first, so that S sums over examples alone; and the readout. Five layers are what the theorem
grants it. Three of ours would do (sum, product, write); the other two carry the labels through the work space, as the proof does.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

BLOCKS = ("a", "b", "q", "w", "y", "t", "out")


@dataclass
class Head:
    """relu(queries . keys) / n weights the values. Each matrix is (width, width) and acts on rows: H @ Q, H @ K, H @ V."""

    Q: Float[Tensor, "width width"]
    K: Float[Tensor, "width width"]
    V: Float[Tensor, "width width"]

    def __call__(self, H: Float[Tensor, "batch tokens width"], n: int) -> Float[Tensor, "batch tokens width"]:
        scores = torch.relu((H @ self.Q) @ (H @ self.K).mT) / n
        return scores @ (H @ self.V)


@dataclass
class Layer:
    """Heads, then an MLP W_out relu(W_in .), each added to the stream; ``mlp`` is the linear map that the MLP computes."""

    name: str
    heads: list[Head]
    mlp: Float[Tensor, "width width"]

    def __call__(self, H: Float[Tensor, "batch tokens width"], n: int) -> Float[Tensor, "batch tokens width"]:
        H = H + sum(head(H, n) for head in self.heads)
        w_in = torch.cat([self.mlp, -self.mlp], dim=1)  # relu(u) - relu(-u) = u: a ReLU network that is linear
        w_out = torch.eye(len(self.mlp), dtype=H.dtype).repeat(2, 1)
        w_out[len(self.mlp) :] *= -1
        return H + torch.relu(H @ w_in) @ w_out


class NewtonTransformer:
    """Predicts a query's label as ``k`` steps of Iterative Newton do, with M_0 = alpha S, in ``k + 8`` layers on ``n`` examples.

    >>> net = NewtonTransformer(d=5, n=20, k=6, alpha=1e-3)
    >>> len(net.layers)
    14
    >>> net(xs, ys)          # xs (batch, 21, 5): 20 examples and the query; ys (batch, 20)  ->  (batch,)

    ``layers`` may be edited: flip a sign in ``net.layers[3].heads[1].V`` and see what is left of the theorem.
    alpha is a constant of the network (the theorem's too): Newton converges on a prompt when alpha < 2 / lambda_max(S)^2.
    Raises ValueError for d < 1, n < 1, k < 0, alpha <= 0.
    """

    def __init__(self, d: int, n: int, k: int, alpha: float, dtype: torch.dtype = torch.float64):
        for name, value, ok in (("d", d, d >= 1), ("n", n, n >= 1), ("k", k, k >= 0), ("alpha", alpha, alpha > 0)):
            if not ok:
                raise ValueError(f"{name} = {value!r}: needs d >= 1, n >= 1, k >= 0, alpha > 0")
        self.d, self.n, self.k, self.dtype = d, n, k, dtype
        sizes = {"a": d, "b": d, "q": d, "w": d, "y": 1, "t": 1, "out": 1}
        ends = torch.tensor([sizes[block] for block in BLOCKS]).cumsum(0).tolist()
        self.blocks = {block: slice(end - sizes[block], end) for block, end in zip(BLOCKS, ends, strict=True)}
        self.width = ends[-1]
        copy, product = self._map, self._product

        half_newton = product("a", "b", value=copy("a", "a", -n / 2))
        self.layers = [
            Layer("move the query to q, copy x to b", [self._gate(copy("a", "q", n) + copy("a", "a", -n))], copy("a", "b")),
            Layer("a = x + alpha S x", product("a", "a", value=copy("a", "a", n * alpha)), self._zero()),
            Layer("a = alpha S x = M_0 x", [], copy("b", "a", -1)),
            *[Layer("a = 2 M x - M S M x", half_newton, copy("a", "a")) for _ in range(k)],
            Layer("copy the labels into out", [], copy("y", "out")),
            Layer("w = sum of y M x, at the query", product("t", "out", value=copy("a", "w", n)), self._zero()),
            Layer("clear out", [], copy("out", "out", -1)),
            Layer("out = w . q, which only the query has", product("w", "q", value=copy("t", "out", n)), self._zero()),
            Layer("write the prediction where the label was missing", [], copy("out", "y") + copy("q", "a")),
        ]

    def __call__(self, xs: Float[Tensor, "batch tokens d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
        """Predictions for the last input of each prompt."""
        return self.streams(xs, ys)[-1][:, -1, self.blocks["y"]][:, 0]

    def streams(self, xs: Float[Tensor, "batch tokens d"], ys: Float[Tensor, "batch n"]) -> list[Float[Tensor, "batch tokens width"]]:
        """The residual stream before the first layer and after each."""
        if xs.shape[1:] != (self.n + 1, self.d) or ys.shape[1] != self.n:
            raise ValueError(f"xs {tuple(xs.shape)}, ys {tuple(ys.shape)}: needs {self.n} examples, one query, d = {self.d}")
        H = torch.zeros(len(xs), self.n + 1, self.width, dtype=self.dtype)
        H[..., self.blocks["a"]] = xs.to(self.dtype)
        H[:, :-1, self.blocks["y"]] = ys.to(self.dtype)[..., None]
        H[:, -1, self.blocks["t"]] = 1
        streams = [H]
        for layer in self.layers:
            streams.append(layer(streams[-1], self.n))
        return streams

    def _zero(self) -> Tensor:
        return torch.zeros(self.width, self.width, dtype=self.dtype)

    def _map(self, source: str, target: str, factor: float = 1.0) -> Tensor:
        """The matrix that reads one block and writes a multiple of it to another."""
        matrix = self._zero()
        size = self.blocks[target].stop - self.blocks[target].start
        matrix[self.blocks[source], self.blocks[target]] = factor * torch.eye(size, dtype=self.dtype)
        return matrix

    def _product(self, query: str, key: str, value: Tensor) -> list[Head]:
        """Two heads that add sum_j (query_i . key_j) value_j / n to token i: the ReLUs cancel because the values' signs differ."""
        common = "a" if query in ("a", "b", "q", "w") else "t"  # a place of the right size for both to meet in
        Q, K = self._map(query, common), self._map(key, common)
        return [Head(Q, K, value), Head(-Q, K, -value)]

    def _gate(self, value: Tensor) -> Head:
        """A head through which the query alone attends to itself alone: its score is t_i t_j."""
        flag = self._map("t", "t")
        return Head(flag, flag, value)
