"""Uploads to S3 and downloads, against the emulator."""

import gzip
import os
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.node.store import Bucket
from common.errors import DataError, ShoalError
from common.progress import ProgressReporter, reporting
from corpus.reading.s3 import S3Path, place_of, put_if, read_from, read_text
from shoal.aws import objects

BUCKET = "pile"
FOLDER = S3Path(BUCKET, "reviews/")


class Screen(ProgressReporter):
    """Reporter that records what it shows."""

    def __init__(self):
        self.shown = []

    def stage(self, name, total=0, unit=None):
        self.name, self.total = name, total

    def at(self, done):
        self.shown.append(done)

    def add(self, more):
        self.at((self.shown or [0])[-1] + more)


@pytest.fixture(scope="module")
def client(aws):
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


def stored(client, address):
    place = place_of(address)
    return client.get_object(Bucket=place.bucket, Key=place.key)["Body"].read()


def test_a_changed_file_is_uploaded_again_and_an_unchanged_one_is_not(client, tmp_path):
    path = tmp_path / "a.json"
    path.write_text("first")
    (address,) = objects.upload(client, [path], FOLDER)
    assert stored(client, address) == b"first"
    made = client.head_object(Bucket=BUCKET, Key="reviews/a.json")["LastModified"]
    objects.upload(client, [path], FOLDER)
    assert client.head_object(Bucket=BUCKET, Key="reviews/a.json")["LastModified"] == made
    path.write_text("other")  # of the same size
    os.utime(path, ns=(1, 1))
    objects.upload(client, [path], FOLDER)
    assert stored(client, address) == b"other"


def test_a_file_that_changes_during_its_upload_leaves_no_object(client, tmp_path, messages):
    path = tmp_path / "grows.json"
    path.write_text("first")
    changing = lambda **_: os.utime(path, ns=(1, 1))  # noqa: E731
    client.meta.events.register("before-call.s3.PutObject", changing, unique_id="changing")
    try:
        with messages.raises(ShoalError):
            objects.upload(client, [path], FOLDER)
    finally:
        client.meta.events.unregister("before-call.s3.PutObject", unique_id="changing")
    assert client.list_objects_v2(Bucket=BUCKET, Prefix="reviews/grows")["KeyCount"] == 0


def test_the_bar_ends_at_the_size_of_all_files(client, tmp_path):
    for name in ("b", "c"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    screen = Screen()
    with reporting(screen):
        objects.upload(client, [tmp_path / "b", tmp_path / "c"], FOLDER)
    assert (screen.total, screen.shown[-1]) == (2000, 2000)
    assert screen.shown == sorted(screen.shown)


def test_two_files_of_one_name_are_refused(client, tmp_path, messages):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.json").write_text(folder)
    with messages.raises(ShoalError):
        objects.upload(client, [tmp_path / "x" / "same.json", tmp_path / "y" / "same.json"], FOLDER)


@given(st.text(min_size=1), st.text(min_size=1))
def test_safe_names_stay_distinct(one, other):
    safe = objects.safe_name(one)
    assert re.fullmatch(r"[A-Za-z0-9.=+@_-]+", safe)
    assert safe[0] not in "._"
    assert (safe == objects.safe_name(other)) == (one == other)


def test_an_ordinary_name_stays_unchanged():
    assert objects.safe_name("Digital_Music_5.json.gz") == "Digital_Music_5.json.gz"
    assert objects.safe_name("two, words.json.gz").endswith(".json.gz")


def test_a_growing_object_is_read_from_an_offset(client):
    place = S3Path(BUCKET, "record")
    assert read_from(client, place, 0, 9) == b""
    client.put_object(Bucket=BUCKET, Key="record", Body=b"one")
    assert read_from(client, place, 0, 9) == b"one"
    assert read_from(client, place, 3, 9) == b""
    client.put_object(Bucket=BUCKET, Key="record", Body=b"one two")
    assert read_from(client, place, 3, 9) == b" two"
    assert read_from(client, place, 3, 2) == b" t"


def test_only_the_end_of_a_log_is_kept_and_a_huge_one_is_not_unpacked(client, monkeypatch):
    place = S3Path(BUCKET, "stderr.gz")
    assert objects.log_tail(client, place) is None
    client.put_object(Bucket=BUCKET, Key=place.key, Body=gzip.compress(b"\0" * (24 << 20) + b"\nthe end\n", 1))
    tracemalloc.start()
    text = objects.log_tail(client, place)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert text.endswith("the end")
    for damaged in (b"no gzip", gzip.compress(b"its last words" * 99)[:-9]):
        client.put_object(Bucket=BUCKET, Key="damaged.gz", Body=damaged)
        assert objects.log_tail(client, S3Path(BUCKET, "damaged.gz")) == "its log is damaged"
    monkeypatch.setattr(objects, "MOST_LOG_BYTES", 20_000_000)
    assert "more than 20.0 MB" in objects.log_tail(client, place)
    monkeypatch.setattr(objects, "MOST_LOG_BYTES", 9)
    monkeypatch.setattr(objects, "decompress", None)
    assert "more than" in objects.log_tail(client, place)


def test_a_folder_can_be_removed_except_kept_objects(client):
    for key in ("work/a", "work/b/c", "work/d"):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"")
    objects.remove(client, S3Path(BUCKET, "work/"), keep=[S3Path(BUCKET, "work/d")])
    assert list(objects.sizes(client, S3Path(BUCKET, "work/"))) == ["work/d"]
    objects.remove(client, S3Path(BUCKET, "work/"))
    assert objects.sizes(client, S3Path(BUCKET, "work/")) == {}


def test_an_object_that_s3_does_not_delete_is_an_error(client, messages):
    kept = {"Key": "work/b", "Code": "InternalError", "Message": "We encountered an internal error."}
    client.put_object(Bucket=BUCKET, Key="work/b", Body=b"")
    client.meta.events.register("after-call.s3.DeleteObjects", lambda parsed, **_: parsed.update(Errors=[kept]), "kept")
    try:
        with messages.raises(ShoalError):
            objects.remove(client, S3Path(BUCKET, "work/"))
    finally:
        client.meta.events.unregister("after-call.s3.DeleteObjects", unique_id="kept")


def test_one_of_many_writers_creates_an_object_and_knows_it_even_after_a_retry(client):
    place = S3Path(BUCKET, "claims/one")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: put_if(client, place, b"%d" % n, etag=None), range(8)))
    assert sum(won) == 1
    assert stored(client, str(place)) == b"%d" % won.index(True)
    assert put_if(client, place, b"%d" % won.index(True), etag=None)


@pytest.mark.parametrize("address", ["bucket/key", "s3://", "s3:///key", "http://x"])
def test_an_invalid_address_is_refused(address):
    with pytest.raises(DataError, match="is not an S3 address"):
        place_of(address)


@pytest.mark.parametrize("key", ["absent", "\x1babsent", "x" * 1025])
def test_an_object_is_missing_whatever_its_key_is(client, key):
    store, place = Bucket(BUCKET, client), S3Path(BUCKET, key)
    assert (store.read(key), read_text(client, place), read_from(client, place, 0, 9)) == (None, None, b"")
