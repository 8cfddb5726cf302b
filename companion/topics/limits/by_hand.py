"""Words and pointers by doubling, with explicit weights in the course's `Decoder`; and parity by counting.

`WordDecoder` computes every prefix of a word over a permutation group in ceil(log2 T) layers (Liu et al. 2023,
arXiv:2210.10749, theorem 1, has the depth; the weights are ours). Place t holds the product f of the 2^l symbols up to
it; a layer fetches g, that of the place 2^l before, and writes g then f in f's place. `HopDecoder` follows pointers k
times in floor(log2 k) + 1 layers: the pointers themselves are doubled, and the binary digits of k say which of them are
taken. `LetterHopDecoder` finds them first, in the text, and so needs one layer more, as many as Sanford, Hsu, Telgarsky
2024, arXiv:2402.09268, give (the weights are ours).

A permutation of n points is the n x n table that has a 1 at [x, where x goes]. Both are in float64, unless another
``dtype`` is to show what its precision costs; the softmax leaves exp(-beta) on each wrong place.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range, positive
from companion.core.blocks import Blocks, Matrix
from companion.core.decoder import Decoder, DecoderConfig

GATE = 10.0  # GELU(-10) is 0 and GELU(10) is 10, to 1e-21


def _fill(mlp: nn.Sequential, up: Float[Tensor, "units width"], down: Float[Tensor, "units width"]) -> None:
    """Give a decoder's MLP its first units, what each reads and what it writes, and silence the others."""
    for layer in (mlp[1], mlp[3]):
        layer.weight.zero_()
    mlp[1].weight[: len(up)] = up
    mlp[3].weight[:, : len(down)] = down.mT


def _empty(width: int, layers: int, places: int, *, units: int = 0, heads: int = 1, causal: bool = True) -> Decoder:
    """A decoder whose weights are to be written: float64, no norms, no positions, at least ``units`` in an MLP."""
    shape = {"causal": causal, "norm": False, "mlp": -(-units // width), "positions": False}
    return Decoder(DecoderConfig(width, layers, heads, places, **shape)).double().requires_grad_(False)


def _attend(block: nn.Module, blocks: Blocks, scores: Float[Tensor, "seen asking"], moves: Matrix) -> None:
    """Write a block's one head: ``scores`` [place that is looked at, place that looks], and what it ``moves``."""
    asks, place = blocks.matrix("place", "place", scores), blocks.matrix("place", "place")
    # the decoder divides scores by sqrt(width)
    block.attention.qkv.weight[:] = torch.cat([blocks.width**0.5 * asks, place, moves])
    block.attention.out.weight[:] = torch.eye(blocks.width, dtype=torch.float64)


class WordDecoder:
    """The product of every prefix of a word, for permutations of ``points`` points and words up to ``length``.

    >>> WordDecoder(points=5, length=32, layers=5)(words)    # (batch, 32, 5) -> tables (batch, 32, 5, 5)

    Place 0 holds the identity; symbol t stands at place t, which after l layers has the product of the last 2^l symbols
    up to it. So prefixes up to 2^layers are right.

    ``points``, ``length``, ``layers``: how many points are permuted, symbols at most, and layers.
    ``beta``: the score of the place that is looked at; that of all others is 0.
    ``dtype``: of the weights and of the stream.

    Raises ValueError for a number below 1 or a beta that is not positive.
    """

    def __init__(
        self, points: int, length: int, layers: int, *, beta: float = 40.0, dtype: torch.dtype = torch.float64
    ):
        at_least(points=(points, 1), length=(length, 1), layers=(layers, 1))
        positive(beta=beta)
        n = points
        self.points, self.length = points, length
        self.blocks = Blocks(f=n * n, g=n * n, one=1, place=length + 1)
        decoder = _empty(self.blocks.width, layers, length + 1, units=n**3 + 4 * n * n)
        for layer, block in enumerate(decoder.blocks):
            before = (torch.arange(length + 1) - 2**layer).clamp_min(0)
            _attend(block, self.blocks, beta * F.one_hot(before, length + 1).double().mT, self.blocks.matrix("g", "f"))
            _fill(block.mlp, *self._composition(n))
        self.dtype, self.decoder = dtype, decoder.to(dtype)

    def _composition(self, n: int) -> tuple[Tensor, Tensor]:
        """An MLP that puts 'g, then f' in place of f and empties g: a unit for every x -> y -> z, and pairs GELU(u) -
        GELU(-u) = u that erase.
        """
        rows = {name: self.blocks.rows(name) for name in ("f", "g", "one")}
        x, y, z = torch.cartesian_prod(*[torch.arange(n)] * 3).T
        chains = GATE * (rows["g"][n * x + y] + rows["f"][n * y + z] - rows["one"])
        old = torch.cat([rows["f"], rows["g"]])
        up = torch.cat([chains, old, -old])
        down = torch.cat([rows["f"][n * x + z] / GATE, -old, old])
        return up, down

    def stream(self, words: Int[Tensor, "batch length n"]) -> Float[Tensor, "batch places width"]:
        """Return what the decoder reads: the identity, then the symbols. Raises ValueError for a word that is too long
        or not over ``points`` points.
        """
        batch, length, n = words.shape
        if length > self.length or n != self.points:
            raise ValueError(
                f"words of shape {tuple(words.shape)}: must be (batch, at most {self.length} symbols, "
                f"{self.points} points)"
            )
        check_range(words=(words, n))
        start = torch.arange(n, device=words.device).expand(batch, 1, n)
        x = torch.zeros(batch, length + 1, self.blocks.width, dtype=torch.float64, device=words.device)
        x[..., self.blocks["f"]] = F.one_hot(torch.cat([start, words], 1), n).flatten(2).double()
        x[..., self.blocks["one"]] = 1
        x[..., self.blocks["place"]] = torch.eye(self.length + 1, dtype=torch.float64)[: length + 1]
        return x

    def __call__(self, words: Int[Tensor, "batch length n"]) -> Float[Tensor, "batch length n n"]:
        """The table of every prefix."""
        f = self.decoder.to(words.device)(self.stream(words).to(self.dtype))[:, 1:, self.blocks["f"]]
        return f.unflatten(-1, (self.points, self.points))


class CircleDecoder:
    """The turn of every prefix of a word of turns and flips of a circle of ``n`` points, by two counts: two layers of
    one head, whatever the length, and an MLP of O(n length) units. For n = 3 that is S3.

    >>> CircleDecoder(n=3, length=64)(turns, flips)    # (batch, 64) each -> (batch, 64)

    Each head gives every place so far the same weight, 1 / (length + 1), and place 0, which is empty, what is left. So
    the first finds the number of flips, which the MLP folds into a parity and into turns with signs; the second adds
    those, and its MLP takes the sum modulo n, with the sign of the parity (Liu et al. 2023, arXiv:2210.10749, theorem
    2, has the depth; the weights are ours). Raises ValueError for n below 2 or a length below 1.
    """

    def __init__(self, n: int, length: int):
        at_least(n=(n, 2), length=(length, 1))
        self.n, self.length = n, length
        self.blocks = Blocks(turn=n, flip=1, one=1, place=length + 1, flips=1, odd=1, signed=1, turns=1, state=1)
        signs, sums = self._signs(), self._sums()
        self.decoder = _empty(self.blocks.width, 2, length + 1, units=max(len(up) for up, _ in (signs, sums)))
        rest = torch.zeros(length + 1, length + 1, dtype=torch.float64)
        rest[0] = torch.arange(length + 1, 0, -1).double().log()  # [place 0, place that looks]
        counts = (("flips", "flip", signs), ("turns", "signed", sums))
        for block, (count, counted, units) in zip(self.decoder.blocks, counts, strict=True):
            _attend(block, self.blocks, rest, (length + 1) * self.blocks.matrix(count, counted))
            _fill(block.mlp, *units)

    def _signs(self) -> tuple[Tensor, Tensor]:
        """An MLP that folds the number of flips into a zigzag, its parity, and turns each symbol about if it is odd."""
        turn, one, flips, odd, signed = map(self.blocks.rows, ("turn", "one", "flips", "odd", "signed"))
        kinks = torch.arange(self.length, dtype=torch.float64)[:, None]
        slopes = 2 * (-1) ** kinks
        slopes[0] = 1
        up, down = [flips - kinks * one], [slopes * odd]
        for a in range(1, self.n):  # a gate for each turn: a becomes n - a where the parity is odd
            up += [up[0] - self.n * self.length * (one - turn[a]), turn[a : a + 1]]
            down += [(self.n - 2 * a) * slopes * signed, a * signed]
        return GATE * torch.cat(up), torch.cat(down) / GATE

    def _sums(self) -> tuple[Tensor, Tensor]:
        """An MLP that takes the sum of turns modulo n, or its negative, as the parity is even or odd."""
        one, odd, turns, state = map(self.blocks.rows, ("one", "odd", "turns", "state"))
        up, down, most = [], [], (self.n - 1) * self.length
        for sign, first, gate in ((1, self.n - 1, odd), (-1, 0, one - odd)):
            left = turns - 2 * most * gate
            steps = torch.arange(first, most + 1, self.n, dtype=torch.float64)[:, None]  # n is taken away after each
            up += [left, left - steps * one, left - (steps + 1) * one]
            down += [
                sign * state,
                -sign * self.n * state.expand(len(steps), -1),
                sign * self.n * state.expand(len(steps), -1),
            ]
        return GATE * torch.cat(up), torch.cat(down) / GATE

    def __call__(
        self, turns: Int[Tensor, "batch length"], flips: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length"]:
        """The turn of every prefix, from 0 to n - 1. Raises ValueError for a word that is too long, and for a turn that
        is not from 0 to n - 1.
        """
        batch, length = turns.shape
        if length > self.length:
            raise ValueError(f"turns of shape {tuple(turns.shape)}: must be (batch, at most {self.length} symbols)")
        check_range(turns=(turns, self.n))
        x = torch.zeros(batch, length + 1, self.blocks.width, dtype=torch.float64, device=turns.device)
        x[:, 1:, self.blocks["turn"]] = F.one_hot(turns, self.n).double()
        x[:, 1:, self.blocks["flip"]] = (flips[..., None] < 0).double()
        x[..., self.blocks["one"]] = 1
        x[..., self.blocks["place"]] = torch.eye(self.length + 1, dtype=torch.float64)[: length + 1]
        return self.decoder.to(turns.device)(x)[:, 1:, self.blocks["state"]].squeeze(-1)


class HopDecoder:
    """Where ``hops`` hops along pointers lead from each of ``n`` places, in floor(log2 hops) + 1 layers of four heads,
    without an MLP.

    The stream of a place: itself, its pointer p, and c, where the hops so far have led. If the layer's binary digit of
    ``hops`` is 1, c becomes p of c; p becomes p of p. Two more heads fetch what stood there before, and take it away.
    Raises ValueError for a number below 1 or a beta that is not positive.
    """

    def __init__(self, n: int, hops: int, *, beta: float = 40.0):
        at_least(n=(n, 1), hops=(hops, 1))
        positive(beta=beta)
        self.n = n
        self.blocks = Blocks(here=n, p=n, c=n, spare=n)
        self.decoder = _empty(self.blocks.width, hops.bit_length(), n, heads=4, causal=False)
        rows, scale = {name: self.blocks.rows(name) for name in ("here", "p", "c")}, beta * n**0.5
        for layer, block in enumerate(self.decoder.blocks):
            taken = hops >> layer & 1
            # each head: which block asks, what it fetches where it looks, into which block, with which sign
            heads = [("p", "p", "p", 1), ("here", "p", "p", -1), ("c", "p", "c", taken), ("here", "c", "c", -taken)]
            asks, fetches, writes, signs = zip(*heads, strict=True)
            block.attention.qkv.weight[:] = torch.cat(
                [scale * rows[name] for name in asks]
                + [rows["here"]] * 4
                + [sign * rows[name] for name, sign in zip(fetches, signs, strict=True)]
            )
            block.attention.out.weight[:] = torch.cat([rows[name] for name in writes]).mT

    def __call__(self, pointers: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n n"]:
        """Row i: where the hops from place i lead, one-hot. Raises ValueError for a number of places that is not n, and
        for a pointer that leads nowhere.
        """
        if pointers.shape[1] != self.n:
            raise ValueError(f"pointers of shape {tuple(pointers.shape)}: must have {self.n} places")
        check_range(pointers=(pointers, self.n))
        x = torch.zeros(*pointers.shape, self.blocks.width, dtype=torch.float64, device=pointers.device)
        x[..., self.blocks["here"]] = x[..., self.blocks["c"]] = torch.eye(self.n, dtype=torch.float64)
        x[..., self.blocks["p"]] = F.one_hot(pointers, self.n).double()
        return self.decoder.to(x.device)(x)[..., self.blocks["c"]]


class LetterHopDecoder:
    """Where ``hops`` hops lead from each place of a text of ``alphabet`` letters, by `found_pointers` of the same
    topic's data: in floor(log2 hops) + 2 causal layers of two heads, whose width does not grow with ``length``.

    >>> LetterHopDecoder(length=256, alphabet=4, hops=50)(letters)    # (batch, 256) -> (batch, 256, 5)

    Place 0 is the start, where hops end that lead nowhere. Layer 1 fetches the letter before each place and counts how
    often its letters stood there already; its MLP, of O(alphabet length) units, keeps the counts of the place's own
    letter (its rank) and of the letter before it, and squares these. So place c points to the one whose letter before
    it is c's and stood there as often: a match of letters and numbers, for which nobody has to have been at c.

    The other layers take a binary digit of ``hops`` each, the highest first. A place knows where m hops lead from it,
    c, and the letter and rank there. At a 0 it looks at c, at a 1 where c points to, and takes over where m hops lead
    from there: 2 m hops, or 2 m + 1. Raises ValueError for a number below 1 or a beta that is not positive.
    """

    def __init__(self, length: int, alphabet: int, hops: int, *, beta: float = 40.0):
        at_least(length=(length, 1), alphabet=(alphabet, 1), hops=(hops, 1))
        positive(beta=beta)
        self.length, self.alphabet, v = length, alphabet, alphabet
        sizes = {"here": 1, "square": 1, "one": 1, "rest": 1, "c": 1, "letter": v + 1, "rank": v}
        self.blocks = Blocks(**sizes, count=v, before=v + 1, often=v, squared=v, spare=1)  # an even number in all
        units = self._ranks()
        self.decoder = _empty(self.blocks.width, 1 + hops.bit_length(), length + 1, units=len(units[0]), heads=2)
        rows = {name: self.blocks.rows(name) for name in self.blocks.slices}
        here, square, one, rest, c, letter, rank = (rows[name] for name in sizes)
        before, often, squared = (rows[name] for name in ("before", "often", "squared"))
        place = torch.cat([here, square])

        def at(asked: Tensor) -> tuple[Tensor, Tensor]:
            """Ask for the place whose number ``asked`` reads: 2 asked here - here^2 is largest there."""
            return beta * torch.cat([2 * asked, -one]), place

        match = beta * torch.cat([letter, 2 * rank, -letter[:v]]), torch.cat([before, often, squared])
        known = torch.cat([c, letter, rank])
        blocks: Any = self.decoder.blocks
        first, *others = blocks
        self._heads(
            first,
            (*at(here - one), letter[:v], before[:v]),
            (rest, before[v:], (length + 1) * letter[:v], rows["count"]),
        )
        _fill(first.mlp, *units)
        for block, digit in zip(others, f"{hops:b}", strict=True):
            self._heads(block, (*(match if digit == "1" else at(c)), known, known), (*at(here), -known, known))
            _fill(block.mlp, rest[:0], rest[:0])

    def _heads(self, block: Any, *heads: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """Write a block's heads, each with what asks, what is asked, what it fetches and where it writes that."""
        size = self.blocks.width // len(heads)
        full = torch.zeros(4, len(heads), size, self.blocks.width, dtype=torch.float64)
        for number, parts in enumerate(heads):
            for of, part in zip(full[:, number], parts, strict=True):
                of[: len(part)] = part
        full[0] *= size**0.5  # the decoder divides scores by it
        block.attention.qkv.weight[:] = full[:3].flatten(0, 2)
        block.attention.out.weight[:] = full[3].flatten(0, 1).mT

    def _ranks(self) -> tuple[Tensor, Tensor]:
        """An MLP that keeps of the counts of earlier letters the place's own and that of the letter before it, and the
        square of this: r^2 is r + 2 (r - 1)^+ + 2 (r - 2)^+ + .. for a whole number.
        """
        rows = {name: self.blocks.rows(name) for name in self.blocks.slices}
        v, far, one = self.alphabet, self.length + 1, rows["one"]
        letter, before = rows["letter"][:v], rows["before"][:v]
        earlier = rows["count"] - letter
        own, of_before = (earlier + far * (gate - one) for gate in (letter, before))
        up, down = [own, of_before, of_before], [rows["rank"], rows["often"], rows["squared"]]
        for step in range(1, self.length):
            up.append(of_before - step * one)
            down.append(2 * rows["squared"])
        return GATE * torch.cat(up), torch.cat(down) / GATE

    def stream(self, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch places width"]:
        """Return what the decoder reads: the start, then the letters, and the numbers of places. Raises ValueError for
        a text of another length, and for a letter that is not in the alphabet.
        """
        if letters.shape[1] != self.length:
            raise ValueError(f"letters of shape {tuple(letters.shape)}: must be {self.length}")
        check_range(letters=(letters, self.alphabet))
        places = torch.arange(self.length + 1, dtype=torch.float64)
        x = torch.zeros(len(letters), self.length + 1, self.blocks.width, dtype=torch.float64, device=letters.device)
        x[..., self.blocks["letter"]] = F.one_hot(F.pad(letters, (1, 0), value=self.alphabet)).double()
        x[:, 0, self.blocks["before"]] = 1  # every letter's pointer, if there is no other
        x[..., self.blocks["one"]] = 1
        numbers = (("here", places), ("square", places**2), ("rest", (self.length + 1 - places).log()), ("c", places))
        for name, values in numbers:
            x[..., self.blocks[name]] = values[:, None].to(x)
        return x

    def __call__(self, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length letters"]:
        """The letter where the hops from each place end, one-hot; the channel behind the letters, where they lead
        nowhere.
        """
        return self.decoder.to(letters.device)(self.stream(letters))[:, 1:, self.blocks["letter"]]


def counted_parity(bits: Int[Tensor, "batch length"], dtype: torch.dtype = torch.float64) -> Float[Tensor, "batch"]:
    """Compute the parity of all bits in one layer: a head without scores averages them, and ReLUs with kinks at 1, 2,
    .. T fold T times the average, the count, into a zigzag between 0 and 1.

    The weights depend on T, and their number grows with it. Every number is rounded to ``dtype``; with b significant
    bits counts above 2^b are no longer told from their neighbours.
    """
    length = bits.shape[1]
    count = length * bits.to(dtype).mean(1)
    kinks = torch.arange(1, length + 1, device=bits.device).to(dtype)
    return count + 2 * ((count[:, None] - kinks).relu() * (-1) ** kinks).sum(1)
