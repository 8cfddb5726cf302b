"""What lesson 15 reads to a language model: sentences with an indirect object, four to look at, facts of three
relations, paragraphs of the lessons before, and questions whose answers stand in the text, or nowhere; and random
tokens that are said twice, for a small model to learn from.

Capitals are in `companion.topics.facts.examined`, as the model of lesson 07 is asked for them, too.
"""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least

NAMES = "Kate Peter Anna John Mary Tom Sarah Paul Emma James Lucy Mark Alice David Jane Henry"
PLACES = "school park store garden office station"
THINGS = "ball book key cup ring letter"
WORDINGS = {  # names, places, things, sentences; in each wording a sentence has as many tokens as any other
    "lesson": (NAMES, PLACES, THINGS, ("When {} and {} went to the {}, {} gave a {} to",)),
    "other": (
        "Laura Simon Rachel Daniel Martin Lisa Robert George Susan Frank Linda Brian Karen Kevin Julia Eric",
        "library kitchen hospital museum beach church hotel market forest farm",
        "watch picture coat map drink bottle cake knife coin bag",
        (
            "While {} and {} were at the {}, {} handed a {} to",
            "After {} and {} left the old {}, {} sent a {} to",
            "Since {} and {} worked near the {}, {} passed a {} to",
            "Before {} and {} walked into the {}, {} showed a {} to",
        ),
    ),
}
MOODS = ("negative", "positive")
REMARKS = (  # one for each of the moods
    "I was bored from the first page to the last, The soup was cold and the waiter was rude, It broke on the second "
    "day, A waste of time and money, The room was dirty and loud, The worst journey of my life, She was sorry that she "
    "came, We left before the end",
    "A film that I shall see again, Our guide was kind and funny, It still works after ten years, The bread is fresh "
    "every morning, I slept like a child, Everybody sang on the way home, The garden is full of light, We shall come "
    "back next year",
)
INVENTED = ("Zu Gel Mar Lo Ve Dra Kas Bor", "bro no la vi ste du ru mi", "wka via nia land stan ria")  # countries
HOPS = ("one hop", "one hop of six sentences", "two hops", "two hops, the first one told")
SENTENCES = (  # for the map of what heads look at; in the first a name comes again, in the second a whole phrase
    "When Kate and Peter went to the school, Kate gave a ball to",
    "A small grey cat slept on the warm stone, and a small grey cat slept on the warm",
    "The capital of Norway is",
    "The dogs that ran behind the old red car were very",
)

LANGUAGES = (
    "France French, Germany German, Italy Italian, Spain Spanish, Japan Japanese, Russia Russian, China Chinese, "
    "Norway Norwegian, Portugal Portuguese, Greece Greek, Sweden Swedish, Poland Polish, Turkey Turkish, "
    "Denmark Danish, Finland Finnish, Thailand Thai, Hungary Hungarian, Israel Hebrew"
)
CURRENCIES = (
    "Germany euro, Canada dollar, Britain pound, France euro, Australia dollar, England pound, Italy euro, "
    "Jamaica dollar, Scotland pound, Ireland euro, Singapore dollar, Switzerland franc, Spain euro, Austria euro"
)
SYMBOLS = (
    "hydrogen H, lithium Li, nitrogen N, oxygen O, sodium Na, silicon Si, chlorine Cl, potassium K, iron Fe, "
    "copper Cu, zinc Zn, silver Ag, tin Sn, gold Au, mercury Hg, uranium U, nickel Ni, cobalt Co"
)


def known_facts(facts: str) -> dict[str, str]:
    """Return facts that are written as "subject answer, subject answer", by subject."""
    return {subject: answer for subject, _, answer in (fact.partition(" ") for fact in facts.split(", "))}


RELATIONS = {  # each with how it is asked and its facts; all answers are one token
    "language": ("People in {} speak", known_facts(LANGUAGES)),
    "currency": ("The currency of {} is the", known_facts(CURRENCIES)),
    "symbol": ("The chemical symbol of {} is", known_facts(SYMBOLS)),
}


class IndirectObjects(NamedTuple):
    """Sentences that end before the name of who is given something, after Wang et al. (2022), arXiv:2211.00593.

    ``texts``: two names, the second of which comes again as the one who gives; the ``others`` have a third name there.
    ``receivers``, ``givers``: the name that is due, and the one that came again.
    """

    texts: list[str]
    others: list[str]
    receivers: list[str]
    givers: list[str]


class Question(NamedTuple):
    """A text, the words that may follow it, and which of them is right."""

    text: str
    choices: Sequence[str]
    right: int


def indirect_objects(count: int, *, wording: str = "lesson", generator: torch.Generator | int = 0) -> IndirectObjects:
    """Draw sentences such as 'When Kate and Peter went to the school, Kate gave a ball to'. In every other one the
    giver comes first, so that no place tells the names apart.

    ``wording``: one of `WORDINGS`, which have no name, place, thing or sentence in common; where it has several
        sentences, they take turns.

    Raises ValueError for another wording, and unless ``count`` is at least 1.
    """
    if wording not in WORDINGS:
        raise ValueError(f"wording = {wording!r}: must be one of {', '.join(WORDINGS)}")
    at_least(count=(count, 1))
    names, places, things, sentences = WORDINGS[wording]
    drawn, rows = _drawn(generator), []
    for row in range(count):
        giver, receiver, third, *_ = drawn(names.split())
        place, thing = drawn(places.split())[0], drawn(things.split())[0]
        first, second = (receiver, giver) if row % 2 else (giver, receiver)
        sentence = sentences[row // 2 % len(sentences)]
        text, other = (sentence.format(first, second, place, name, thing) for name in (giver, third))
        rows.append((text, other, receiver, giver))
    return IndirectObjects(*map(list, zip(*rows, strict=True)))


def hop_questions(kind: str, count: int, *, generator: torch.Generator | int = 0) -> list[Question]:
    """Draw questions about people whom nobody knows, each with three answers: 'The mother of John is Anna. ... The
    mother of John is', or who teaches somebody's mother.

    ``kind``: one of `HOPS`; the second has the sentences of two hops, so that length can be told from hops; the last
        tells whose mother it is before it asks.

    Raises ValueError for another kind, and unless ``count`` is at least 1.
    """
    if kind not in HOPS:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(HOPS)}")
    at_least(count=(count, 1))
    drawn, questions = _drawn(generator), []
    for row in range(count):
        names = drawn(NAMES.split())
        children, mothers, teachers = names[:3], names[3:6], names[6:9]
        asked = row % 3
        facts = [f"The mother of {child} is {mother}." for child, mother in zip(children, mothers, strict=True)]
        if kind == HOPS[0]:
            questions.append(Question(" ".join([*facts, facts[asked].rpartition(" ")[0]]), mothers, asked))
            continue
        told = [facts[asked]] if kind == HOPS[3] else []
        facts += drawn([f"The teacher of {a} is {b}." for a, b in zip(mothers, teachers, strict=True)])
        whose = mothers[asked] if kind == HOPS[1] else f"the mother of {children[asked]}"
        asks = f"The teacher of {whose} is"
        questions.append(Question(" ".join([*facts, *told, asks]), teachers, asked))
    return questions


def mood_questions(count: int, *, generator: torch.Generator | int = 0) -> list[Question]:
    """Draw remarks to be called positive or negative, after six that have been, three of each. Raises ValueError unless
    ``count`` is at least 1.
    """
    at_least(count=(count, 1))
    drawn, questions = _drawn(generator), []
    for row in range(count):
        by_mood = [drawn(each.split(", ")) for each in REMARKS]
        told = drawn([f"{remark}: {mood}" for each, mood in zip(by_mood, MOODS, strict=True) for remark in each[:3]])
        questions.append(Question("\n".join([*told, f"{by_mood[row % 2][3]}:"]), MOODS, row % 2))
    return questions


def invented_countries(count: int, *, generator: torch.Generator | int = 0) -> list[str]:
    """Draw names such as Zubrowka, no two alike. Raises ValueError unless ``count`` is 1 to as many as there are."""
    names = ["".join(parts) for parts in product(*map(str.split, INVENTED))]
    if not 1 <= count <= len(names):
        raise ValueError(f"count = {count}: must be 1 to {len(names)}, as there are no more names")
    return _drawn(generator)(names)[:count]


def _drawn(generator: torch.Generator | int) -> Callable[[Sequence[str]], list[str]]:
    """A function that puts what it is given into a random order."""
    generator = as_generator(generator)

    def drawn(each: Sequence[str]) -> list[str]:
        return [each[i] for i in torch.randperm(len(each), generator=generator, device=generator.device)]

    return drawn


def paragraphs() -> list[str]:
    """Return 93 paragraphs of lessons 00 to 14, as these once were: a text that stays the same."""
    return Path(__file__).with_name("prose.txt").read_text(encoding="utf-8").splitlines()


def said_again(
    batch: int, length: int, vocabulary: int, *, again: bool = True, generator: torch.Generator
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Draw random tokens that are said twice; return them, and which belong to the second saying.

    A saying is half to three quarters of the text, another share in every text, so that no distance tells where the
    first one began; within it all tokens differ.

    ``batch``, ``length``, ``vocabulary``: how many texts, of how many tokens, out of how many.
    ``again``: whether the second saying is the first one's; else its tokens are drawn anew.
    ``generator``: the source of all draws.

    Raises ValueError for fewer tokens in the ``vocabulary`` than the longest saying has.
    """
    at_least(vocabulary=(vocabulary, 3 * length // 4))
    on = {"generator": generator, "device": generator.device}
    period = torch.randint(length // 2, 3 * length // 4 + 1, (batch, 1), **on)
    first, anew = (torch.rand(batch, vocabulary, **on).argsort(1) for _ in range(2))
    place = torch.arange(length, device=generator.device).expand(batch, -1)
    second = place >= period
    said = torch.where(second & (not again), anew.gather(1, place % period), first.gather(1, place % period))
    return said, second
