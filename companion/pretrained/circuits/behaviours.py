"""Behaviours: what a language model is asked, in pairs of prompts of which the second one is corrupted.

A behaviour is a function that draws one `Pair` from a ``random.Random``: the clean prompt; a corrupted one with as many
tokens, which differs in what decides the answer; a right continuation of the clean one, and a wrong one. Of each
continuation the first token counts. Texts are for models with a tokenizer, lists of tokens for those without.

>>> def colours(random):
...     this, that = random.sample(["grass green", "snow white", "blood red", "coal black"], 2)
...     (thing, right), (other, wrong) = this.split(), that.split()
...     return f"Everybody knows that {thing} is", f"Everybody knows that {other} is", f" {right}", f" {wrong}"

`BEHAVIOURS` are those in the box, each of which SmolLM2 shows. The two answers change their roles from pair to pair, so
that a part which says the same after every prompt earns nothing.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from companion.pretrained.facts import COUNTRIES, FIRST_CITIES
from companion.topics.language.data import NAMES, PLACES, SYMBOLS, THINGS, known_facts

Words = str | Sequence[int]
TOGETHER = (  # words of one token, which have nothing to do with each other
    "apple river stone chair music cloud bridge garden window market forest doctor mountain winter paper silver engine "
    "castle planet camera button valley rocket island dragon circle shadow mirror bottle ticket pencil basket hammer"
)
COUNTED = "dog cat boy girl car house tree bird teacher key book friend king letter song horse"  # plurals end in s
WHERE = "near the gate, behind the door, beside the river, in the picture, on the hill, under the bridge"
LASTED = "war siege reign trade journey dispute peace strike drought voyage"
OPPOSITES = (
    "hot cold, big small, up down, left right, black white, old young, fast slow, rich poor, high low, day night, "
    "good bad, strong weak, long short, early late, hard soft, true false, male female, wet dry, full empty, "
    "deep shallow, clean dirty, thick thin"
)
BRACKETED = "book house letter picture car ring road garden"
BESIDE = "which nobody had seen, a very old one, which came too late, the first of many, which cost a lot"
# of one token each, in most tokenizers
KNOWN_AS_ONE = (
    "France Germany Italy Spain Japan Russia China Norway Portugal Austria Greece Sweden Poland Cuba Iran England "
    "Egypt Ireland Hungary Peru Kenya Finland Denmark Belgium Netherlands Switzerland Bulgaria India Iraq Canada Chile"
)
ONE_TOKEN = {country: COUNTRIES[country] for country in KNOWN_AS_ONE.split()}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


class Pair(NamedTuple):
    """Two prompts of as many tokens; how the ``clean`` one goes on rightly, and how wrongly."""

    clean: Words
    corrupted: Words
    right: Words
    wrong: Words


Behaviour = Callable[[Random], Pair | tuple[Words, Words, Words, Words]]


def words_twice(random: Random) -> Pair:
    """Eight words, and again the first of them; corrupted, another word stands before the one that is due."""
    words, due = random.sample(TOGETHER.split(), 8), random.randint(4, 5)
    other = due - 3
    swapped = list(words)
    swapped[due - 1], swapped[other - 1] = words[other - 1], words[due - 1]
    clean, corrupted = (f"Words: {' '.join([*each, *words[:due]])}" for each in (words, swapped))
    return Pair(clean, corrupted, f" {words[due]}", f" {words[other]}")


def indirect_object(random: Random) -> Pair:
    """'When Kate and Peter went to the school, Kate gave a ball to', after Wang et al. (2022), arXiv:2211.00593, either
    name first; corrupted, a third name stands in the giver's second place.
    """
    receiver, giver, third = random.sample(NAMES.split(), 3)
    first, second = random.sample([receiver, giver], 2)
    place, thing = random.choice(PLACES.split()), random.choice(THINGS.split())
    clean, corrupted = (
        f"When {first} and {second} went to the {place}, {name} gave a {thing} to" for name in (giver, third)
    )
    return Pair(clean, corrupted, f" {receiver}", f" {giver}")


def larger_year(random: Random) -> Pair:
    """'The war lasted from the year 1743 to the year 17', where a larger digit is due, after Hanna et al. (2023),
    arXiv:2305.00586; corrupted, the first year is so early that the smaller digit would do, too.
    """
    decade, year, lasted = random.randint(3, 7), random.randint(1, 8), random.choice(LASTED.split())
    clean, corrupted = (f"The {lasted} lasted from the year 17{each}{year} to the year 17" for each in (decade, 0))
    return Pair(clean, corrupted, str(decade + 1), str(decade - 1))


def agreement(random: Random) -> Pair:
    """'The dogs near the gate': are, or is; corrupted, the subject has the other number."""
    noun, where = random.choice(COUNTED.split()), random.choice(WHERE.split(", "))
    return _either(random, (f"The {noun} {where}", " is"), (f"The {noun}s {where}", " are"))


def capital(random: Random) -> Pair:
    """'The capital of Norway is'; corrupted, another country's."""
    return _two_of(random, ONE_TOKEN, "The capital of {} is")


def country_or_the(random: Random) -> Pair:
    """'The capital city Madrid in' goes on with Spain, and 'He moved from Madrid in' with *the*; each corrupts the
    other.
    """
    city, country = random.choice(list(FIRST_CITIES.items()))
    return _either(random, (f"The capital city {city} in", f" {country}"), (f"He moved from {city} in", " the"))


def opposite(random: Random) -> Pair:
    """'The opposite of happy is sad. The opposite of hot is'; corrupted, that of another word is asked for."""
    return _two_of(random, known_facts(OPPOSITES), "The opposite of happy is sad. The opposite of {} is")


def symbol(random: Random) -> Pair:
    """'The chemical symbol of gold is'; corrupted, another element's."""
    return _two_of(random, known_facts(SYMBOLS), "The chemical symbol of {} is")


def closing_bracket(random: Random) -> Pair:
    """'The book (a very old one' goes on with a bracket, 'The book, a very old one' with a comma."""
    thing, words = random.choice(BRACKETED.split()), random.choice(BESIDE.split(", "))
    return _either(random, (f"The {thing} ({words}", ")"), (f"The {thing}, {words}", ","))


def days_in_a_row(random: Random) -> Pair:
    """'Monday, Tuesday, Wednesday,'; corrupted, three other days in a row."""
    days, start, later = DAYS.split(), random.randrange(7), random.randint(2, 5)
    clean, corrupted = (", ".join(days[(first + i) % 7] for i in range(3)) + "," for first in (start, start + later))
    right, wrong = (days[(first + 3) % 7] for first in (start, start + later))
    return Pair(clean, corrupted, f" {right}", f" {wrong}")


def _either(random: Random, *both: tuple[str, str]) -> Pair:
    """Two prompts with their answers, of which one corrupts the other."""
    (clean, right), (corrupted, wrong) = random.sample(both, 2)
    return Pair(clean, corrupted, right, wrong)


def _two_of(random: Random, facts: dict[str, str], prompt: str) -> Pair:
    """What is asked of one subject, and of another."""
    (this, right), (that, wrong) = random.sample(list(facts.items()), 2)
    return Pair(prompt.format(this), prompt.format(that), f" {right}", f" {wrong}")


BEHAVIOURS: dict[str, Behaviour] = {
    "said twice": words_twice,
    "indirect objects": indirect_object,
    "larger year": larger_year,
    "agreement": agreement,
    "capitals": capital,
    "country or the": country_or_the,
    "opposites": opposite,
    "symbols": symbol,
    "closing bracket": closing_bracket,
    "days in a row": days_in_a_row,
}
