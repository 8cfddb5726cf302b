"""Checkpoints that others trained: the number-token embeddings of a language model in a local folder, in Hugging Face's
layout.

Nothing is ever downloaded. Only the rows of the numbers are read, so that a model of any size fits; and only from
safetensors, as pickled weights could run code.
"""

import json
import shlex
import sys
from itertools import count
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

try:
    import tokenizers
except ImportError:  # comes with the extra "pretrained"; without it the rest of the course does not miss it
    tokenizers = None

INSTALL = shlex.join([sys.executable, "-m", "pip", "install", "-c", "constraints.txt", "-e", ".[pretrained]"])
# GPT-2 alone, GPT-2 with its language-model head (GPT-J, GPT-Neo), Llama and its kin, GPT-NeoX (Pythia)
EMBEDDINGS = ("wte.weight", "transformer.wte.weight", "model.embed_tokens.weight", "gpt_neox.embed_in.weight")
FEWEST_ASKED, FEWEST_FOUND = 20, 100


class PretrainedError(ValueError):
    """A folder, or a file in it, that cannot be read as a language model with numbers; the message says why."""


def number_embeddings(folder: str | Path, numbers: int | None = None) -> Float[Tensor, "numbers width"]:
    """The input embeddings of the numbers 0, 1, .., ``numbers`` - 1, in float32: of their tokens, as `number_tokens`
    finds them.

    Zhou et al. (2024), arXiv:2406.03445, look at those of GPT-2-XL. Raises PretrainedError (a ValueError) for a folder
    or a file that cannot be used, ValueError for ``numbers`` < 20.
    """
    return token_embeddings(folder, list(number_tokens(folder, numbers).values()))


def number_tokens(folder: str | Path, numbers: int | None = None) -> dict[str, int]:
    """How each number is written, in order, and the one token that this is: {" 0": 657, " 1": 352, ..} or {"0": 15,
    "1": 16, ..}.

    Within a text a number follows a space, and in GPT-2's vocabulary the space is part of the token; other vocabularies
    keep it apart. All numbers are written alike, in the way that has more of them in one token each, counted from 0
    (with the space, if both have as many). ``None`` takes as many as there are. Raises PretrainedError where the
    tokenizer is missing or damaged, or splits a number before ``numbers`` (before 100 for None); ValueError for
    ``numbers`` < 20, too few for a wave of period 10.
    """
    folder = _existing(folder)
    if numbers is not None and numbers < FEWEST_ASKED:
        raise ValueError(
            f"numbers = {numbers!r}: must be at least {FEWEST_ASKED}, or None for as many as are one token each"
        )
    tokenizer = _tokenizer(folder)
    with_space, without = (_single_tokens(tokenizer, before, numbers) for before in (" ", ""))
    found = with_space if len(with_space) >= len(without) else without
    needed = FEWEST_FOUND if numbers is None else numbers
    if len(found) < needed:
        first = f"{' ' if found is with_space else ''}{len(found)}"
        pieces = tokenizer.encode(first, add_special_tokens=False).tokens
        raise PretrainedError(
            f"{folder}: its tokenizer reads {first!r} as {pieces}, not as one token; numbers = {numbers!r} "
            f"needs 0 to {needed - 1}, of "
            f"which the first {len(found)} are one token each"
        )
    return found


def token_embeddings(folder: str | Path, tokens: list[int]) -> Float[Tensor, "tokens width"]:
    """The rows ``tokens`` of the model's input embedding, in float32; the rest of the file stays on the disk.

    Raises PretrainedError for a folder without safetensors, a file that is missing, truncated or foreign, and an
    embedding that is not there, is not a table of finite floating-point numbers, has no such row, or has the same row
    for all of them.
    """
    path, name = _embedding(_existing(folder))
    with _opened(path) as file:
        if name not in file.keys():
            raise PretrainedError(f"{path}: has no tensor {name}, though the index says so")
        table = file.get_slice(name)
        shape = table.get_shape()
        if len(shape) != 2 or shape[0] <= max(tokens):
            raise PretrainedError(
                f"{path}: {name} has shape {tuple(shape)}; must be (tokens, width), with more than {max(tokens)} tokens"
            )
        rows = torch.stack([table[token] for token in tokens])
    if not rows.is_floating_point():
        raise PretrainedError(f"{path}: {name} has dtype {rows.dtype}; must be floating point, not quantized")
    if not rows.isfinite().all() or (len(rows) > 1 and (rows == rows[0]).all()):
        raise PretrainedError(
            f"{path}: {name} was never trained, or is damaged: rows must be finite, and not all the same"
        )
    return rows.float()


def _existing(folder: str | Path) -> Path:
    folder = Path(folder)
    if not folder.is_dir():
        raise PretrainedError(
            f"folder = {str(folder)!r}: no such folder; must be one on this machine that holds "
            "model.safetensors and tokenizer.json (nothing is downloaded)"
        )
    return folder


def _tokenizer(folder: Path) -> "tokenizers.Tokenizer":
    """From ``tokenizer.json``, or else from GPT-2's ``vocab.json`` and ``merges.txt``."""
    if tokenizers is None:
        raise PretrainedError(
            f"the package tokenizers is not installed; `{INSTALL}` in the course's folder installs it"
        )
    whole, vocabulary, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not whole.is_file() and not (vocabulary.is_file() and merges.is_file()):
        raise PretrainedError(f"{folder}: has no tokenizer; must hold tokenizer.json, or vocab.json and merges.txt")
    try:
        if whole.is_file():
            tokenizer = tokenizers.Tokenizer.from_file(str(whole))
        else:
            tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocabulary), str(merges)))
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = tokenizers.decoders.ByteLevel()
    except Exception as error:  # the library has no class of its own for it
        wrong = whole if whole.is_file() else f"{vocabulary}, {merges.name}"
        raise PretrainedError(f"{wrong}: not a tokenizer, or a truncated one ({error})") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _single_tokens(tokenizer: "tokenizers.Tokenizer", before: str, most: int | None) -> dict[str, int]:
    """The numbers from 0, ``most`` at most, up to the first that is not a token which reads as this very number
    (unknown words do not).
    """
    found = {}
    for number in count() if most is None else range(most):
        text = f"{before}{number}"
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        if len(tokens) != 1 or tokenizer.decode(tokens).strip() != str(number):
            break
        found[text] = tokens[0]
    return found


def _embedding(folder: Path) -> tuple[Path, str]:
    """The file that holds the input embedding, and the embedding's name in it."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        with _opened(whole) as file:
            files = dict.fromkeys(file.keys(), whole.name)
    elif index.is_file():
        try:
            files = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        except (KeyError, TypeError, ValueError):
            raise PretrainedError(
                f"{index}: not the index of a checkpoint in several files, or a truncated one"
            ) from None
    else:
        raise PretrainedError(
            f"{folder}: has no weights; must hold {whole.name} or {index.name} (pickled weights are not read)"
        )
    for name in EMBEDDINGS:
        if name in files:
            return folder / str(files[name]), name
    raise PretrainedError(
        f"{folder}: no input embedding among its {len(files)} tensors; must be named {' or '.join(EMBEDDINGS)}"
    )


def _opened(path: Path) -> safe_open:
    if not path.is_file():
        raise PretrainedError(f"{path}: no such file, though the index names it")
    try:
        return safe_open(path, "pt")
    except (OSError, SafetensorError) as error:
        raise PretrainedError(f"{path}: not a safetensors file, or a truncated one ({error})") from None
