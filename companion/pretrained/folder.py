"""A model's folder in Hugging Face's layout: its tokenizer, its configuration, and which file holds which tensor.

Only safetensors are read, as pickled weights could run code.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from companion.core.extras import Extra
from companion.core.files import in_its_place
from companion.core.registry import like
from companion.pretrained.fetching import MODELS, is_fetched, model_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BELOW = ("*", "snapshots/*", "*/snapshots/*", "*/*/snapshots/*")  # a folder's models; those of Hugging Face's cache
WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".onnx")


class PretrainedError(ValueError):
    """A folder, or a file in it, that cannot be read as a language model with numbers; the message says why."""


def existing(folder: str | Path) -> Path:
    """Return a folder that is there, or that of a fetched model by its name (``"./smollm2"`` is a folder, ``"smollm2"``
    a name). Raises PretrainedError for one that is not there; nothing is downloaded.
    """
    if isinstance(folder, str) and folder in MODELS:
        if not is_fetched(folder):
            raise PretrainedError(
                f"folder = {folder!r}: not in {model_folder(folder).parent}; `python3 -m companion fetch {folder}` in "
                "the course's folder brings it"
            )
        return model_folder(folder)
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        near = "".join(f", nor a model of this name (nearest: {name})" for name in like(folder.name, MODELS))
        wrong = "a file" if folder.is_file() else f"no such folder{near}"
        raise PretrainedError(
            f"folder = {str(folder)!r}: {wrong}; must be one on this machine that holds "
            "model.safetensors and tokenizer.json (nothing is downloaded)"
        )
    return folder


def read_config(folder: Path) -> dict:
    """Read ``config.json``. Raises PretrainedError for one that is missing, damaged, or names no kind of model."""
    path = folder / "config.json"
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise PretrainedError(
            f"{folder}: has no config.json, so that it cannot be read as a language model{_elsewhere(path)}"
        ) from None
    except ValueError as error:
        raise PretrainedError(f"{path}: not JSON, or truncated ({error}){in_its_place(path)}") from None
    if not isinstance(read, dict) or not isinstance(read.get("model_type"), str):
        raise PretrainedError(f"{path}: names no model_type, so that it cannot be read as a language model")
    return read


def read_tokenizer(folder: Path) -> "Tokenizer":
    """Read ``tokenizer.json``, or else GPT-2's ``vocab.json`` and ``merges.txt``. Raises PretrainedError where there is
    none that can be read.
    """
    with Extra("pretrained"):
        import tokenizers  # noqa: PLC0415
    whole, vocabulary, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not whole.is_file() and not (vocabulary.is_file() and merges.is_file()):
        raise PretrainedError(
            f"{folder}: has no tokenizer; must hold tokenizer.json, or vocab.json and merges.txt{_elsewhere(whole)}"
        )
    try:
        if whole.is_file():
            tokenizer = tokenizers.Tokenizer.from_file(str(whole))
        else:
            tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocabulary), str(merges)))
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = tokenizers.decoders.ByteLevel()
    except Exception as error:  # the library has no class of its own for it
        path = whole if whole.is_file() else vocabulary
        wrong = whole if whole.is_file() else f"{vocabulary}, {merges.name}"
        raise PretrainedError(f"{wrong}: not a tokenizer, or a truncated one ({error}){in_its_place(path)}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def tensor_files(folder: Path) -> dict[str, Path]:
    """Return the file that holds each tensor, by the tensor's name. Raises PretrainedError for a folder without
    safetensors, and for an index that is damaged or leads out of the folder.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        with opened(whole) as file:
            return dict.fromkeys(file.keys(), whole)
    if not index.is_file():
        raise PretrainedError(
            f"{folder}: has no weights; must hold {whole.name} or {index.name}{_elsewhere(whole)}"
            f"{_other_weights(folder)}. Pickled weights are not read; the package transformers turns them into "
            "safetensors: load the model, then model.save_pretrained(folder)"
        )
    try:
        files = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    except (KeyError, TypeError, ValueError):
        raise PretrainedError(
            f"{index}: not the index of a checkpoint in several files, or a truncated one{in_its_place(index)}"
        ) from None
    for name, file in files.items():
        if not isinstance(file, str) or Path(file).name != file or file in ("", ".."):
            raise PretrainedError(f"{index}: has {name} in {file!r}; must be the name of a file in this folder")
    return {name: folder / file for name, file in files.items()}


def opened(path: Path) -> safe_open:
    """Open a file of safetensors. Raises PretrainedError for one that is missing, truncated or foreign."""
    if not path.is_file():
        raise PretrainedError(f"{path}: no such file; model.safetensors.index.json names it{_elsewhere(path)}")
    try:
        return safe_open(path, "pt")
    except (OSError, SafetensorError) as error:
        raise PretrainedError(
            f"{path}: not a safetensors file, or a truncated one ({error}){in_its_place(path)}"
        ) from None


def _elsewhere(path: Path) -> str:
    """Where the model may be whose file is not there, to go on with a sentence: behind a broken link, or in a folder
    below, as in the root of a cache.
    """
    if path.is_symlink():
        return f"; {path.name} is a link to {path.readlink()}, which is not there"
    below = [str(found.parent) for depth in BELOW for found in sorted(path.parent.glob(f"{depth}/config.json"))]
    more = f", and in {len(below) - 3} others" if len(below) > 3 else ""
    return f"; there is a model in {' and in '.join(below[:3])}{more}: give that folder" if below else ""


def _other_weights(folder: Path) -> str:
    """Weights of other forms that a folder has, to go on with a sentence."""
    there = sorted(path.name for path in folder.iterdir() if path.suffix in WEIGHTS)
    return f"; there is {', '.join(there[:3])}{', ..' * (len(there) > 3)}" if there else ""
