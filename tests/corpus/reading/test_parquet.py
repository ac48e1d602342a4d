"""Rows of Parquet files are read in row groups, for all column types, and up to any damage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.errors import DataError
from corpus.reading import parquet
from corpus.reading.formats import Format
from corpus.reading.inputs.detect import detect_parquet_format
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.ranges import cut_into_tasks
from corpus.reading.sources import WHOLE, Inputs, ReadingOptions, Source
from tests import oracle
from tests.corpus.reading.cuts import assert_equals_oracle_reading, read

PARQUET = Format(kind="parquet", text=("title", "text"), value="rating")
ROWS = [
    {"title": "a", "text": f"text {n}", "rating": 1 + n % 5, "other": n} if n % 7 else {"title": None, "rating": 3}
    for n in range(2_000)
]


def written(path: Path, table: pa.Table, rows: int = 300) -> Source:
    pq.write_table(table, path, row_group_size=rows)
    return Source(address=str(path), size=path.stat().st_size, identity="", format=PARQUET)


@pytest.mark.parametrize("string", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("rating", [pa.int8(), pa.float64(), pa.string()])
def test_parquet_of_any_types_is_read_by_row_groups(tmp_path: Path, string, rating) -> None:
    columns = {
        "title": pa.array([row["title"] for row in ROWS]).cast(string),
        "text": pa.array([row.get("text") for row in ROWS]).cast(string),
        "rating": pa.array([row["rating"] for row in ROWS]).cast(rating),
        "other": pa.array(range(len(ROWS))),
    }
    source = written(tmp_path / "a.parquet", pa.table(columns))
    ((whole,),) = cut_into_tasks([source], 1)
    assert (whole.start, whole.end) == (0, 7)
    groups = [whole._replace(start=start, end=start + 1) for start in range(7)]
    for ranges in ([whole], groups):
        assert_equals_oracle_reading(ranges, oracle.File(ROWS, "parquet", ("title", "text"), "rating"))


def test_nulls_and_broken_strings_of_parquet_affect_only_their_rows(tmp_path: Path) -> None:
    ends = np.arange(5, dtype=np.int32).tobytes()
    broken = pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(ends), pa.py_buffer(b"a\xffbc")])
    table = pa.table({"title": broken, "text": ["t", "u", None, "v"], "rating": [1, 2, 3, None]})
    ranges = cut_into_tasks([written(tmp_path / "a.parquet", table)], 1)[0]
    rows = [
        {"title": "a", "text": "t", "rating": 1},
        {"title": b"\xff", "text": "u", "rating": 2},
        {"title": "b", "text": None, "rating": 3},
        {"title": "c", "text": "v", "rating": None},
    ]
    assert_equals_oracle_reading(ranges, oracle.File(rows, "parquet", ("title", "text"), "rating"))


def test_two_columns_of_one_name_are_refused(tmp_path: Path, messages) -> None:
    table = pa.table([["good"], ["x"], [5]], names=["text", "text", "rating"])
    pq.write_table(table, tmp_path / "a.parquet")
    with messages.raises(DataError):
        inspect_inputs(Inputs(files=(str(tmp_path),)))


def test_a_broken_label_of_parquet_does_not_hide_its_format(tmp_path: Path) -> None:
    ends = np.arange(4, dtype=np.int32).tobytes()
    labels = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(ends), pa.py_buffer(b"0\xff1")])
    pq.write_table(pa.table({"text": ["t", "u", "v"], "label": labels}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        found = detect_parquet_format("a.parquet", file, ReadingOptions(), None)
    assert found.format == Format(kind="parquet", text=("text",), value="label")
    assert found.values == {"0": 1, "1": 1}


def test_the_plain_size_counts_each_text_and_only_the_columns_to_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parquet, "_BLOCK_BYTES", 1 << 20)
    texts, others = ["good " * 20_000, "bad " * 25_000] * 50, ["c" * 90_000] * 100
    table = pa.table({"text": texts, "label": ["1", "0"] * 50, "other": others})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    with path.open("rb") as file:
        found = detect_parquet_format("a.parquet", file, ReadingOptions(), None)
        file.seek(0)
        sizes = [block.nbytes for block in parquet.blocks(parquet.open_parquet(file), 0, ["text"])]
    assert path.stat().st_size < 40_000
    assert found.rows == 100
    assert 1e7 <= found.plain_size < 1.01e7
    assert sum(sizes) >= 1e7
    assert max(sizes) <= 1 << 20


def test_damaged_parquet_is_counted_without_an_error(tmp_path: Path) -> None:
    source = written(tmp_path / "a.parquet", pa.table({"title": ["a"] * 900, "text": ["b"] * 900, "rating": [1] * 900}))
    path = Path(source.address)
    content = path.read_bytes()
    (ranges,) = cut_into_tasks([source], 1)
    path.write_bytes(content[:40] + b"\xff" * 60 + content[100:])
    found, tally = read(ranges)
    assert (tally.counts["lines"], tally.counts["malformed"]) == (len(found), 0)
    assert tally.damage_reports() == [f"{path} is damaged after {len(found)} lines"]
    assert len(found) < 900
    path.write_bytes(content[: len(content) // 2])
    ((whole,),) = cut_into_tasks([replace(source, size=len(content) // 2)], 1)
    assert whole.end == WHOLE
    _, tally = read([whole])
    assert tally.counts == {}
    assert tally.damage_reports() == [f"{path} is damaged after 0 lines"]
