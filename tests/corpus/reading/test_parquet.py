"""Rows of Parquet files: by row groups, whatever their types, and as far as damage lets them be read."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.errors import DataError
from corpus.reading.formats import Codes, Format
from corpus.reading.inputs.parquet_format import detect_parquet_format
from corpus.reading.inputs.understanding import understand_inputs
from corpus.reading.parquet import blocks, open_parquet
from corpus.reading.ranges import cut_into_tasks, read_batches
from corpus.reading.sources import WHOLE, Inputs, Range, ReadingOptions, Source
from corpus.reading.tally import DamagedFile, Tally
from tests import oracle
from tests.corpus.reading.cuts import RATED, assert_as_the_oracle, read, whole

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
def test_parquet_is_read_by_row_groups_whatever_its_types(tmp_path: Path, string, rating) -> None:
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
        assert_as_the_oracle(ranges, oracle.File(ROWS, "parquet", ("title", "text"), "rating"))


def test_texts_without_the_annotation_of_utf8_and_decimals_are_read(tmp_path: Path) -> None:
    texts = pa.array([b"caf\xc3\xa9", b"\xff", None, b"a"], pa.binary())
    ratings = pa.array([Decimal(5), Decimal(1), Decimal(3), Decimal("2.5")], pa.decimal128(38, 10))
    for name, column in (("a", texts), ("b", texts.dictionary_encode())):
        table = pa.table({"text": column, "rating": ratings, "id": ratings})
        pq.write_table(table, tmp_path / f"{name}.parquet", store_decimal_as_integer=False)
        found = understand_inputs(Inputs(files=(str(tmp_path / f"{name}.parquet"),)))
        assert found.values == {"5": 1, "1": 1, "3": 1, "2.5": 1}
        rows, tally = read(map(whole, [tmp_path / f"{name}.parquet"], [found.sources[0].format]))
        assert rows == [("caf\u00e9", 5), ("", 3)]
        assert tally.counts == {
            "lines": 4,
            "malformed": 2,
            "malformed_by_reason.not_utf8": 1,
            "malformed_by_reason.bad_rating": 1,
        }


def test_a_large_value_of_a_dictionary_is_not_repeated_in_memory(tmp_path: Path) -> None:
    large = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), pa.array(["a" * 8_000_000]))
    table = pa.table({"text": large, "rating": [5] * 256})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "a.parquet").stat().st_size < 4_000
    pq.write_table(pa.table({"text": [f"text {n}" for n in range(256)]}), tmp_path / "b.parquet")
    for name, most in (("a.parquet", 8), ("b.parquet", 256)):
        with (tmp_path / name).open("rb") as file:
            sizes = [block.num_rows for block in blocks(open_parquet(file), file, 0, ["text"])]
        assert (sum(sizes), max(sizes)) == (256, most)


def test_nulls_and_broken_strings_of_parquet_are_read_one_by_one(tmp_path: Path) -> None:
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
    assert_as_the_oracle(ranges, oracle.File(rows, "parquet", ("title", "text"), "rating"))


def test_columns_in_the_path_are_columns_of_parquet(tmp_path: Path) -> None:
    for folder in ("stars=5/to=a%2Fb", "stars=1/to=c", "stars=__HIVE_DEFAULT_PARTITION__/to=d"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"text": [f"text of {folder}", "more"]}), tmp_path / folder / "a.parquet")
    found = understand_inputs(Inputs(files=(str(tmp_path),), options=ReadingOptions(keep=("to",))))
    assert {source.format for source in found.sources} == {
        Format(kind="parquet", text=("text",), value="stars", keep=("to",))
    }
    assert found.sample.values == {"5": 2, "1": 2}
    assert found.sample.malformed_by_reason == {"no_rating": 2}
    source = next(source for source in found.sources if "stars=5" in source.address)
    (kept,) = {
        kept
        for batch in read_batches(whole(Path(source.address), source.format), Codes(RATED), Tally())
        for kept in batch.kept
    }
    assert kept == ("a/b",)


def test_fields_in_structs_are_columns(tmp_path: Path) -> None:
    rows = [{"body": "good", "by": {"stars": 5, "a.b": 1}}, {"body": "bad", "by": None}, None]
    pq.write_table(pa.table({"review": rows, "id": [1, 2, 3]}), tmp_path / "a.parquet")
    options = ReadingOptions(text=("review.body",), rating="review.by.stars", keep=("id",))
    (source,) = understand_inputs(Inputs(files=(str(tmp_path),), options=options)).sources
    found, tally = read([whole(Path(source.address), source.format)])
    assert found == [("good", 5)]
    assert tally.counts["malformed_by_reason.no_rating"] == 2
    with pytest.raises(DataError, match=r"review.body \(string\), review.by.stars \(int64\), id \(int64\)"):
        understand_inputs(Inputs(files=(str(tmp_path),), options=ReadingOptions(text=("review.b",))))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([["good"], ["x"], [5]], names=["text", "text", "rating"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"two columns of .*a\.parquet are named 'text'; rename one"):
        understand_inputs(Inputs(files=(str(tmp_path),)))


def test_a_broken_label_of_parquet_does_not_hide_its_format(tmp_path: Path) -> None:
    ends = np.arange(4, dtype=np.int32).tobytes()
    labels = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(ends), pa.py_buffer(b"0\xff1")])
    pq.write_table(pa.table({"text": ["t", "u", "v"], "label": labels}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        found = detect_parquet_format("a.parquet", file, ReadingOptions(), None)
    assert found is not None
    assert found.format == Format(kind="parquet", text=("text",), value="label")
    assert found.values == {"0": 1, "1": 1}


def test_damaged_parquet_is_counted_and_not_fatal(tmp_path: Path) -> None:
    source = written(tmp_path / "a.parquet", pa.table({"title": ["a"] * 900, "text": ["b"] * 900, "rating": [1] * 900}))
    path = Path(source.address)
    content = path.read_bytes()
    (ranges,) = cut_into_tasks([source], 1)
    path.write_bytes(content[:40] + b"\xff" * 60 + content[100:])
    found, tally = read(ranges)
    assert (tally.counts["lines"], tally.counts["malformed"]) == (len(found), 0)
    assert [(damage.file, damage.lines) for damage in tally.damaged_files()] == [(str(path), len(found))]
    assert len(found) < 900
    path.write_bytes(content[: len(content) // 2])
    ((whole,),) = cut_into_tasks([replace(source, size=len(content) // 2)], 1)
    assert whole.end == WHOLE
    _, tally = read([whole])
    assert tally.counts == {}
    assert tally.damaged_files() == [DamagedFile(file=str(path), lines=0, bytes=0)]


def test_what_is_read_of_damaged_parquet_does_not_depend_on_how_it_is_cut(tmp_path: Path) -> None:
    texts = [f"{number} {number * number} text" for number in range(3_000)]
    table = pa.table({"title": texts, "text": texts, "rating": [5] * len(texts)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=1_000, compression="gzip")
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    place = column.dictionary_page_offset + column.total_compressed_size // 2
    content[place : place + 40] = b"\xff" * 40
    path.write_bytes(content)
    at_once, by_group = (
        read([Range(str(path), *pair, PARQUET, None, False) for pair in pairs])
        for pairs in ([(0, 3)], [(0, 1), (1, 2), (2, 3)])
    )
    assert at_once[0] == by_group[0]
    assert [text.partition(" ")[0] for text, _ in at_once[0]][-1_000:] == [str(n) for n in range(2_000, 3_000)]
    assert at_once[1].damaged_files() == by_group[1].damaged_files()
    assert at_once[1].damaged_files()[0].lines == len(at_once[0]) < 3_000


@pytest.mark.parametrize(("rating", "refused"), [(5, True), (1, False)])
def test_a_column_with_other_values_than_its_path_gives_is_refused(tmp_path: Path, rating: int, refused: bool) -> None:
    (tmp_path / "rating=1").mkdir()
    path = tmp_path / "rating=1" / "p.parquet"
    written(path, pa.table({"text": ["good", "bad"], "rating": [rating, rating]}))
    with path.open("rb") as file:
        if refused:
            with pytest.raises(DataError, match="says that rating is '1', but the file's own column rating has '5'"):
                detect_parquet_format(str(path), file, ReadingOptions(), None)
        else:
            assert detect_parquet_format(str(path), file, ReadingOptions(), None)
