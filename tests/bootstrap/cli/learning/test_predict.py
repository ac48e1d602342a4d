"""`shoal predict`: standard input, damaged input and unprintable text."""

import gc
import gzip
import os
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from bootstrap.prediction.texts import blocks, bytes_to_come
from tests.bootstrap.cli.answered_files import as_json, json_lines


def test_a_damaged_archive_is_an_error_after_its_readable_texts(predicted: Callable[..., Any], tmp_path: Path) -> None:
    noise = json_lines([(f"good {n * 7919 % 10007:x}", 5) for n in range(500)])
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(noise)[:-200])
    status, out, err = predicted("a.json.gz")
    assert status == 1
    assert out.startswith("positive\t")
    assert f"a.json.gz is damaged after {len(out.splitlines())} lines; download it again" in err


def test_a_pipe_is_read_in_large_blocks_without_waiting() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as program:
        pieces = blocks(file)
        program.write(b"a line\n")
        assert next(pieces) == b"a line\n"
        many = b"good lamp\n" * 50_000
        assert program.write(many) == len(many)  # without waiting for a reader
        assert next(pieces) == many
        program.close()
        assert list(pieces) == []


def test_only_a_file_has_a_known_size(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("good lamp\n")
    reading, writing = os.pipe()
    with (tmp_path / "texts").open("rb") as file, os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        assert [bytes_to_come(each) for each in (file, pipe, BytesIO(b"good lamp\n"))] == [10, 0, 0]


def test_a_megabyte_of_standard_input_is_labelled_like_single_lines(
    predicted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{['good', 'bad', 'dull', 'fair'][n % 4]} lamp {'x' * (n % 300)}" for n in range(9_000)]
    given = "".join(f"{text}\n" for text in texts)
    assert len(given) > 1 << 20
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given.encode())))
    status, out, err = predicted()
    assert (status, err) == (0, "")
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[2] for line in lines] == texts
    assert [line[0] for line in lines[:4]] == ["positive", "negative", "negative", "positive"]
    assert {tuple(line[:2]) for line in lines[::4]} == {tuple(lines[0][:2])}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (gzip.compress(b"good lamp\n"), "is an archive, or is compressed twice; unpack it once"),
        ("good lamp\nbad lamp\n".encode("utf-16"), "is in UTF-16 or UTF-32; convert it to UTF-8"),
        ("caf\u00e9\n".encode("cp1252") * 9, "is not text in UTF-8; if it is text in another encoding"),
    ],
    ids=["gzip", "UTF-16", "cp1252"],
)
def test_standard_input_that_is_not_text_is_refused(
    given: bytes, what: str, predicted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given)))
    status, out, err = predicted()
    assert (status, out) == (1, "")
    assert f"standard input {what}" in err
    assert err.endswith("; save the input to a file, and give the name of the file\n")


def test_control_characters_are_replaced(predicted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
    text = "good" + "".join(chr(letter) for letter in letters if letter != ord("\n")) + "l\u00e4mp\u00a0\u200d"
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(f"{text}\n".encode())))
    _, out, _ = predicted()
    assert out.split("\t")[2] == f"good{' ' * (len(letters) - 1)}l\u00e4mp\u00a0\u200d\n"


def test_garbage_is_collected_again_after_the_model_is_loaded(predicted: Callable[..., Any], tmp_path: Path) -> None:
    as_json(tmp_path)
    assert predicted("a.json")[0] == 0
    assert gc.isenabled()
    assert predicted("a.json", "--model", str(tmp_path / "absent"))[0] == 1
    assert gc.isenabled()
