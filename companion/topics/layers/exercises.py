"""The exercises of lesson 14: what a layer sees, how much it carries, and a memory of 32 numbers."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.bars import reaches
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit


def _draw_changes(generator: Generator) -> dict:
    """A layer that sees some positions and not others, with one number or another, once with two that cancel, twice
    by little, once with all numbers by little and twice by too little, one position from everywhere alike, one
    everywhere alike, and with rounding everywhere.
    """
    time, width, out = draw_size(generator, 5, 7), draw_size(generator, 2, 3), draw_size(generator, 3, 4)
    changes = draw_normal(generator, time, width, time, out)
    changes *= torch.rand(changes.shape, generator=generator) < 0.5
    changes *= torch.rand(time, 1, time, 1, generator=generator) < 0.5
    changes[0, :, 1] = 0
    changes[0, 0, 1, :2] = changes.new_tensor([1, -1])
    changes[[1, 3], :, 0] = 0
    changes[[1, 3], 0, 0, 0] = changes.new_tensor([2e-6, 1e-4])
    changes[4, :, 2], changes[4, :, 4], changes[4, :, 1] = 3e-6, 7e-7, 2.5e-7
    changes[:, :, 3] = changes[2] = 1
    return {"changes": changes + 1e-10 * draw_normal(generator, *changes.shape)}


@exercise(draw=_draw_changes, now="whatever looks into the future can be caught before it is trained")
def sees(changes: Tensor) -> Tensor:
    return changes.abs().amax((1, 3)).mT > 1e-6


def _draw_carried(generator: Generator) -> dict:
    """Nine numbers pass from the positions before ``seen`` to those after it: three weaker than the rest, the weakest
    by turns just above what counts, one written at the last position alone, two read at the first alone, two of the
    first or the last entries alone, one of all entries alike. What passes elsewhere is not asked for, nor is how large
    the changes are. Two numbers of one earlier position do alike, two of different ones, and two later numbers move
    alike, so that neither rows nor columns, nor what passes from single positions, number what passes elsewhere.
    """
    time, width, out = draw_size(generator, 9, 10), draw_size(generator, 4, 5), draw_size(generator, 4, 5)
    seen, carried = draw_size(generator, 3, 6), 9
    changes = 0.3 * draw_normal(generator, time, width, time, out)
    written = 0.3 * draw_normal(generator, seen, width, carried)
    read = 0.3 * draw_normal(generator, carried, time - seen, out)
    written[..., :3] *= written.new_tensor([1e-3, 1e-3, 1e-2])
    written[:-1, :, 3] = 0
    read[4:6, 1:] = 0
    written[:, 1:, 6] = read[6, :, 1:] = 0
    written[:, :-1, 7] = read[7, :, :-1] = 0
    written[..., 8] = read[8] = 0.3
    for each in (written, changes):
        each[0, 0], each[0, 2] = each[0, 1], each[1, 2]
    for each in (read, changes):
        each[..., -1, 0] = each[..., -1, 1]
    if generator.initial_seed() % 2 == 0:  # the weakest: above 1e-6 of the largest, below 1e-6 of the sum
        written[..., 0] *= 1e-3
        values = torch.linalg.svdvals(written.flatten(0, 1) @ read.flatten(1))
        written[..., 0] *= 1.3e-6 * values[0] / values[8]
    across = (written.flatten(0, 1) @ read.flatten(1)).view(seen, width, time - seen, out)
    changes[:seen, :, seen:] = across + 1e-10 * draw_normal(generator, *across.shape)
    return {"changes": 1e-3 * changes, "seen": seen}


@exercise(draw=_draw_carried, now="you can tell the size of any memory without opening it")
def numbers_carried(changes: Tensor, seen: int) -> Tensor:
    across = changes[:seen, :, seen:].flatten(0, 1).flatten(1)
    values = torch.linalg.svdvals(across)
    return (values > 1e-6 * values[0]).sum()


def _draw_associations(generator: Generator) -> dict:
    batch, time = draw_size(generator, 2, 3), draw_size(generator, 4, 6)
    k, v = draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    return {
        "keys": draw_normal(generator, batch, time, k),
        "values": draw_normal(generator, batch, time, v),
        "queries": draw_normal(generator, batch, time, k),
    }


@exercise(draw=_draw_associations, now="you have linear attention, the memory that most rivals of attention begin with")
def associate(keys: Tensor, values: Tensor, queries: Tensor) -> Tensor:
    return (queries @ keys.mT).tril() @ values


SIZE, CARRIED = 8, 32  # numbers of a key and of a value, and how many may be carried
FEW, MANY, LENGTH = 8, 16, 32  # pairs to be recalled, pairs to count what is carried, positions
# The last two pairs as they are, 32 numbers, give .30 of 8 values; outer products in a table of 32 give .42 to .62
ENOUGH = 0.34
NUDGE = 1e-7  # what a step does beyond its slope must stay below what is counted, 1e-6 of the largest
TURNS = 32  # steps in which values turn into others


def _pairs(batch: int, many: int, generator: Generator) -> dict[str, Tensor]:
    """Draw what a memory is asked: pairs of a key of length 1 and a value, one of sixteen directions, each asked for at
    once; then all keys again, until the sequence ends, with nothing to write: the queries that count.

    ``batch``: sequences.
    ``many``: pairs in each; they divide LENGTH.
    ``generator``: for all of it.

    Returns keys, values and queries, (batch, LENGTH, SIZE), and which values are asked for, (batch, LENGTH - many).
    """
    key = F.normalize(draw_normal(generator, batch, many, SIZE), dim=-1)
    which = torch.randint(2 * SIZE, (batch, many), generator=generator)
    value = torch.cat([torch.eye(SIZE), -torch.eye(SIZE)]).to(key.dtype)[which]
    asked = torch.rand(batch, many, generator=generator).argsort(1).repeat(1, LENGTH // many - 1)
    query = key.gather(1, asked[..., None].expand(-1, -1, SIZE))
    nothing = torch.zeros_like(query)
    shown = {"keys": [key, nothing], "values": [value, nothing], "queries": [key, query]}
    return {name: torch.cat(both, 1) for name, both in shown.items()} | {"asked": which.gather(1, asked)}


def _recalled(answers: Tensor, asked: Tensor) -> Tensor:
    """Return the share of values that are nearest to what a memory answers to the queries, of those in `_pairs`."""
    said = answers[:, -asked.shape[1] :]
    return (torch.cat([said, -said], -1).argmax(-1) == asked).double().mean()


def _draw_memory(generator: Generator) -> dict[str, Any]:
    """Pairs to recall; then one longer sequence again and again: as it is, with others in place of its later values,
    with each number that is written nudged, and on the way on which all values turn into others.
    """
    drawn, longer = _pairs(1_200, FEW, generator), _pairs(1, MANY, generator)
    written = 2 * MANY * SIZE
    again = {name: longer[name].expand(2 + written + 2 * TURNS + 1, -1, -1).clone() for name in list(longer)[:3]}
    again["values"][1, MANY // 2 : MANY] = longer["values"][0, MANY - 1].roll(1)  # all alike: on one axis
    nudges = NUDGE * torch.eye(written, dtype=longer["keys"].dtype).view(-1, MANY, 2 * SIZE)
    again["keys"][2 : 2 + written, :MANY] += nudges[..., :SIZE]
    again["values"][2 : 2 + written, :MANY] += nudges[..., SIZE:]
    middle = (torch.arange(TURNS, dtype=nudges.dtype) + 0.5) / TURNS
    angle = math.pi / 2 * torch.cat([middle, middle + NUDGE, torch.ones_like(middle[:1])])[:, None, None]
    again["values"][2 + written :] = angle.cos() * longer["values"] + angle.sin() * longer["values"].roll(1, -1)
    return {name: torch.cat([drawn[name], again[name]]) for name in again} | {"_asked": drawn["asked"]}


def _keeps_the_dtype(inputs: dict, answers: Tensor) -> str | None:
    if answers.dtype == inputs["keys"].dtype:
        return None
    return f"the answers are in {answers.dtype}; {inputs['keys'].dtype}, that of the inputs, shows small changes"


def _sees_no_future(inputs: dict, answers: Tensor) -> str | None:
    first, other = answers[len(inputs["_asked"]) :][:2, : MANY // 2]
    if torch.allclose(first, other, atol=1e-9):
        return None
    return "answers change with pairs that come later; a position reads what was written up to it"


def _carries_no_more(inputs: dict, answers: Tensor) -> str | None:
    again = answers[len(inputs["_asked"]) :, MANY:]
    nudged, middle, beyond, end = again[2:].split([2 * MANY * SIZE, TURNS, TURNS, 1])
    moved, turned = end[0] - again[0], (beyond - middle).sum(0) / (NUDGE * TURNS)
    if (moved - turned).norm() > 0.1 * moved.norm():  # all that comes of the way is not what comes of its small steps
        return (
            "while values turn into others little by little, what comes out jumps, as where something is rounded or "
            "picked; gradients teach such a memory nothing"
        )
    carried = int(torch.linalg.matrix_rank((nudged - again[0]).flatten(1), rtol=1e-6))
    if carried > CARRIED:
        return (
            f"{carried} numbers are carried from {MANY} pairs to what is asked later, as your own measure counts them, "
            f"and {CARRIED} are allowed. A table of k rows and v columns has k v numbers"
        )
    return None


def _recalls_enough(inputs: dict, answers: Tensor) -> str | None:
    if reaches("share of the values that are recalled", share := _share(inputs, answers).item(), ENOUGH):
        return None
    guessed = 1 / (2 * SIZE)
    rival = f"guessing recalls {guessed:.0%}" if share < 2 * guessed else "keeping the last two pairs as they are 30 %"
    return f"{share:.0%} of the values are recalled; {rival}, and {ENOUGH:.0%} are asked for"


def _share(inputs: dict, answers: Tensor) -> Tensor:
    return _recalled(answers[: len(inputs["_asked"])], inputs["_asked"])


@summit(
    draw=_draw_memory,
    shape=lambda inputs: tuple(inputs["values"].shape),
    stages=(_keeps_the_dtype, _sees_no_future, _carries_no_more, _recalls_enough),
    repeatable=True,
    seconds=1,
    now="a memory of 32 numbers, ready to stand in a network",
)
def small_memory(keys: Tensor, values: Tensor, queries: Tensor) -> Tensor:
    few = 4  # of a key's 8 numbers, so that the table has 4 x 8
    keys, queries = F.normalize(keys[..., :few], dim=-1), F.normalize(queries[..., :few], dim=-1)
    return (queries @ keys.mT).tril() @ values
