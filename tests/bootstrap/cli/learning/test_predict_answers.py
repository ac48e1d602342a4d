"""`shoal predict`: kept fields of the input, and answers in a file."""

import gzip
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.bootstrap.cli.answered_files import (
    FIVE,
    as_csv,
    as_folder,
    as_gzip,
    as_json,
    as_labels,
    as_parquet,
    json_lines,
)
from tests.waiting import PATIENCE, until

AS_KEPT = {
    as_json: ["overall"],
    as_gzip: ["overall"],
    as_csv: ["stars"],
    as_labels: ["1"],
    as_parquet: ["rating"],
    as_folder: ["overall"],
}


@pytest.mark.parametrize("way", AS_KEPT, ids=lambda way: way.__name__)
def test_fields_of_every_format_can_be_kept(
    way: Callable[[Path], list[str]], answers_of: Callable[..., Any], tmp_path: Path
) -> None:
    (field,) = AS_KEPT[way]
    answers, _ = answers_of(*way(tmp_path), "--keep", field)
    expected = [("pos" if rating > 3 else "neg") if way is as_labels else rating for _, rating in FIVE]
    assert [each["label"] for each in answers] == ["positive", "negative", "positive", "positive", "negative"]
    assert [each["text"] for each in answers] == [text for text, _ in FIVE]
    kept = [each["fields"][field] for each in answers]
    assert kept == ([str(value) for value in expected] if way is as_csv else expected)


def test_fields_are_kept_in_order_and_dates_as_text(answers_of: Callable[..., Any], tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = {"text": ["good", "bad"], "day": [date(2026, 1, 2), None], "raw": [b"\xff", b"a"], "tags": [["a"], []]}
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    answers, _ = answers_of("a.parquet", "--keep", "tags", "day", "raw")
    assert [list(each["fields"].items()) for each in answers] == [
        [("tags", ["a"]), ("day", "2026-01-02"), ("raw", "\ufffd")],
        [("tags", []), ("day", None), ("raw", "a")],
    ]


def test_answers_go_into_a_file_that_appears_whole(predicted: Callable[..., Any], tmp_path: Path) -> None:
    as_json(tmp_path)
    printed = predicted("a.json")
    status, out, err = predicted("a.json", "--output", "new/labels.tsv")
    assert (status, out, err) == (0, "", printed[2])
    assert (tmp_path / "new" / "labels.tsv").read_text() == printed[1]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["labels.tsv"]


def test_an_error_keeps_the_old_answers(predicted: Callable[..., Any], tmp_path: Path) -> None:
    noise = json_lines([(f"good {n * 7919 % 10007:x}", 5) for n in range(500)])
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(noise)[:-200])
    (tmp_path / "labels.tsv").write_text("old")
    status, out, err = predicted("a.json.gz", "--output", "labels.tsv")
    assert (status, out) == (1, "")
    assert "is damaged" in err
    assert (tmp_path / "labels.tsv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.gz", "labels.tsv"]


def test_ctrl_c_leaves_no_part_of_the_answers(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bootstrap.cli.main", "predict", "--model", model, "--output", tmp_path / "labels"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        running.stdin.write("good lamp\n")
        running.stdin.flush()
        until(lambda: list(tmp_path.iterdir()))
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)
        assert running.returncode == 130
    assert list(tmp_path.iterdir()) == []
