import bz2
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.faults.kinds import CutConnection
from shoal_local_aws.hadoop.inputs import FileSplit, compute_splits, input_files, read_lines
from shoal_local_aws.hadoop.paths import Entry, Files
from tests.local_aws.waiting import PATIENCE

FILES = Files()


def read(path, maps, *, only_newline=False):
    entries = input_files(FILES, f"file://{path}")
    cut = compute_splits(entries, {"mapreduce.job.maps": str(maps)})
    return [b"".join(read_lines(FILES, split, only_newline=only_newline)) for split in cut]


@given(st.lists(st.text("ab", max_size=9), max_size=40), st.integers(1, 12))
def test_every_line_is_in_exactly_one_split(tmp_path_factory, texts, maps):
    path = tmp_path_factory.mktemp("split") / "input"
    content = "".join(f"{text}\n" for text in texts).encode()
    path.write_bytes(content)
    assert b"".join(read(path, maps)) == content


@given(st.integers(0, 1000), st.integers(1, 12))
def test_splits_cover_a_file_without_overlap(size, maps):
    entry = Entry(path="s3://bucket/key", size=size, folder=False)
    cut = compute_splits([entry], {"mapreduce.job.maps": str(maps)})
    assert [split.start for split in cut] == [sum(s.length for s in cut[:i]) for i in range(len(cut))]
    assert sum(split.length for split in cut) == size


@pytest.mark.parametrize(
    ("name", "content", "maps", "read_as"),
    [
        ("input", b"one\ntwo", 1, b"one\ntwo\n"),
        ("input", b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", 1, b"one\n\xef\xbb\xbftwo\n"),
        ("a.gz", gzip.compress(b"line\n" * 1000), 8, b"line\n" * 1000),
        ("a.bz2", bz2.compress(b"line\n" * 1000), 8, b"line\n" * 1000),
    ],
    ids=["no last newline", "byte order mark", "gz", "bz2"],
)
def test_a_file_is_read_as_one_split(name, content, maps, read_as, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path / name, maps) == [read_as]


def test_with_newline_as_delimiter_a_carriage_return_is_kept(tmp_path):
    (tmp_path / "input").write_bytes(b"a\rb\r\nc\n")
    assert read(tmp_path / "input", 1, only_newline=True) == [b"a\rb\r\nc\n"]


@pytest.mark.parametrize(("glob", "found"), [("", ["a.json", "b.json", "c.txt"]), ("/*.json", ["a.json", "b.json"])])
def test_inputs_are_the_visible_files_of_a_folder_or_a_glob(glob, found, tmp_path):
    for name in ("_SUCCESS", ".part", "a.json", "b.json", "c.txt"):
        (tmp_path / name).write_bytes(b"x\n")
    assert [entry.name for entry in input_files(FILES, f"file://{tmp_path}{glob}")] == found


@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", b"bc"]), max_size=30), st.integers(1, 4))
def test_a_carriage_return_ends_a_line(tmp_path_factory, pieces, maps):
    path = tmp_path_factory.mktemp("returns") / "input"
    content = b"".join(pieces)
    path.write_bytes(content)
    plain = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert b"".join(read(path, maps)).splitlines() == plain.splitlines()


@pytest.mark.parametrize(
    "path", ["file://{}/missing", "file://{}/*.gz", "file://{}/above", "/data/reviews", "gs://data"]
)
def test_a_missing_input_is_named(tmp_path, path, messages):
    (tmp_path / "above" / "below").mkdir(parents=True)
    with messages.raises(EmulatorError):
        input_files(FILES, path.format(tmp_path))


def test_a_split_has_at_most_one_block():
    cut = compute_splits([Entry(path="s3://b/k", size=100 << 20, folder=False)], {"mapreduce.job.maps": "1"})
    assert cut[0] == FileSplit(path="s3://b/k", start=0, length=32 << 20)


def test_an_object_is_read_from_any_offset_despite_broken_connections(aws):
    content = bytes(range(200))
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="ranges")
    s3.put_object(Bucket="ranges", Key="key", Body=content)
    with aws.faults.during(CutConnection(least=1, times=9)), Files().open("s3://ranges/key", 10) as stream:
        assert stream.read(100) == content[10:110]


def test_an_object_is_downloaded_once_until_it_is_written_or_removed(aws, tmp_path):
    s3, files, path = boto3.client("s3"), Files(), "s3://rewritten/key"
    s3.create_bucket(Bucket="rewritten")
    s3.put_object(Bucket="rewritten", Key="key", Body=b"first")
    (tmp_path / "second").write_bytes(b"second")

    def content():
        with files.open(path) as stream:
            return stream.read()

    assert content() == b"first"
    files.put(tmp_path / "second", path)
    assert content() == b"second"
    s3.put_object(Bucket="rewritten", Key="key", Body=b"of somebody else")
    assert content() == b"second"
    files.remove(path)
    with pytest.raises(ClientError, match="404"):
        content()


def test_downloads_do_not_block_each_other(monkeypatch):
    slow, resume = threading.Event(), threading.Event()

    def download(_bucket, key, target, **_):
        if key == "slow":
            slow.set()
            assert resume.wait(PATIENCE)
        Path(target).write_text(key)

    files = Files()
    monkeypatch.setattr(Files, "_s3", Mock(download_file=Mock(side_effect=download)))
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(files.open, "s3://b/slow") for _ in range(2)]
        assert slow.wait(PATIENCE)
        with files.open("s3://b/other") as stream:
            assert stream.read() == b"other"
        resume.set()
        for each in both:
            with each.result(PATIENCE) as stream:
                assert stream.read() == b"slow"
    assert files._s3.download_file.call_count == 2
