"""A ball under one of five cups that change places: games, and whether a language model follows them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from companion.core.extras import Extra
from companion.core.measuring import Row

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

CUPS = "ABCDE"
FOLLOWED = ("at once", "at once, its cup untouched", "steps it writes", "steps written rightly")
GAMES = {"smoke": 2, "course": 24, "paper": 120}
SWAPS = {"smoke": (1, 2), "course": (1, 2, 4, 8, 16, 32), "paper": (1, 2, 4, 8, 16, 32, 64)}  # after which one asks


class Game(NamedTuple):
    """A ball under one of five cups, and which two cups change places, swap after swap."""

    start: int
    swaps: list[tuple[int, int]]

    def places(self, order: Iterable[int] | None = None) -> list[int]:
        """Return where the ball is at first and after each swap; the swaps in another ``order``, if one is given."""
        places = [self.start]
        for swap in range(len(self.swaps)) if order is None else order:
            cups = self.swaps[swap]
            places.append(sum(cups) - places[-1] if places[-1] in cups else places[-1])
        return places


def cup_games(count: int, swaps: int, *, untouched: bool = False, generator: torch.Generator) -> list[Game]:
    """Draw games in which each swap is of any two of the five cups.

    ``count``, ``swaps``: how many games, and of how many swaps each.
    ``untouched``: swap the four cups alone that the ball is not under.
    ``generator``: draws starts and swaps.
    """
    drawn = []
    for _ in range(count):
        start = int(torch.randint(len(CUPS), (), generator=generator))
        cups = torch.tensor([cup for cup in range(len(CUPS)) if not untouched or cup != start])
        pairs = torch.rand(swaps, len(cups), generator=generator).argsort(1)[:, :2]
        drawn.append(Game(start, [(a, b) for a, b in cups[pairs].tolist()]))
    return drawn


@torch.no_grad()
def play(
    model: "PreTrainedModel",
    encode: Callable[[str], list[int]],
    asked: str,
    drawn: list[Game],
    examples: list[Game],
    lengths: Sequence[int],
) -> list[Row]:
    """Ask after some numbers of swaps where the ball is, and take the likeliest of the five cups.

    ``model``, ``encode``: a model of ``transformers``, which keeps the keys and values of what it has read (else every
        written step would read all of the text again), and who makes its tokens.
    ``asked``: one of `FOLLOWED`. "At once" the swaps are told one after another; else after each swap stands where the
        ball is then, as the model guessed it or as it is.
    ``drawn``, ``examples``: games of as many swaps each, and two more before each of them, with their answers.
    ``lengths``: the numbers of swaps.

    In a row are the number of swaps and 0 or 1: the guess is "right"; is what is right if the swaps come in another
    "order"; is where the ball was "told" to be last; is one of the two cups just "named"; the ball was "moved" by the
    last swap; and is under the cup where it was at first, so that who "stays" there is right.
    """
    with Extra("pretrained"):
        from transformers.cache_utils import DynamicCache  # noqa: PLC0415 - it takes seconds
    by_steps, kept = asked in FOLLOWED[2:], DynamicCache()
    words = [encode(f" {cup}")[0] for cup in CUPS]

    def guesses(texts: list[str]) -> list[int]:
        """Read on, and guess."""
        tokens = torch.tensor([encode(text) for text in texts])
        logits = model(tokens, past_key_values=kept, use_cache=True, logits_to_keep=1).logits
        return logits[:, -1, words].argmax(-1).tolist()

    def played(game: Game) -> str:
        """An example, to its end."""
        places = game.places()[1:]
        cups = [f" Swap {CUPS[a]} and {CUPS[b]}" for a, b in game.swaps]
        if by_steps:
            cups = [f"{swap}: ball in {CUPS[place]}." for swap, place in zip(cups, places, strict=True)]
            return f"Ball in {CUPS[game.start]}.{''.join(cups)}\n"
        return f"Ball in {CUPS[game.start]}.{'.'.join(cups)}. Now: ball in {CUPS[places[-1]]}.\n"

    pairs = zip(examples[::2], examples[1::2], drawn, strict=True)
    texts = [f"{played(one)}{played(two)}Ball in {CUPS[game.start]}." for one, two, game in pairs]
    told, truth = [game.start for game in drawn], [game.places() for game in drawn]
    orders, rows = torch.Generator().manual_seed(0), []
    for done in range(1, max(lengths) + 1):
        named = [game.swaps[done - 1] for game in drawn]
        texts = [f"{text} Swap {CUPS[a]} and {CUPS[b]}" for text, (a, b) in zip(texts, named, strict=True)]
        if by_steps:
            said = guesses([f"{text}: ball in" for text in texts])
        elif done in lengths:
            guesses([f"{text}." for text in texts])
            said = guesses([" Now: ball in"] * len(drawn))
            kept.crop(-len(encode(" Now: ball in")))  # the next swap follows on the last one
            texts = [""] * len(drawn)
        else:
            texts = [f"{text}." for text in texts]
            continue
        for row, game in enumerate(drawn if done in lengths else []):
            order = torch.randperm(done, generator=orders).tolist()
            rows.append(
                {
                    "swaps": done,
                    "right": int(said[row] == truth[row][done]),
                    "order": int(said[row] == game.places(order)[-1]),
                    "told": int(said[row] == told[row]),
                    "named": int(said[row] in named[row]),
                    "moved": int(truth[row][done] != truth[row][done - 1]),
                    "stays": int(truth[row][done] == game.start),
                }
            )
        if by_steps:
            told = said if asked == FOLLOWED[2] else [places[done] for places in truth]
            texts = [f" {CUPS[cup]}." for cup in told]
    return rows
