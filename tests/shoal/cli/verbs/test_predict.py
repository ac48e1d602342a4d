"""`shoal predict`: standard input, damaged input, unprintable text, kept fields, and answers in a file."""

import gc
import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from common.display import printable
from corpus.dataset_settings import Settings
from corpus.reading.encodings import EncodingError
from corpus.reading.sources import ReadingOptions
from shoal.prediction.texts import find_text_files
from tests.shoal.cli.command import Done, shoal_here
from tests.waiting import PATIENCE, until


@pytest.fixture
def predict(model, tmp_path, monkeypatch) -> Callable[..., Done]:
    """Function that runs `shoal predict` in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    return partial(shoal_here, "predict", "--model", model)


def parquet(**columns: list[Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


FIVE = [("good lamp", 5), ("bad lamp", 1), ("fair lamp", 2), ("good", 4), ("dull", 4)]
"""Texts with ratings. With a threshold of 0.5 the known model is wrong about the third and the last."""
TEXTS, RATINGS = map(list, zip(*FIVE, strict=True))
LABELS = ["pos" if rating > 3 else "neg" for rating in RATINGS]
LINES = [json.dumps({"reviewText": text, "overall": rating}).encode() + b"\n" for text, rating in FIVE]
RECORDS = [f'"{text}",{rating}\n' for text, rating in FIVE]


@pytest.mark.parametrize(
    ("name", "content", "options", "kept"),
    [
        ("a.json.gz", lambda: gzip.compress(b"".join(LINES)), ["--keep", "overall"], RATINGS),
        (
            "a.csv",
            lambda: "".join(["said,stars\n", *RECORDS]).encode(),
            ["--text-field", "said", "--keep", "stars"],
            list(map(str, RATINGS)),
        ),
        (
            "b.csv",
            lambda: "".join(f"{label},{text}\n" for label, text in zip(LABELS, TEXTS, strict=True)).encode(),
            ["--keep", "1"],
            LABELS,
        ),
        ("a.parquet", lambda: parquet(text=TEXTS, rating=RATINGS), ["--keep", "rating"], RATINGS),
    ],
    ids=["gzip", "csv", "labels", "parquet"],
)
def test_fields_of_every_format_can_be_kept(predict, name, content, options, kept) -> None:
    Path(name).write_bytes(content())
    answers = [json.loads(line) for line in predict(name, *options, "--json").stdout.splitlines()]
    assert [each["label"] for each in answers] == ["positive", "negative", "positive", "positive", "negative"]
    assert [each["text"] for each in answers] == TEXTS
    assert [list(each["fields"].values()) for each in answers] == [[value] for value in kept]


OBJECTS = [json.loads(line) for line in LINES]
STRUCTURED = {
    "lines of JSON": b"\xef\xbb\xbf" + b"".join(LINES),
    "an array": json.dumps(OBJECTS, indent=1).encode(),
    "an array without a newline": json.dumps({"n": 5, "reviews": OBJECTS}).encode(),
    "a table": "".join(["text,rating\n", *RECORDS]).encode(),
    "a table with texts of two lines": b'text,rating\n"good\nlamp",5\nbad,1\n',
    "fastText": "".join(
        f"__label__{1 + (label == 'pos')} {text}\n" for label, text in zip(LABELS, TEXTS, strict=True)
    ).encode(),
    "plain text with tabs and brackets": b"good\tlamp\n[bad] lamp\n{fair}\n",
    "one line of text": b"good lamp",
    "tabs and labels": "".join(f"{text}\t{label}\n" for label, text in zip(LABELS, TEXTS, strict=True)).encode(),
    "one text and a label": b"good lamp\t0\n",
    "elements of XML": b"<review>\n<text>\ngood lamp\n</text>\n</review>\n",
    "no known field": b'{"a": "good", "b": "lamp"}\n',
}


@pytest.mark.parametrize("content", STRUCTURED.values(), ids=STRUCTURED)
def test_standard_input_is_read_as_a_file_is(predict, content, messages) -> None:
    Path("texts").write_bytes(content)
    of_file, typed = predict("texts"), predict(stdin=content)
    assert (typed.returncode, typed.stdout) == (of_file.returncode, of_file.stdout)
    assert "__label__" not in typed.stdout
    assert "review" not in typed.stdout
    if typed.returncode:
        messages.check(typed.stderr.rstrip())


def test_standard_input_has_fields(predict) -> None:
    typed = predict("--keep", "overall", "--text-field", "reviewText", "--header", stdin=b"".join(LINES))
    names, *answers = typed.stdout.splitlines()
    assert names == "label\tprobability\toverall\ttext"
    assert [line.split("\t")[2:] for line in answers] == [[str(of), text] for text, of in FIVE]


def test_fields_are_kept_in_order_and_dates_as_text(predict) -> None:
    days, tags = [date(2026, 1, 2), None], [["a"], []]
    Path("a.parquet").write_bytes(parquet(text=["good", "bad"], day=days, raw=[b"\xff", b"a"], tags=tags))
    printed = predict("a.parquet", "--keep", "tags", "day", "raw", "--json").stdout
    assert [list(json.loads(line)["fields"].items()) for line in printed.splitlines()] == [
        [("tags", ["a"]), ("day", "2026-01-02"), ("raw", "\ufffd")],
        [("tags", []), ("day", None), ("raw", "a")],
    ]


def test_answers_go_into_a_file_that_appears_whole(predict) -> None:
    Path("a.json").write_bytes(b"".join(LINES))
    printed, done = predict("a.json"), predict("a.json", "--output", "new/labels.tsv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", printed.stderr)
    assert {path.name: path.read_text() for path in Path("new").iterdir()} == {"labels.tsv": printed.stdout}


def test_a_damaged_archive_is_an_error_after_its_readable_texts_and_keeps_old_answers(predict, messages) -> None:
    noise = "".join(f'{{"reviewText": "good {n * 7919 % 10007:x}", "overall": 5}}\n' for n in range(500))
    Path("a.json.gz").write_bytes(gzip.compress(noise.encode(), mtime=0)[:-200])
    done = predict("a.json.gz")
    assert (done.returncode, done.stdout.startswith("positive\t")) == (1, True)
    messages.hide(f"after {len(done.stdout.splitlines())} lines", "after LINES")
    messages.check(done.stderr.rstrip())
    Path("labels.tsv").write_text("old")
    again = predict("a.json.gz", "--output", "labels.tsv")
    assert (again.returncode, again.stdout, again.stderr) == (1, "", done.stderr)
    assert Path("labels.tsv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["a.json.gz", "labels.tsv"]


def test_ctrl_c_leaves_no_part_of_the_answers(model, tmp_path) -> None:
    command = [sys.executable, "-m", "shoal.cli.main", "predict", "--model", model, "--output", tmp_path / "labels"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("good lamp\n")
        process.stdin.flush()
        until(lambda: list(tmp_path.iterdir()))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_megabyte_of_standard_input_is_labelled_like_single_lines(predict) -> None:
    texts = [f"{['good', 'bad', 'dull', 'fair'][n % 4]} lamp {'x' * (n % 300)}" for n in range(9_000)]
    typed = "".join(f"{text}\n" for text in texts).encode()
    assert len(typed) > 1 << 20
    done = predict(stdin=typed)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[2] for line in lines] == texts
    assert [line[0] for line in lines[:4]] == ["positive", "negative", "negative", "positive"]
    assert {tuple(line[:2]) for line in lines[::4]} == {tuple(lines[0][:2])}


def test_control_characters_are_replaced(predict) -> None:
    letters = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0x202E]
    text = "good" + "".join(chr(letter) for letter in letters if letter != ord("\n")) + "l\u00e4mp\u00a0\u200d"
    printed = predict(stdin=f"{text}\n".encode()).stdout
    assert printed.split("\t")[2] == f"{printable(text)}\n"


def test_garbage_is_collected_again_after_the_model_is_loaded(predict, tmp_path) -> None:
    assert predict().returncode == 0
    assert gc.isenabled()
    assert predict("--model", tmp_path / "absent").returncode == 1
    assert gc.isenabled()


def test_a_plain_text_with_a_late_line_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good lamp\n" * 9000 + b"my caf\xe9 lamp\n")
    with pytest.raises(EncodingError, match="CP1252"):
        find_text_files([str(tmp_path / "a.txt")], ReadingOptions(), Settings(), unlabelled=True)
