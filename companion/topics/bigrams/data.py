r"""Text whose bigrams are partly global and partly the sequence's own: the trigger-bigram task.

Every sequence follows a table of character bigrams, except after its trigger tokens q_1 .. q_K: each of these is
followed, all through the sequence, by an output token o_k that was drawn afresh for this sequence:

    p(j | i) = 1{j = o_k} if i = q_k, else pi_b(j | i).

So pi_b can be learned in the weights, but o_k only be read from the context. Source: Bietti, Cabannes, Bouchacourt,
Jegou, Bottou (2023), arXiv:2306.00802, section 3; the noise: Chen, Bruna, Bietti (2024), arXiv:2406.03068.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range

SHAKESPEARE = Path(__file__).with_name("shakespeare_character_bigrams.csv")


@dataclass(frozen=True, eq=False)
class Bigrams:
    """Tokens and how often each is followed by each: ``counts[i, j]``. Every token must have a successor.

    >>> table = Bigrams.shakespeare()
    >>> table.N, table.decode(table.encode("to be"))
    (65, 'to be')
    """

    characters: str
    counts: Float[Tensor, "N N"]

    def __post_init__(self):
        if self.counts.shape[0] != len(self.characters) or len(self.characters) < 2:
            raise ValueError(
                f"counts of shape {tuple(self.counts.shape)}: must be N x N with N = {len(self.characters)} >= "
                "2 characters"
            )
        if (self.counts < 0).any() or not (self.counts.sum(1) > 0).all():
            raise ValueError(
                "counts: must be at least 0, and above 0 at least once in every row, as each token needs a successor"
            )

    @classmethod
    def shakespeare(cls) -> "Bigrams":
        """Return the 65 characters of the tiny Shakespeare text (1,115,394 characters, public domain): the table alone,
        not the text.
        """
        with SHAKESPEARE.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        characters = "".join(chr(int(name.removeprefix("U+"), 16)) for name in head[1:])
        return cls(characters, torch.tensor([[float(cell) for cell in row[1:]] for row in rows], dtype=torch.float64))

    @classmethod
    def uniform(cls, N: int) -> "Bigrams":
        """N tokens, each followed by each equally often. Raises ValueError for N < 2."""
        at_least(N=(N, 2))
        return cls("".join(chr(0x4E00 + i) for i in range(N)), torch.ones(N, N, dtype=torch.float64))

    @property
    def N(self) -> int:  # noqa: N802
        """Return how many tokens there are."""
        return len(self.characters)

    @cached_property
    def unigram(self) -> Float[Tensor, "N"]:
        """pi_u: how often each token comes first in a pair, as a share."""
        return self.counts.sum(1) / self.counts.sum()

    @cached_property
    def bigram(self) -> Float[Tensor, "N N"]:
        """pi_b: row i holds the distribution of what follows token i."""
        return self.counts / self.counts.sum(1, keepdim=True)

    def most_frequent(self, K: int) -> Int[Tensor, "K"]:
        """Return the K tokens of the largest share, the largest first. Raises ValueError unless 1 <= K <= N."""
        self.check_triggers(K)
        return self.unigram.argsort(descending=True, stable=True)[:K]

    def check_triggers(self, K: int) -> None:
        """Raises ValueError unless 1 <= K <= N."""
        if not 1 <= K <= self.N:
            raise ValueError(f"K = {K!r}: must be at least 1 and at most N = {self.N}")

    def encode(self, text: str) -> Int[Tensor, "length"]:
        """Return the characters' numbers. Raises ValueError for a text of fewer than two, and for a character that the
        table has not.
        """
        if len(text) < 2:
            raise ValueError(f"text = {text!r}: must have at least 2 characters, so that one comes before another")
        unknown = [character for character in text if character not in self.characters]
        if unknown:
            raise ValueError(f"text: unknown token {unknown[0]!r}; the table has {self.characters!r}")
        return torch.tensor([self.characters.index(character) for character in text])

    def decode(self, tokens: Int[Tensor, "length"] | Iterable[int]) -> str:
        """Return the text of these numbers. Raises ValueError for a number that is no token's."""
        numbers = [int(token) for token in tokens]
        check_range(tokens=(torch.tensor(numbers, dtype=torch.long), self.N))
        return "".join(self.characters[number] for number in numbers)


class TriggerSequences(NamedTuple):
    """A batch of the trigger-bigram task.

    ``tokens`` has one more column than positions: position t reads tokens[:, t] and is to say tokens[:, t + 1].
    ``known`` says where that is determined by the context: a trigger that has occurred before. ``triggers`` and
    ``outputs`` are the sequence's own pairs.
    """

    tokens: Int[Tensor, "batch length_and_one"]
    known: Bool[Tensor, "batch length"]
    triggers: Int[Tensor, "batch K"]
    outputs: Int[Tensor, "batch K"]


def trigger_sequences(
    batch: int,
    length: int,
    table: Bigrams,
    *,
    K: int = 5,
    fixed: bool = True,
    noise: float = 0.0,
    generator: torch.Generator | int = 0,
) -> TriggerSequences:
    """Draw sequences of the trigger-bigram task. Outputs are uniform over the N tokens.

    All random numbers are drawn at once; what is left is a loop over the positions, with one binary search for the
    whole batch in each.

    Raises ValueError for batch < 1, length < 2, unless 1 <= K <= N, and unless 0 <= noise < 1.

    ``batch``: how many sequences.
    ``length``: how many positions each has; one token more is drawn, the last one's target.
    ``table``: the tokens and their bigrams.
    ``K``: how many triggers.
    ``fixed``: triggers are the K most frequent tokens, or else K draws from pi_u without replacement, anew for each
        sequence.
    ``noise``: with this probability a trigger is followed by the token N, which the table has not, and which pi_u
        follows (this last rule is ours).
    ``generator``: a seed, or a ``torch.Generator``, whose device is then the device of the sequences.
    """
    at_least(batch=(batch, 1), length=(length, 2))
    if not 0 <= noise < 1:
        raise ValueError(f"noise = {noise!r}: must be at least 0 and below 1")
    table.check_triggers(K)
    generator = as_generator(generator)
    device, N = generator.device, table.N

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=device, dtype=torch.float64)

    if fixed:
        triggers = table.most_frequent(K).to(device).repeat(batch, 1)
    else:  # the K largest of log pi_u + Gumbel noise are K draws without replacement
        triggers = (table.unigram.log().to(device) - (-uniform(batch, N).log()).log()).topk(K, dim=1).indices
    outputs = (uniform(batch, K) * N).long()
    # what follows a token here; -1: the table says
    after = torch.full((batch, N + 1), -1, device=device).scatter_(1, triggers, outputs)

    # Row i of the cumulative table, shifted by i: one sorted list, in which the place of i + u is i (N + 1) + a draw
    # from row i
    rows = torch.cat([table.bigram, table.unigram[None]]).to(device)  # the noise token is followed by pi_u
    cumulative = rows.cumsum(1)
    cumulative = cumulative / cumulative[:, -1:]
    ladder = (cumulative + torch.arange(N + 1, device=device)[:, None]).flatten()

    u = uniform(length + 1, batch)
    noisy = uniform(length + 1, batch) < noise
    token = torch.searchsorted(ladder, N + u[0], right=True) % N
    tokens = [token]
    for t in range(1, length + 1):
        drawn = torch.searchsorted(ladder, token + u[t], right=True) - N * token
        forced = after.gather(1, token[:, None])[:, 0]
        if noise:
            forced = forced.where(~noisy[t] | (forced < 0), N)
        token = drawn.where(forced < 0, forced)
        tokens.append(token)
    drawn = torch.stack(tokens, dim=1)
    return TriggerSequences(drawn, seen_before(drawn[:, :-1], triggers), triggers, outputs)


def seen_before(tokens: Int[Tensor, "batch length"], triggers: Int[Tensor, "batch K"]) -> Bool[Tensor, "batch length"]:
    """Return where a trigger stands that has stood before, so that its output is known from the context.

    Entry (b, t) is 1{z_t = q_k for some k, and z_s = q_k for some s < t} in sequence b, which has its own triggers.
    """
    here = tokens[:, :, None] == triggers[:, None]  # (batch, length, K)
    return (here & (here.cumsum(1) > 1)).any(-1)


class Chains(NamedTuple):
    """Sequences of Markov chains, one column more than positions, and the transition matrix of each."""

    tokens: Int[Tensor, "batch length_and_one"]
    transitions: Float[Tensor, "batch k k"]


def markov_chains(batch: int, length: int, k: int, *, generator: torch.Generator | int = 0) -> Chains:
    """Sequences over k tokens, each from a Markov chain of its own: rows uniform on the simplex (Dirichlet(1)), started
    at stationarity.

    Source: Edelman, Edelman, Goel, Malach, Tsilivis (2024), arXiv:2402.11004. Raises ValueError for batch < 1, length <
    2, k < 2.

    ``batch``: how many sequences.
    ``length``: how many positions each has; one token more is drawn, the last one's target.
    ``k``: how many tokens there are.
    ``generator``: of chains and tokens, or its seed.
    """
    at_least(batch=(batch, 1), length=(length, 2), k=(k, 2))
    generator = as_generator(generator)
    exponentials = (
        -torch.rand(batch, k, k, generator=generator, device=generator.device, dtype=torch.float64)
        .clamp_min(1e-12)
        .log()
    )
    transitions = exponentials / exponentials.sum(-1, keepdim=True)
    stationary = torch.linalg.matrix_power(transitions, 1024)[:, :1]
    cumulative = torch.cat([transitions, stationary], dim=1).cumsum(-1)
    u = torch.rand(length + 1, batch, 1, generator=generator, device=generator.device, dtype=torch.float64)
    rows = torch.arange(batch, device=generator.device)
    token, tokens = torch.full_like(rows, k), []
    for t in range(length + 1):
        token = (u[t] > cumulative[rows, token, :-1]).sum(1)
        tokens.append(token)
    return Chains(torch.stack(tokens, dim=1), transitions)


class Recurrences(NamedTuple):
    """Sequences whose last token has occurred once before, and the token that followed it there."""

    tokens: Int[Tensor, "batch length"]
    targets: Int[Tensor, "batch"]


def recurrences(batch: int, length: int, N: int, *, generator: torch.Generator | int = 0) -> Recurrences:
    """z_T = q, and (q, y) once before, at a uniform place; all other tokens, and y, uniform over those other than q.

    The setting of the theorem of Bietti et al. (2023), section 5; there N >> T makes a third q unlikely, here there is
    none.

    Raises ValueError for batch < 1, length < 3, N < 2.

    ``batch``: how many sequences.
    ``length``: T, how many tokens each has.
    ``N``: how many tokens there are.
    ``generator``: of all that is random, or its seed.
    """
    at_least(batch=(batch, 1), length=(length, 3), N=(N, 2))
    generator = as_generator(generator)
    device = generator.device
    q = torch.randint(N, (batch, 1), generator=generator, device=device)
    others = torch.randint(N - 1, (batch, length), generator=generator, device=device)
    tokens = others + (others >= q)  # skips q
    place = torch.randint(length - 2, (batch, 1), generator=generator, device=device)
    targets = tokens.gather(1, place + 1)[:, 0]
    return Recurrences(tokens.scatter(1, place, q).scatter(1, torch.full_like(q, length - 1), q), targets)
