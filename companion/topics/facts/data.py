"""A world of facts to be recalled: subjects, relations, and an answer for each pair, hidden among noise words (Nichani,
Lee, Bietti 2024, arXiv:2412.06538, section 4).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range


@dataclass(frozen=True)
class World:
    """Which answer each subject has in each relation. Relation r's answers are r D .. r D + D - 1, D = ``answers``.

    Words are numbered: subjects, then relations, then ``noise`` words, and the end-of-sentence word last.
    """

    table: Int[Tensor, "subjects relations"]
    answers: int
    noise: int

    @property
    def subjects(self) -> int:
        return self.table.shape[0]

    @property
    def relations(self) -> int:
        return self.table.shape[1]

    @property
    def words(self) -> int:
        """Return the size of the vocabulary."""
        return self.subjects + self.relations + self.noise + 1

    @property
    def all_answers(self) -> int:
        """Return how many answers there are, over all relations."""
        return self.relations * self.answers

    @property
    def end(self) -> int:
        """Return the word that every sentence ends with."""
        return self.words - 1


def random_world(
    subjects: int, relations: int, answers: int, *, noise: int = 16, generator: torch.Generator | int = 0
) -> World:
    """Random facts: in each relation the subjects share its ``answers`` answers evenly, in an order of its own.

    So whoever knows the relation alone can do no better than guess one of D (one of ceil(S / D) / S is right, exactly 1
    / D if D divides S). The paper draws answers independently, which leaves some of them more frequent.

    ``subjects``, ``relations``, ``answers``, ``noise``: S, R, D, and how many noise words there are.
    ``generator``: of the orders, or its seed.

    Raises ValueError for a number below 1, or more answers to a relation than subjects.
    """
    at_least(subjects=(subjects, 1), relations=(relations, 1), answers=(answers, 1), noise=(noise, 1))
    if answers > subjects:
        raise ValueError(f"answers = {answers!r}: must be at most subjects = {subjects}")
    generator = as_generator(generator)
    orders = torch.rand(relations, subjects, generator=generator, device=generator.device).argsort(1)
    return World(
        (orders % answers + answers * torch.arange(relations, device=generator.device)[:, None]).mT.contiguous(),
        answers,
        noise,
    )


class Sentences(NamedTuple):
    """Sentences with the subject and the relation that they name, and the answer that is due."""

    tokens: Int[Tensor, "batch length"]
    subject: Int[Tensor, "batch"]
    relation: Int[Tensor, "batch"]
    answer: Int[Tensor, "batch"]


def sentences(
    batch: int,
    facts: World,
    length: int,
    *,
    subjects: int | None = None,
    relations: int | None = None,
    generator: torch.Generator | int = 0,
) -> Sentences:
    """Draw one subject and one relation at two random places among noise words; the last word is the end of the
    sentence.

    ``batch``, ``facts``, ``length``: how many sentences, about which world, and of how many words.
    ``subjects``, ``relations``: subject and relation are uniform among so many first ones; all, unless told.
    ``generator``: of all that is random, or its seed.

    Raises ValueError for batch < 1, length < 3, or numbers beyond the world's.
    """
    subjects, relations = subjects or facts.subjects, relations or facts.relations
    at_least(batch=(batch, 1))
    for name, value, most in (("subjects", subjects, facts.subjects), ("relations", relations, facts.relations)):
        if not 1 <= value <= most:
            raise ValueError(f"{name} = {value!r}: must be 1 to {most}, as the world has {most}")
    generator = as_generator(generator)
    subject, relation = (
        torch.randint(most, (batch,), generator=generator, device=generator.device) for most in (subjects, relations)
    )
    return _told(facts, subject, relation, length, generator)


def every_fact(facts: World, length: int, *, rounds: int = 1, generator: torch.Generator | int = 0) -> Sentences:
    """Sentences about each of the S R facts, places and noise words at random: what 'stored exactly' is checked on.

    ``facts``, ``length``: the world, and how many words a sentence has.
    ``rounds``: how many sentences each fact has; after a round comes the next.
    ``generator``: of places and noise words, or its seed.

    Raises ValueError for rounds < 1 or length < 3.
    """
    at_least(rounds=(rounds, 1))
    generator = as_generator(generator)
    S, R = facts.subjects, facts.relations
    pairs = torch.cartesian_prod(torch.arange(S), torch.arange(R)).repeat(rounds, 1).to(generator.device)
    return _told(facts, *pairs.unbind(1), length, generator)


def counts(tokens: Int[Tensor, "batch length"], words: int) -> Float[Tensor, "batch words"]:
    """Count how often each word occurs in each sentence: entry (b, w) is sum_t 1{z_bt = w}, in float32.

    What the model of Nichani, Lee, Bietti (2024), section 5, reads. Raises ValueError for a word that is not 0 to
    words - 1.
    """
    check_range(tokens=(tokens, words))
    return torch.zeros(len(tokens), words, device=tokens.device).scatter_add_(
        1, tokens, torch.ones_like(tokens, dtype=torch.float32)
    )


def _told(facts: World, subject: Tensor, relation: Tensor, length: int, generator: torch.Generator) -> Sentences:
    """A sentence for each pair: its two words at random places among noise words."""
    at_least(length=(length, 3))
    shape, device = (len(subject), length), generator.device
    tokens = torch.randint(facts.subjects + facts.relations, facts.end, shape, generator=generator, device=device)
    places = torch.rand(len(subject), length - 1, generator=generator, device=device).topk(2, largest=False).indices
    tokens.scatter_(1, places, torch.stack([subject, facts.subjects + relation], dim=1))
    tokens[:, -1] = facts.end
    return Sentences(tokens, subject, relation, facts.table.to(device)[subject, relation])
