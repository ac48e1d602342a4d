"""`shoal predict` as a person types it: what it reads, what it answers, and how the answers compare."""

import gc
import gzip
import json
import os
import shlex
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from bootstrap.cli.main import main
from bootstrap.prediction.standard_input import blocks, bytes_to_come
from tests.bootstrap.cli.answered_files import (
    FIVE,
    WAYS,
    as_folder,
    as_json,
    json_lines,
)
from tests.bootstrap.cli.known_model import save

ANSWERS = ["positive", "negative", "positive", "positive", "negative"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_format_of_preprocessing_is_labelled_in_order_and_scored(
    way: Callable[[Path], list[str]], told: Callable[..., Any], tmp_path: Path
) -> None:
    answers, together = told(*way(tmp_path))
    assert [each["label"] for each in answers] == ANSWERS
    assert [each["text"] for each in answers] == [text for text, _ in FIVE]
    assert (together["records"], together["malformed"], together["unknown"]) == (5, 0, 0)
    scores = together["scores"]
    assert scores.pop("confusion") == {
        "true_positive": 2,
        "false_positive": 1,
        "false_negative": 1,
        "true_negative": 1,
    }
    of_classes = {"balanced_accuracy": 7 / 12, "macro_f1": 7 / 12, "f1_positive": 2 / 3, "f1_negative": 1 / 2}
    assert scores == pytest.approx({"accuracy": 3 / 5, "majority": 3 / 5, **of_classes})


@pytest.mark.parametrize(("threshold", "positive"), [("0", 5), ("0.52", 3), ("0.56", 2), ("1", 0)])
def test_a_text_is_positive_above_the_threshold(
    threshold: str, positive: int, told: Callable[..., Any], tmp_path: Path
) -> None:
    answers, together = told(*as_json(tmp_path), "--threshold", threshold)
    assert sum(each["label"] == "positive" for each in answers) == positive
    confusion = together["scores"]["confusion"]
    assert confusion["true_positive"] + confusion["false_positive"] == positive


def test_files_without_ratings_are_labelled_and_the_missing_scores_are_explained(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"text": "good lamp"}\n{"text": "bad lamp"}\n')
    answers, together = told("a.json")
    assert [each["label"] for each in answers] == ["positive", "negative"]
    assert together["scores"] is None
    assert "which field of" in together["not_scored"]
    assert "--rating-field" in together["not_scored"]


def test_labels_of_unknown_meaning_give_no_scores(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"text": "good", "label": "glad"}\n{"text": "bad", "label": "sad"}\n')
    _, together = told("a.json")
    assert together["scores"] is None
    assert "--positive-label" in together["not_scored"]
    _, together = told("a.json", "--positive-label", "glad")
    assert together["scores"]["accuracy"] == 1.0


def test_each_line_of_plain_text_is_a_text(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfgood lamp\r\n\nbad, sad\nfair"))
    answers, together = told("a.txt.gz")
    assert [each["text"] for each in answers] == ["good lamp", "", "bad, sad", "fair"]
    assert [each["label"] for each in answers] == ["positive", "unknown", "negative", "positive"]
    assert (together["scores"], together["not_scored"], together["unknown"]) == (None, None, 1)


def test_malformed_records_have_no_line_and_are_counted(told: Callable[..., Any], tmp_path: Path) -> None:
    records = json_lines(FIVE).splitlines()
    (tmp_path / "a.json").write_bytes(b"\n".join([records[0], b"{", *records[1:], b'{"reviewText": "x"}', b""]))
    answers, together = told("a.json")
    assert [each["label"] for each in answers] == ANSWERS
    assert (together["records"], together["malformed"]) == (7, 2)
    assert [(each["reason"], each["line"]) for each in together["malformed_lines"]] == [
        ("not_json", 2),
        ("no_rating", 7),
    ]


def test_excluded_files_are_left_out(
    told: Callable[..., Any], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = as_folder(tmp_path)
    (tmp_path / "many" / "3.json.gz").write_bytes(gzip.compress(json_lines(FIVE))[:15])
    (tmp_path / "many" / "4.csv").write_text('"fair lamp",2\n"good",4\n')
    assert main(["predict", "--model", str(model), *files]) == 1
    assert "leave out by --exclude" in capsys.readouterr().err
    answers, together = told(*files, "--exclude", "3.json.gz", "*.csv")
    assert [each["label"] for each in answers] == ANSWERS
    assert together["records"] == 5


def test_texts_without_a_known_word_are_not_scored(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(json_lines([*FIVE, ("the", 1)]))
    answers, together = told("a.json")
    assert answers[-1]["label"] == "unknown"
    assert together["unknown"] == 1
    assert sum(together["scores"]["confusion"].values()) == 5


def test_ratings_count_as_positive_as_in_training_unless_options_change_it(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(json_lines([("good", 3), ("bad", 2)]))
    assert told("a.json")[1]["scores"]["confusion"]["false_positive"] == 1
    assert told("a.json", "--positive-from", "3")[1]["scores"]["confusion"]["true_positive"] == 1


HALVES = {"rating_steps": 2, "rating_fraction": True}


@pytest.mark.parametrize(
    ("scale", "about", "ratings", "options"),
    [
        ((1, 10, 7), HALVES, ("3.5", "3", "0.5", "5"), []),
        ((1, 10, 7), HALVES, ("3.5/5", "3/5", "2.5", "5/5"), []),
        ((1, 10, 7), HALVES, ("3.5", "3", "0.5", "5"), ["--half-stars"]),
        ((1, 10, 7), HALVES, ("5", "4.5", "1", "4.5"), ["--positive-from", "4.5"]),
        ((1, 10, 7), {}, ("3.5", "3", "0.5", "5"), ["--half-stars"]),
        ((1, 5, 4), {"rating_steps": 1, "rating_fraction": False}, ("4", "3.5", "1", "5"), ["--half-stars"]),
    ],
)
def test_ratings_are_read_as_the_model_learnt_them(
    scale: tuple[int, int, int],
    about: dict[str, Any],
    ratings: tuple[str, ...],
    options: list[str],
    told: Callable[..., Any],
    tmp_path: Path,
) -> None:
    save(tmp_path, scale, **about)
    texts = ("good lamp", "good lamp", "bad lamp", "bad lamp")
    rows = [{"text": text, "rating": rating} for text, rating in zip(texts, ratings, strict=True)]
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, together = told("a.json", "--model", str(tmp_path), *options)
    assert together["malformed"] == 0
    confusion = together["scores"]["confusion"]
    third = int("--positive-from" in options)
    assert confusion == {
        "true_positive": 1 + third,
        "false_positive": 1 - third,
        "false_negative": 1,
        "true_negative": 1,
    }


def test_a_person_sees_a_line_for_each_text_and_a_table(said: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(json_lines([("good\nlamp\tit\x1b[31m", 5), *FIVE[1:]]) + b"{\n")
    status, out, err = said("a.json")
    assert status == 0
    assert [len(line.split("\t")) for line in out.splitlines()] == [3] * 5
    assert out.startswith("positive\t1.0000\tgood lamp it [31m\n")
    assert "accuracy               60.0% (always the majority: 60.0%)" in err
    assert "the files say  called positive  called negative" in err
    assert "malformed, without an answer: 1 of 6 records" in err
    assert max(len(line) for line in err.splitlines() if str(tmp_path) not in line) <= 80


def test_a_damaged_archive_is_an_error_after_its_readable_texts(said: Callable[..., Any], tmp_path: Path) -> None:
    noise = json_lines([(f"good {n * 7919 % 10007:x}", 5) for n in range(500)])
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(noise)[:-200])
    status, out, err = said("a.json.gz")
    assert status == 1
    assert out.startswith("positive\t")
    read = len(out.splitlines())
    assert f"a.json.gz (lines that can be read: {read}; bytes of them: " in err
    assert ") is damaged, and nobody knows what is lost; download it again" in err


def test_ratings_on_another_scale_end_with_the_whole_command_that_reads_them(
    said: Callable[..., Any], model: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(json_lines([("good lamp" if n > 6 else "bad lamp", n) for n in range(1, 11)]))
    status, out, err = said("a.json")
    assert (status, out) == (1, "")
    assert "5 of the first 10 ratings are not from 1 to 5" in err
    again = shlex.split(err.rpartition("type:")[2])
    assert again == shlex.split(f"shoal predict --model {model} a.json --rating-range 1 10 --positive-from 7")
    status, out, err = said(*again[4:])
    assert (status, len(out.splitlines())) == (0, 10)
    assert "accuracy               100.0%" in err


def test_each_line_of_standard_input_is_a_text_in_any_format(
    said: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b'good\r\n\n{"text": "bad"}')))
    status, out, err = said()
    assert (status, err) == (0, "")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["positive", "unknown", "negative"]


def test_all_that_waits_in_a_pipe_is_read_at_once_and_a_single_line_as_soon_as_it_arrives() -> None:
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
    said: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{['good', 'bad', 'dull', 'fair'][n % 4]} lamp {'x' * (n % 300)}" for n in range(9_000)]
    given = "".join(f"{text}\n" for text in texts)
    assert len(given) > 1 << 20
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given.encode())))
    status, out, err = said()
    assert (status, err) == (0, "")
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[2] for line in lines] == texts
    assert [line[0] for line in lines[:4]] == ["positive", "negative", "negative", "positive"]
    assert {tuple(line[:2]) for line in lines[::4]} == {tuple(lines[0][:2])}


def test_no_character_of_a_text_ends_its_line_or_is_a_command_to_the_terminal(
    said: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
    text = "good" + "".join(chr(letter) for letter in letters if letter != ord("\n")) + "l\u00e4mp\u00a0\u200d"
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(f"{text}\n".encode())))
    _, out, _ = said()
    assert out.split("\t")[2] == f"good{' ' * (len(letters) - 1)}l\u00e4mp\u00a0\u200d\n"


def test_garbage_is_collected_again_after_the_model_is_loaded(said: Callable[..., Any], tmp_path: Path) -> None:
    as_json(tmp_path)
    assert said("a.json")[0] == 0
    assert gc.isenabled()
    assert said("a.json", "--model", str(tmp_path / "absent"))[0] == 1
    assert gc.isenabled()
