"""Files are read by the documented rules, for any cuts into ranges, compressed or not, damaged or not."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import zlib
from contextlib import nullcontext

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

import corpus.reading.compression
import corpus.reading.csv_records
import corpus.reading.json_arrays
import corpus.reading.lines
import corpus.reading.storage
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import MAX_LINE_BYTES, Format, LabelEncoder
from corpus.reading.json_arrays import ArrayFile
from corpus.reading.ranges import cut_into_tasks, read_batches, read_task, task_line
from corpus.reading.sources import WHOLE, Range
from corpus.reading.tally import Tally
from tests import oracle, oracle_lines
from tests.corpus.reading.cuts import (
    LABELLED,
    PACKERS,
    SNAP,
    TWO_FIELDS,
    assert_equals_oracle_reading,
    pieces,
    read,
    source,
    whole,
)
from tests.reviews import snap_lines

JSON_LINES = st.one_of(
    st.builds(lambda text, rating: snap_lines((text, rating))[:-1], st.text(max_size=6), st.integers(0, 6)),
    st.binary(max_size=12),
    st.sampled_from([b"", b" \r", b'{"overall": 5}', b'{"reviewText": "a", "overall": true}', b"\xef\xbb\xbf", b"\0"]),
    st.sampled_from([b'{"reviewText": "a", "x": "b", "overall": "5"}', b'{"reviewText": "a", "x": 1, "overall": 7}']),
    st.sampled_from([b'{"reviewText": "a", "x": "b", "overall": []}', b'"a"', b"[1]", b"5", b"null"]),
).map(lambda line: line.replace(b"\n", b""))
CUTS = st.lists(st.integers(1, 600), max_size=6)
MARKS = st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef\xbb\xbf\xef\xbb\xbf"])

WHOLE_MARKS = st.sampled_from([b"", b"\xef\xbb\xbf"])


POLARITY = Format(kind="csv", text=("2", "3"), value="1")
HEADED = Format(kind="csv", text=("text",), value="stars", header=True, columns=("stars", "text"))
CSV_PIECES = st.sampled_from(
    ['"', '""', ",", "\n", "\r\n", "1", "2", "x", "\\n", " ", "\u00e9", "\udcff", "\0", '1,"a\n']
)


@settings(max_examples=200)
@given(
    MARKS,
    st.lists(JSON_LINES | (st.integers(0, 200) | st.integers(100, 102)).map(lambda length: b"x" * length), max_size=30),
    # Blocks are shorter than the longest line.
    st.sampled_from([*((block, MAX_LINE_BYTES) for block in (1, 2, 3, 7, 50, 1 << 20)), (1, 101), (7, 101), (50, 101)]),
    st.sampled_from(["", ".gz", ".zst"]),
    st.sampled_from([SNAP, TWO_FIELDS]),
    st.booleans(),
    CUTS,
)
def test_any_ranges_and_blocks_give_each_line_once_with_its_number(
    tmp_path, mark, lines, sizes, suffix, form, last_newline, cuts
) -> None:
    block, longest = sizes
    content = mark + b"\n".join(lines) + (b"\n" if last_newline else b"")
    with pytest.MonkeyPatch.context() as patch:
        for module in (corpus.reading.lines, corpus.reading.storage, corpus.reading.compression):
            patch.setattr(module, "BLOCK_BYTES", block)
        for module in (corpus.reading.lines, oracle_lines):
            patch.setattr(module, "MAX_LINE_BYTES", longest)
        ranges = pieces(tmp_path / "file", content, cuts, form)
        if suffix:
            (tmp_path / f"file{suffix}").write_bytes(PACKERS[suffix](content))
            ranges = [whole(tmp_path / f"file{suffix}", form)]
        assert_equals_oracle_reading(ranges, oracle.File(content, "json", form.text, form.value))


@settings(max_examples=300)
@given(
    WHOLE_MARKS,
    st.lists(CSV_PIECES, max_size=40).map("".join),
    st.sampled_from([POLARITY, HEADED]),
    st.sampled_from([1, 3, 20, 1 << 20]),
    st.sampled_from([MAX_LINE_BYTES, 25]),
)
def test_any_csv_is_read_by_the_contract_in_any_blocks(tmp_path, mark, text, form, block, longest) -> None:
    content = mark + (b"stars,text\n" if form.header else b"") + text.encode("utf-8", "surrogateescape")
    (tmp_path / "file.csv").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus.reading.storage, "BLOCK_BYTES", block)
        for module in (corpus.reading.lines, corpus.reading.csv_records, oracle_lines):
            patch.setattr(module, "MAX_LINE_BYTES", longest)
        part = whole(tmp_path / "file.csv", form)
        assert_equals_oracle_reading([part], oracle.File(content, "csv", form.text, form.value, form.header), LABELLED)


TABS = {"kind": "separated", "text": ("body",), "value": "stars", "separator": "\t", "header": True}
LINE_FORMATS = (
    (Format(**TABS, columns=("stars", "body", "more")), b"stars\tbody\tmore\r\n", b"\t"),
    (Format(kind="separated", text=("1",), value="2", separator="$LABEL$"), b"", b"$LABEL$"),
    (Format(kind="fasttext"), b"", b" "),
    (Format(kind="text"), b"", b", "),
)
CELLS = st.sampled_from(
    [
        *(b"", b"\r", b"a\r\r", b"a\0", b"\x1a", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"stars\tbody\tmore"),
        *b'1|1|2|pos|fine|NULL|"|\\n|\\t|C:\\\\|__label__1|__label__2|__label__pos'.split(b"|"),
    ]
)


@settings(max_examples=300)
@given(st.sampled_from(LINE_FORMATS), st.lists(st.lists(CELLS, max_size=4), max_size=20), st.booleans(), CUTS)
def test_any_lines_without_quotes_are_read_by_the_contract(tmp_path, line_format, lines, last_newline, cuts) -> None:
    form, header, separator = line_format
    content = header + b"\n".join(map(separator.join, lines)) + b"\n" * last_newline
    code = 1 if form.kind == "text" else None
    file = oracle.File(content, form.kind, form.text, form.value, form.header, form.separator, label=code and str(code))
    assert_equals_oracle_reading(pieces(tmp_path / "file", content, cuts, form, code), file, LABELLED)


DECODERS = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
    ".zst": zstd.ZstdDecompressor,
}


def unpackable(suffix: str, packed: bytes) -> tuple[bytes, bool]:
    """Return all data that can be decompressed, and whether the compressed data are complete."""
    content = b""
    while packed:
        decoder = DECODERS[suffix]()
        content += decoder.decompress(packed)
        if not decoder.eof:
            return content, False
        packed = decoder.unused_data
    return content, True


@pytest.mark.parametrize("suffix", DECODERS)
@pytest.mark.parametrize("form", [SNAP, HEADED], ids=["json", "csv"])
@pytest.mark.parametrize("block", [corpus.reading.compression.BLOCK_BYTES, 50])
def test_a_cut_archive_gives_its_complete_lines_and_is_counted_once(tmp_path, monkeypatch, suffix, form, block) -> None:
    monkeypatch.setattr(corpus.reading.compression, "BLOCK_BYTES", block)
    monkeypatch.setattr(corpus.reading.storage, "BLOCK_BYTES", block)
    if form.kind == "json":
        members = [snap_lines(*((f"text {n}", 1 + n % 5) for n in range(9))) + b"x\n", snap_lines(("a", 5))]
    else:
        members = [b'stars,text\n1,"a\nb"\n7,c\n', b'2,"d""\n\n"\n3,e']
    packed = b"".join(map(PACKERS[suffix], members))
    path = tmp_path / f"file{suffix}"
    for length in range(len(packed) + 1):
        path.write_bytes(packed[:length])
        content, is_whole = unpackable(suffix, packed[:length])
        file = oracle.File(content, form.kind, form.text, form.value, form.header, broken=not is_whole)
        assert_equals_oracle_reading([whole(path, form)], file)


@pytest.mark.parametrize("suffix", DECODERS)
def test_damage_in_an_archive_is_counted_once_after_the_lines_before_it(tmp_path, suffix) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(PACKERS[suffix](snap_lines(("first", 1))) + b"no archive at all")
    found, tally = read([whole(path)])
    assert found == [("first", 1)]
    assert tally.counts == {"lines": 1}
    assert tally.damage_reports() == [f"{path} is damaged after 1 line"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_memory_is_bounded_for_lines_of_any_length(tmp_path, suffix) -> None:
    path = tmp_path / f"file{suffix}"
    with gzip.open(path, "wb", compresslevel=1) if suffix else path.open("wb") as file:
        file.write(snap_lines(("before", 1)) + b'{"reviewText": "')
        for _ in range(90):
            file.write(b"x" * 1_000_000)
        file.write(b'", "overall": 5}\n' + snap_lines(("after", 2)))
    code = """
import resource, sys
from corpus.dataset_settings import Settings
from corpus.reading.formats import LabelEncoder, Format
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range
from corpus.reading.tally import Tally
before, tally = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Tally()
part = Range(sys.argv[1], 0, WHOLE, Format(kind="json", text=("reviewText",), value="overall"), None, False)
texts = [text for batch in read_batches(part, LabelEncoder(Settings()), tally) for text in batch.texts]
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(texts, tally.counts["malformed_by_reason.too_long"], grown < 40_000, grown)
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['before', 'after'] 1 True"), done.stdout


@pytest.mark.parametrize("change", [-1, 0, 1])
def test_a_file_that_grows_or_shrinks_while_it_is_read_is_refused(tmp_path, change, messages) -> None:
    path, content = tmp_path / "file", snap_lines(*((f"text {number}", 1) for number in range(600)))
    path.write_bytes(content)
    (part,) = cut_into_tasks([source(str(path), len(content))], 1)[0]
    batches = read_batches(part, LabelEncoder(Settings()), Tally())
    first = next(batches)
    os.truncate(path, len(content) + change)
    with messages.raises(DataError) if change else nullcontext():
        assert len(first.texts) + sum(len(batch.texts) for batch in batches) == 600


MIB = 1 << 20


@given(
    st.lists(st.tuples(st.integers(0, 3_000 * MIB), st.sampled_from(["a.json", "b.gz", "c.csv"])), max_size=8),
    st.integers(1, 16),
)
def test_tasks_cover_all_files_once_in_ranges_of_bounded_size(sizes, tasks) -> None:
    files = [
        source(f"{number}/{name}", size, POLARITY if name == "c.csv" else SNAP)
        for number, (size, name) in enumerate(sizes)
    ]
    dealt = cut_into_tasks(files, tasks)
    assert dealt == cut_into_tasks(files, tasks)
    assert all(dealt)
    for file in files:
        ranges = sorted(part for task in dealt for part in task if part.path == file.address)
        if file.address.endswith("a.json"):
            edges = [0, *(part.end for part in ranges)]
            assert edges[:-1] == [part.start for part in ranges]
            assert edges[-1] == file.size
            lengths = [part.end - part.start for part in ranges]
            assert all(length <= 64 * MIB for length in lengths)
            assert len(lengths) < 2 or min(lengths) >= MIB
        else:
            assert [(part.start, part.end) for part in ranges] == [(0, WHOLE)] * bool(file.size)


@pytest.mark.parametrize(("size", "tasks", "expected"), [(9 * MIB, 4, 4), (MIB, 4, 1), (5 << 30, 2, 5), (100, 8, 1)])
def test_the_number_of_tasks_is_as_requested_or_as_the_input_requires(size, tasks, expected) -> None:
    dealt = cut_into_tasks([source("a", size)], tasks)
    sizes = [sum(part.end - part.start for part in task) for task in dealt]
    assert len(dealt) == expected
    assert max(sizes) <= min(sizes) * 1.01 + 1


def test_a_task_is_read_as_it_was_written() -> None:
    ranges = [
        Range("s3://b\u00fccket/a\tb\n", 0, 5, SNAP, None, False),
        Range("/b", 5, WHOLE, HEADED, 1, True),
        Range("/c", 1 << 40, 1 << 41, SNAP, None, False),
    ]
    line = task_line(ranges)
    assert line.isascii()
    assert b"\n" not in line
    assert b"\t" not in line
    assert read_task(line) == ranges


JSON_VALUES = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(
    elements=st.lists(JSON_VALUES, min_size=1, max_size=6),
    key=st.none() | st.text(min_size=1),
    spaced=st.booleans(),
    block=st.integers(1, 40),
)
def test_an_array_has_the_same_elements_in_blocks_of_any_size(elements, key, spaced, block) -> None:
    whole = [{"first": 1}, *elements]
    content = json.dumps(whole if key is None else {key: whole, "": [1, [{}]]}, indent=2 * spaced or None).encode()
    blocks = (content[start : start + block] for start in range(0, len(content), block))
    assert [json.loads(each) for some in ArrayFile(blocks, "").elements() for each in some] == whole


def test_a_value_above_the_limit_is_refused_after_the_elements_before_it(monkeypatch) -> None:
    monkeypatch.setattr(corpus.reading.json_arrays, "MAX_LINE_BYTES", 9)
    content = b'[{"a": 1}, {"a": "%s\\"]"}, {"a": 12}, 7]' % (b"x" * 99)
    for block in (1, 7, 16, len(content)):
        blocks = (content[start : start + block] for start in range(0, len(content), block))
        elements = ArrayFile(blocks, "a.json").elements()
        assert next(elements) == [b'{"a": 1}']
        with pytest.raises(DataError, match="has a value of more than"):
            next(elements)
