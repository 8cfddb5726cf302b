"""What the taster shows of a language model: how it goes on, and where three of its heads look."""

from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.circuits import Part, wire
from companion.core.measuring import Row, Table
from companion.pretrained.language import LanguageModel
from companion.topics.language.data import SENTENCES

START, SPOKEN = "The moon is", 15  # tokens later the sentence ends
TEXT = SENTENCES[1]  # in which a whole phrase comes again
HEADS = {"head 16.0": Part(16, 0), "head 18.6": Part(18, 6), "head 20.6": Part(20, 6)}
WRITER, READER, _ = HEADS.values()


@torch.no_grad()
def stand_ins(model: LanguageModel) -> list[Row]:
    """Return what the taster shows where there is no model, as rows of a "value" "at" one place (and "on" another): how
    likely each "word" was that the model "says" after `START`, and each "next" one of `TEXT`, and in the end the
    likeliest; and where each of `HEADS` looks. The last two come again for `READER`, with the wire from `WRITER` to its
    keys cut.
    """
    rows, spoken = [], model.encode(START)
    for at in range(SPOKEN):
        likely = model(torch.tensor([spoken]), only_last=True)[0, -1].softmax(-1)
        spoken.append(int(likely.argmax()))
        rows.append(_row("says", at, at, likely.max(), model.decode(spoken[-1:])))
    tokens = model.batch([TEXT])
    for cut in ("", ", cut"):
        with model.hooks(wire(WRITER, READER, "keys")) if cut else nullcontext():
            patterns, likely = model.patterns(tokens), model(tokens)[0].softmax(-1)
        following = [*tokens[0, 1:].tolist(), int(likely[-1].argmax())]
        for at, token in enumerate(following):
            rows.append(_row(f"next{cut}", at, at + 1, likely[at, token], model.decode([token])))
        for name, head in HEADS.items():
            if not cut or head == READER:
                weights = patterns[head.layer][0, head.head]
                lower = torch.tril_indices(*weights.shape).mT.tolist()
                rows += [_row(name + cut, at, on, weights[at, on]) for at, on in lower]
    return rows


def _row(what: str, at: int, on: int, value: Float[Tensor, ""], word: str = "-") -> Row:
    return {"what": what, "at": at, "on": on, "word": word, "value": round(value.item(), 4)}


def stored_pattern(table: Table, name: str) -> Float[Tensor, "length length"]:
    """Return the attention pattern that `stand_ins` gave under a name."""
    rows = table.where(what=name).columns
    length = 1 + max(rows["at"])
    pattern = torch.zeros(length, length)
    pattern[rows["at"], rows["on"]] = torch.tensor(rows["value"])
    return pattern
