"""Inspecting the beginnings of files finds their formats, a sample, and an estimate of their size."""

import gzip
import io
import lzma
import os
import zlib
from operator import itemgetter
from pathlib import Path
from zipfile import ZipFile

import boto3
import pyarrow as pa
import pytest
from backports import zstd
from pyarrow import parquet

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.corpus.reading.inputs.beginnings import SNAP_2014, TABLE, content_of, inspected, page, written
from tests.reviews import json_lines


@pytest.mark.parametrize("row", TABLE["cases"], ids=itemgetter("case"))
def test_files_are_inspected_or_refused_with_a_message(tmp_path, row, messages) -> None:
    files = row.get("files", {})
    for name, content in files.items():
        written(tmp_path, name, content_of(content))
    assert page(tmp_path, row.get("inputs", {"files": [*files]}), row.get("options", {}), messages) == row["found"]


def parquet_bytes(folder: Path, columns: dict[str, object], **options: object) -> bytes:
    parquet.write_table(pa.table(columns), folder / "made", **options)
    content = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return content


def test_parquet_is_detected_from_its_schema_and_reports_its_rows(tmp_path) -> None:
    texts = [f"a fine lamp number {number}" for number in range(5_000)]
    content = parquet_bytes(tmp_path, {"text": texts, "rating": [1, 5] * 2_500, "x": [0] * 5_000}, row_group_size=900)
    found = inspected(tmp_path, "a.parquet", content)
    assert found.sources[0].format == Format(kind="parquet", text=("text",), value="rating")
    assert found.rows == 5_000
    assert found.sample.values == {"1": 2_500, "5": 2_500}


def zipped(name: str) -> bytes:
    with ZipFile(made := io.BytesIO(), "w") as archive:
        archive.writestr(name, SNAP_2014)
    return made.getvalue()


def wide_zst(content: bytes) -> bytes:
    """Compress as `zstd --long=31` does. Without this option, `zstd -d` cannot decompress the result."""
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 31})
    return packer.compress(content) + packer.flush()


def large_xz(content: bytes) -> bytes:
    """Return an xz file that declares a dictionary of 4 GiB in its header: code 40 (xz-file-format.txt, 5.3.1)."""
    packed = bytearray(lzma.compress(content))
    header = slice(12, 12 + 4 * packed[12])
    packed[packed.index(b"\x21\x01") + 2] = 40
    packed[header.stop : header.stop + 4] = zlib.crc32(packed[header]).to_bytes(4, "little")
    return bytes(packed)


SKIPPABLE = b"\x50\x2a\x4d\x18\4\0\0\0size"
READ = {
    "a.json.GZ": gzip.compress(SNAP_2014),
    "a.JSON.XZ": lzma.compress(SNAP_2014),
    "a.json.zst": wide_zst(SNAP_2014),
    "b.json.zst": SKIPPABLE + zstd.compress(SNAP_2014) + SKIPPABLE + zstd.compress(SNAP_2014),
}
REFUSED = {
    "twice.json.gz": gzip.compress(gzip.compress(SNAP_2014)),
    "zip.csv": zipped("a.json"),
    "a.xlsx": zipped("a.json"),
    "a.TAR.GZ": gzip.compress(b"x"),
    "a.parquet.gz": gzip.compress(b"PAR1" * 9),
    "utf-32.json": SNAP_2014.decode().encode("utf-32"),
    "returns.csv": b"text,rating\rfine,5\rbad,1\r",
    "large.json.xz": large_xz(SNAP_2014),
}


@pytest.mark.parametrize("name", READ)
def test_compressed_files_with_any_suffix_and_frames_are_read(tmp_path, name) -> None:
    found = inspected(tmp_path, name, READ[name])
    assert found.sample.lines == (4 if name.startswith("b") else 2)
    assert not found.sample.tally.damage_reports()


@pytest.mark.parametrize("name", REFUSED)
def test_an_unreadable_file_is_refused_with_its_format(tmp_path, name, messages) -> None:
    with messages.raises(DataError):
        inspected(tmp_path, name, REFUSED[name])


def test_a_damaged_archive_is_read_up_to_the_damage(tmp_path) -> None:
    content = gzip.compress(json_lines(*({"reviewText": os.urandom(30).hex(), "overall": 5} for _ in range(2_000))))
    found = inspected(tmp_path, "a.json.gz", content[: len(content) // 2])
    assert found.sample.tally.counts["malformed"] == 0
    assert len(found.sample.tally.damage_reports()) == 1
    assert found.sample.values["5"] > 500


def test_hundreds_of_files_are_inspected_with_few_reads_each(tmp_path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.json").write_bytes(SNAP_2014)
    found = inspect_inputs(Inputs(files=(str(tmp_path),)))
    assert len(found.sources) == 300
    assert len(found.sample.files) == 20
    assert found.rows == 600


def test_settings_get_the_values_of_the_input(tmp_path) -> None:
    train, test = (written(tmp_path, name, b"label,text\nyes,a\nno,b\n") for name in ("a.csv", "b.csv"))
    options = ReadingOptions(positive_label="yes")
    found = inspect_inputs(Inputs(files=(train,), test=(test,), options=options)).settings(Settings(row_length=7))
    assert found == Settings(
        row_length=7, labelled=True, positive_label="yes", negative_labels=("no",), test_input=True
    )


TOPICS = content_of("topics")


def test_too_many_labels_of_no_class_are_refused_before_the_work(tmp_path, messages) -> None:
    found = inspected(tmp_path, "a.txt", TOPICS, classes=("10", "2", "arts"))
    settings = found.settings(Settings(ragged=True))
    with messages.raises(DataError):
        found.check_values(settings, 0.2)
    found.check_values(settings, 0.25)
    assert found.sample.tally.malformed_by_reason == {"bad_label": 1}


@pytest.mark.usefixtures("pile")
def test_s3_objects_are_inspected_like_local_files(tmp_path) -> None:
    contents = {
        "a.json": SNAP_2014,
        "b.json.gz": gzip.compress(content_of("SNAP 2023") * 1_000),
        "c.parquet": parquet_bytes(tmp_path, {"text": ["a", "b"], "rating": [1, 5]}),
        "d.json": SNAP_2014 * 50_000,
    }
    for key, content in contents.items():
        boto3.client("s3").put_object(Bucket="pile", Key=f"reviews/{key}", Body=content)
        written(tmp_path, key, content)
    there, here = (inspect_inputs(Inputs(files=(place,))) for place in ("s3://pile/reviews/", str(tmp_path)))
    assert [source.format for source in there.sources] == [source.format for source in here.sources]
    assert (there.rows, there.plain_bytes, there.sample.values) == (here.rows, here.plain_bytes, here.sample.values)
