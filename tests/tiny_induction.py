"""A tiny GPT-2 in Hugging Face's layout, written by hand: an induction head, and a global bigram in the last MLP that
speaks over what an attention head has found.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

SAYS = ["Madrid", "is", "located", "in", "the", "Spain"]
WORDS = ["<|endoftext|>", "[UNK]", *SAYS, *(f"word{i}" for i in range(32))]
V, T, WIDTH, HEADS = len(WORDS), 64, 192, 3
H = WIDTH // HEADS
TOKEN, PLACE, BEFORE = slice(0, V), slice(V, V + T), slice(V + T, 2 * V + T)  # the stream's blocks


def write_head(attention, head, *, queries, keys, values, outputs) -> None:
    """Set one head's four matrices, each (WIDTH, H) as rows of the stream; the output's is transposed."""
    at = slice(head * H, (head + 1) * H)
    for place, matrix in enumerate((queries, keys, values)):
        attention.c_attn.weight[:, place * WIDTH :][:, at] = matrix
    attention.c_proj.weight[at] = outputs.mT


def block(rows: slice, columns: torch.Tensor, size: float = 1.0) -> torch.Tensor:
    """(WIDTH, H), with ``columns`` times ``size`` in the rows of one block."""
    matrix = torch.zeros(WIDTH, H)
    matrix[rows, : columns.shape[1]] = size * columns
    return matrix


def single(row: int, size: float = 1.0) -> torch.Tensor:
    """(WIDTH, H), which reads or writes one direction of the stream."""
    return block(slice(row, row + 1), torch.ones(1, 1), size)


def save_tiny_induction(folder: Path, *, induction: bool = True) -> Path:
    """Head 0.0 copies each token to its successor, 1.1 looks for its own token there and says what it finds; 1.2 knows
    that Madrid is in Spain, and the last MLP that "in" is followed by "the". All else is ``transformers``' own start.
    Without ``induction`` 1.1 is left at that start, too.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=V, n_positions=T, n_embd=WIDTH, n_layer=2, n_head=HEADS, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    madrid, within, the, spain = (WORDS.index(word) for word in ("Madrid", "in", "the", "Spain"))
    with torch.no_grad():
        stream = torch.eye(WIDTH)
        model.transformer.wte.weight[:] = stream[TOKEN]
        model.transformer.wpe.weight[:] = stream[PLACE]
        first, last = model.transformer.h
        places, tokens = torch.eye(T), torch.eye(V)
        write_head(
            first.attn,
            0,
            queries=block(PLACE, places, 1.5),
            keys=block(PLACE, places.roll(1, 1)),
            values=block(TOKEN, tokens),
            outputs=block(BEFORE, tokens, 0.1),
        )
        if induction:
            write_head(
                last.attn,
                1,
                queries=block(TOKEN, tokens, 2.0),
                keys=block(BEFORE, tokens),
                values=block(TOKEN, tokens),
                outputs=block(TOKEN, tokens, 0.5),
            )
        write_head(
            last.attn,
            2,
            queries=single(within, 2.0),
            keys=single(madrid),
            values=single(madrid),
            outputs=single(spain, 0.3),
        )
        # small beside the largest singular values, so that a cut takes it away
        last.mlp.c_fc.weight.normal_(std=0.05)
        last.mlp.c_fc.weight[:, 0] = 0.3 * stream[within]
        last.mlp.c_proj.weight.zero_()
        last.mlp.c_proj.weight[0] = 3 * stream[the]
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
