"""Three circuits that continue a repeated phrase, each of which keeps what layer 1 found in other wires of layer 2.

A layer's second head reads the stream three times: for its queries, its keys and its values (Elhage et al. 2021, "A
mathematical framework for transformer circuits": Q-, K- and V-composition). Patching them one at a time tells which of
them needs layer 1.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.core.blocks import Blocks, Head
from companion.topics.attention.by_hand import embed, run
from companion.topics.attention.data import repetitions

WIRES = ("queries", "keys", "values")
CARRIES = torch.tensor([[False, True, False], [True, False, False], [False, True, True]])  # [suspect, wire]
BETA, VOCABULARY, LENGTH = (30.0, 7.0), 11, 32  # the last token is <s>, with which each sentence begins


def suspects(sentences: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Draw sentences, and compute what three circuits make of them; each suspect's stream is in a random basis.

    Suspect 1 is the induction head: layer 1 copies the previous token, which layer 2's keys hold. In suspect 2 layer 1
    finds an earlier occurrence of the token and writes its position, from which layer 2's queries look one further. In
    suspect 3 layer 1 copies the previous token for the keys and the token itself for the values.

    So that only a right measurement finds them right, a sentence repeats a phrase up to its middle and runs backwards
    from there, which misleads whoever sees the future. And what suspect 1's second layer adds holds the token now as
    well, which the logits take away where layer 1 has written it: they miss it in any stream but that of layer 1.
    Layer 1 of suspect 3 says the token now, and layer 2 overrules it: where layer 2 finds nothing, a stream to which
    layer 1 has not written says nothing, and one to which it has is wrong. A query of suspect 2 that layer 1 has not
    told where to look prefers its own position, and after it the fourth before: a mask that hides it shows.

    ``before``, ``after`` (suspects, sentences, T, d): the stream that layer 1 reads, and what layer 2 reads.
    ``second`` (suspects, 4, heads, d_h, d): layer 2's W_Q, W_K, W_V, W_O; a head that does the work, and one
    that makes noise.
    ``unembed`` (suspects, N, d): the last stream's logits are its inner products with these rows.
    ``targets``, ``settled`` (sentences, T): the next token, and whether it follows from those before it.
    """
    drawn = repetitions(sentences, LENGTH // 2, VOCABULARY - 1, shortest=4, longest=6, generator=generator)
    tokens = F.pad(torch.cat([drawn.tokens, drawn.tokens.flip(1)], 1), (1, 0), value=VOCABULARY - 1)
    blocks = Blocks(
        token=VOCABULARY, position=LENGTH, previous=VOCABULARY, where=LENGTH, now=VOCABULARY, out=VOCABULARY
    )
    row = {name: blocks.rows(name) for name in blocks.slices}
    stream = torch.stack([embed(blocks, sentence) for sentence in tokens[:, :-1]])

    shift = Head(BETA[0] * row["position"][1:].mT @ row["position"][:-1], blocks.matrix("previous", "token"))
    itself = row["position"].mT @ row["position"]
    stay = Head(BETA[0] * itself, blocks.matrix("now", "token"))
    speak = Head(stay.qk, stay.ov + 1.8 * blocks.matrix("out", "token"))
    earlier = Head(BETA[0] * (row["token"].mT @ row["token"] - 2 * itself), blocks.matrix("where", "position"))
    first = [[shift, stay], [earlier], [shift, speak]]
    told = (
        2 * F.pad(row["where"][:-1], (0, 0, 1, 0))
        + 0.4 * row["position"]
        + 0.2 * F.pad(row["position"][4:], (0, 0, 0, 4))
    )
    reads = [  # rows that layer 2's queries, keys and values read: queries[i] looks for keys[i]
        (row["token"], row["previous"], row["token"] + 1.2 * row["previous"]),
        (told, row["position"], row["token"]),
        (row["token"], row["previous"], 2 * row["now"]),
    ]
    streams, seconds, unembeds = [], [], []
    for heads, (queries, keys, values) in zip(first, reads, strict=True):
        basis, _ = torch.linalg.qr(torch.randn(blocks.width, blocks.width, generator=generator, dtype=torch.float64))
        head = torch.stack([_padded(part) for part in (BETA[1] * queries, keys, values, row["out"])])
        noise = torch.randn(4, LENGTH, blocks.width, generator=generator, dtype=torch.float64)
        noise *= torch.tensor([1, 1, 0.1, 0.1])[:, None, None]
        streams.append(torch.stack([stream, torch.stack([run([heads], x)[-1] for x in stream])]) @ basis)
        seconds.append(torch.stack([head, noise], 1) @ basis)
        unembeds.append((row["out"] - row["now"]) @ basis)
    place = torch.arange(LENGTH)
    before, after = torch.stack(streams).unbind(1)
    return {
        "before": before,
        "after": after,
        "second": torch.stack(seconds),
        "unembed": torch.stack(unembeds),
        "targets": tokens[:, 1:],
        "settled": (drawn.periods[:, None] < place) & (place < LENGTH // 2),
    }


def _padded(rows: Float[Tensor, "rows d"]) -> Float[Tensor, "most d"]:
    """The rows with as many empty ones as every head's four matrices may have."""
    return torch.cat([rows, rows.new_zeros(LENGTH - len(rows), rows.shape[1])])
