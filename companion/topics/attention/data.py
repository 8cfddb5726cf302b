"""Data for the first lesson: words and their numbers, sentences that repeat themselves, and a rule about a few of many
bits.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least


class Vocabulary:
    """Words, numbered in the order in which they are first seen.

    >>> vocabulary = Vocabulary("the cat saw the dog".split())
    >>> vocabulary.encode("the dog saw".split())
    tensor([0, 3, 2])
    """

    def __init__(self, words: Iterable[str]):
        self.words = list(dict.fromkeys(words))
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Sequence[str]) -> Int[Tensor, "length"]:
        """Return the words' numbers. Raises ValueError for a sequence of fewer than two, and for a word that is not in
        the vocabulary.
        """
        if len(words) < 2:
            raise ValueError(f"words = {list(words)!r}: must be at least 2, so that one comes before another")
        unknown = [word for word in words if word not in self.numbers]
        if unknown:
            raise ValueError(
                f"words: unknown token {unknown[0]!r}; the vocabulary has {', '.join(map(repr, self.words))}"
            )
        return torch.tensor([self.numbers[word] for word in words])

    def decode(self, numbers: Int[Tensor, "length"]) -> list[str]:
        """Return the words with these numbers."""
        return [self.words[number] for number in numbers.tolist()]


class MultiHopText(NamedTuple):
    """A text of facts that ends in a name, and what one, two, three, .. look-ups from there give."""

    words: list[str]
    answers: list[str]


def shuffled_facts(names: Sequence[str], *, hops: int, generator: torch.Generator | int = 0) -> MultiHopText:
    """Draw a text that says "Ann likes Bob ." for every name, in random order, and ends in a name.

    Whom each likes is a random cycle through all names, so that one, two, .. ``hops`` look-ups give different people,
    at distances that differ from text to text.

    Raises ValueError for names that are not all different, hops < 1, or fewer names than hops + 1.
    """
    at_least(hops=(hops, 1))
    if len(set(names)) < len(names) or len(names) <= hops:
        raise ValueError(f"names = {list(names)!r}: must be different, and at least hops + 1 = {hops + 1}")
    generator = as_generator(generator)
    cycle = [names[i] for i in torch.randperm(len(names), generator=generator, device=generator.device).tolist()]
    likes = {name: cycle[(place + 1) % len(cycle)] for place, name in enumerate(cycle)}
    told = [names[i] for i in torch.randperm(len(names), generator=generator, device=generator.device).tolist()]
    words = ["<s>", *(word for name in told for word in (name, "likes", likes[name], ".")), cycle[0]]
    return MultiHopText(words, cycle[1 : hops + 1])


class FamilyText(NamedTuple):
    """A text of facts that ends in a question, and the answers to its two look-ups."""

    text: str
    mother: str
    profession: str


def families(generator: torch.Generator | int = 0) -> FamilyText:
    """Draw "The mother of John is Helen ." and "Helen is a doctor ." for six families, in random order, and ask for the
    profession of John's mother: a look-up of a look-up (Hsu and Moitra 2024).
    """
    generator = as_generator(generator)
    children = ["John", "Charlotte", "Max", "Nina", "Otto", "Pia"]
    women = ["Helen", "Eve", "Ada", "Iris", "Rose", "Vera"]
    work = ["doctor", "teacher", "baker", "pilot", "judge", "nurse"]

    def shuffled(items: list[str]) -> list[str]:
        return [items[i] for i in torch.randperm(len(items), generator=generator, device=generator.device).tolist()]

    mothers = dict(zip(children, shuffled(women), strict=True))
    does = dict(zip(women, shuffled(work), strict=True))
    facts = [f"The mother of {child} is {woman} ." for child, woman in mothers.items()]
    facts += [f"{woman} is a {job} ." for woman, job in does.items()]
    told = " ".join(shuffled(facts))
    return FamilyText(f"{told} What is the profession of John 's mother ?", mothers["John"], does[mothers["John"]])


class Repetitions(NamedTuple):
    """Token sequences, and from which position on each token follows from those before it."""

    tokens: Int[Tensor, "batch length"]
    periods: Int[Tensor, "batch"]

    @property
    def settled(self) -> Bool[Tensor, "batch later"]:
        """Return which of the tokens 1, 2, .. follow from those before: those from the first repetition on."""
        return torch.arange(1, self.tokens.shape[1], device=self.tokens.device) >= self.periods[:, None]


def repetitions(
    batch: int,
    length: int,
    vocabulary: int,
    *,
    shortest: int = 4,
    longest: int = 10,
    generator: torch.Generator | int = 0,
) -> Repetitions:
    """Draw a phrase of different tokens, said over and over: t follows from t - period, and the period is another in
    each sequence.

    The period is uniform over shortest .. longest, the phrase uniform over the sequences of that many different tokens.
    No single distance back is right for all sequences, so that a head that looks at a fixed distance does not solve the
    task.

    Raises ValueError for batch < 1, length < 2, vocabulary < longest, or unless 2 <= shortest <= longest.

    ``batch``: how many sequences.
    ``length``: how many tokens each has; the last phrase may be cut.
    ``vocabulary``: how many tokens there are.
    ``shortest``, ``longest``: the least and the largest period.
    ``generator``: of all that is random, or its seed.
    """
    at_least(batch=(batch, 1), length=(length, 2), vocabulary=(vocabulary, longest), shortest=(shortest, 2))
    if longest < shortest:
        raise ValueError(f"longest = {longest!r}: must be at least shortest = {shortest}")
    generator = as_generator(generator)
    phrases = torch.rand(batch, vocabulary, generator=generator, device=generator.device).argsort(dim=1)
    periods = torch.randint(shortest, longest + 1, (batch,), generator=generator, device=generator.device)
    places = torch.arange(length, device=generator.device) % periods[:, None]
    return Repetitions(phrases.gather(1, places), periods)


class Conjunctions(NamedTuple):
    """Bits (+1 and -1) and the label, 1 where all bits of the rule are +1, else 0."""

    xs: Float[Tensor, "batch length"]
    ys: Float[Tensor, "batch"]


def conjunctions(
    batch: int, length: int, support: int = 3, *, which: torch.Generator | int = 0, generator: torch.Generator | int = 0
) -> Conjunctions:
    """Draw many bits, and with them the AND of some.

    Every bit is +1 with probability 2^(-1/support), independently, so that the label is 1 half of the time. A rule of
    this kind is what Edelman, Goel, Kakade, Zhang (2022), arXiv:2110.10090, section 5, let a single head of attention
    learn; the bias of the bits is ours.

    Raises ValueError for batch < 1, length < 2, or unless 1 <= support <= length.

    ``batch``: how many samples.
    ``length``: how many bits each has.
    ``support``: how many of them the rule is about.
    ``which``: decides which ones, a generator or its seed.
    ``generator``: draws the samples, or its seed.
    """
    at_least(batch=(batch, 1), length=(length, 2), support=(support, 1))
    if support > length:
        raise ValueError(f"support = {support!r}: must be at most length = {length}")
    generator = as_generator(generator)
    chosen = torch.randperm(length, generator=as_generator(which))[:support].to(generator.device)
    ones = torch.rand(batch, length, generator=generator, device=generator.device) < 2 ** (-1 / support)
    return Conjunctions(2 * ones.float() - 1, ones[:, chosen].all(dim=1).float())
