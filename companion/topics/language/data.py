"""What lesson 15 reads to a language model: sentences with an indirect object, and four to look at.

Capitals are in `companion.topics.facts.examined`, as the model of lesson 07 is asked for them, too.
"""

from typing import NamedTuple

import torch

from companion.core.arguments import as_generator, at_least

NAMES = "Kate Peter Anna John Mary Tom Sarah Paul Emma James Lucy Mark Alice David Jane Henry"
PLACES = "school park store garden office station"
THINGS = "ball book key cup ring letter"
SENTENCES = (  # for the map of what heads look at; in the first a name comes again, in the second a whole phrase
    "When Kate and Peter went to the school, Kate gave a ball to",
    "A small grey cat slept on the warm stone, and a small grey cat slept on the warm",
    "The capital of Norway is",
    "The dogs that ran behind the old red car were very",
)


class IndirectObjects(NamedTuple):
    """Sentences that end before the name of who is given something, after Wang et al. (2022), arXiv:2211.00593.

    ``texts``: two names, the second of which comes again as the one who gives; the ``others`` have a third name there.
    ``receivers``, ``givers``: the name that is due, and the one that came again.
    """

    texts: list[str]
    others: list[str]
    receivers: list[str]
    givers: list[str]


def indirect_objects(count: int, *, generator: torch.Generator | int = 0) -> IndirectObjects:
    """Draw sentences such as 'When Kate and Peter went to the school, Kate gave a ball to'. In every other one the
    giver comes first, so that no place tells the names apart.

    Raises ValueError unless ``count`` is at least 1.
    """
    at_least(count=(count, 1))
    generator = as_generator(generator)

    def drawn(words: str, size: int = 1) -> list[str]:
        each = words.split()
        return [each[i] for i in torch.randperm(len(each), generator=generator, device=generator.device)[:size]]

    rows = []
    for row in range(count):
        (giver, receiver, third), (place,), (thing,) = drawn(NAMES, 3), drawn(PLACES), drawn(THINGS)
        first, second = (receiver, giver) if row % 2 else (giver, receiver)
        text, other = (
            f"When {first} and {second} went to the {place}, {name} gave a {thing} to" for name in (giver, third)
        )
        rows.append((text, other, receiver, giver))
    return IndirectObjects(*map(list, zip(*rows, strict=True)))
