"""Files are read and written locally, and with the real S3 client on the embedded AWS, also under faults."""

import gzip
import os
import random
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from shoal_local_aws.faults.kinds import CutConnection, S3Error, Throttled

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading import s3, storage
from corpus.reading.formats import Format, LabelEncoder
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range
from corpus.reading.tally import Tally

BODY = random.Random(5).randbytes(3 << 20)
LINES = b"".join(b'{"reviewText": "text %d of many", "overall": %d}\n' % (n, 1 + n % 5) for n in range(60_000))
SNAP = Format(kind="json", text=("reviewText",), value="overall")


@pytest.fixture(scope="module", autouse=True)
def objects(pile) -> None:
    packed = {"lines.json.gz": gzip.compress(LINES, 1)}
    for key, content in {"body": BODY, "lines.json": LINES, "empty": b"", **packed}.items():
        s3.client().put_object(Bucket="pile", Key=key, Body=content)


def read(address: str, start: int = 0, end: int = WHOLE, form: Format = SNAP) -> list[str]:
    part = Range(address, start, end, form, None, False)
    return [text for batch in read_batches(part, LabelEncoder(Settings()), Tally()) for text in batch.texts]


def fail(address: str) -> None:
    """Write a part of a file, then raise an error."""
    try:
        with storage.writable(address) as path:
            path.write_text("half")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass


@pytest.mark.parametrize("there", [False, True])
def test_files_appear_complete_and_are_listed_and_read(tmp_path, there) -> None:
    home = f"{'s3://pile' if there else tmp_path}/a [folder]*"
    fail(f"{home}/part-1")
    assert not storage.exists(f"{home}/part-1")
    for name in ("/part-2", "/part-10", "/other", "er/part-3"):
        storage.write_text(f"{home}{name}", "two\nlines\n" if name == "/part-2" else "")
    fail(f"{home}/part-2")
    with storage.writable(f"{home}/part-4") as path:
        path.write_text("half")
        assert storage.list_files(home) == [f"{home}/part-10", f"{home}/part-2"]
    assert there or path.parent == Path(home)
    assert storage.list_files(f"{home}/absent") == []
    assert storage.exists(f"{home}/part-2")
    assert not storage.exists(f"{home}/part")
    assert not storage.exists(home)
    assert list(storage.open_lines(f"{home}/part-2")) == [b"two\n", b"lines\n"]
    with storage.readable(f"{home}/part-2") as path:
        assert path.read_text() == "two\nlines\n"
    assert path.exists() != there


def test_the_objects_below_a_folder_are_deleted_unless_s3_refuses(messages) -> None:
    for name in ("work-1/a", "work-1/b", "work-10/c"):
        storage.write_text(f"s3://pile/{name}", "")
    refused = [{"Key": "work-1/b", "Code": "InternalError", "Message": "We encountered an internal error."}]
    events = s3.client().meta.events
    events.register("after-call.s3.DeleteObjects", lambda parsed, **_: parsed.update(Errors=refused), "refused")
    try:
        with messages.raises(DataError):
            storage.remove_files("s3://pile/work-1/")
    finally:
        events.unregister("after-call.s3.DeleteObjects", unique_id="refused")
    assert [each["Key"] for each in s3.list_objects(s3.client(), s3.S3Path("pile", "work-1"))] == ["work-10/c"]


def test_a_file_that_was_written_again_has_another_identity(tmp_path) -> None:
    (tmp_path / "file").touch()
    identities = set()
    for nanoseconds in (1, 2):
        os.utime(tmp_path / "file", ns=(0, nanoseconds))
        identities.add(storage.identity_of(str(tmp_path / "file")))
    assert len(identities) == 2


def test_an_object_is_written_only_in_place_of_the_expected_one() -> None:
    client, place = s3.client(), s3.place_of("s3://pile/claim")
    assert s3.put_if(client, place, b"first", etag=None)
    assert s3.put_if(client, place, b"first", etag=None)  # as if the response to the first request was lost
    assert not s3.put_if(client, place, b"second", etag=None)
    etag = s3.head(client, place)["ETag"]
    assert s3.put_if(client, place, b"third", etag=etag)
    assert not s3.put_if(client, place, b"fourth", etag=etag)
    with pytest.raises(client.exceptions.ClientError, match="NoSuchBucket"):
        s3.put_if(client, s3.place_of("s3://no-pile/claim"), b"", etag=None)


@pytest.mark.parametrize("ahead", [None, 0, 100, 1 << 20, 1 << 30])
def test_an_object_is_read_from_any_byte(ahead) -> None:
    for start in (0, 1, 1_000_000, len(BODY) - 1, len(BODY)):
        with closing(storage.open_range("s3://pile/body", start, ahead)) as file:
            assert file.read(10) == BODY[start : start + 10]
            assert file.read(len(BODY)) == BODY[start + 10 :]
            assert file.read(1) == b""


def test_an_object_is_read_in_any_order() -> None:
    with closing(storage.open_range("s3://pile/body", ahead=0)) as file:
        assert file.seek(-5, 2) == len(BODY) - 5
        assert file.read() == BODY[-5:]
        file.seek(2_000_000)
        assert file.read(3) == BODY[2_000_000:2_000_003]
        file.seek(-2, 1)
        assert file.read(1) == BODY[2_000_001:2_000_002]
        assert file.tell() == 2_000_002


@pytest.fixture
def asked():
    """Yield a list to which the byte range of each request to S3 is added."""
    ranges: list[str] = []

    def note(params: dict[str, str], **_: object) -> None:
        ranges.append(params["Range"])

    s3.client().meta.events.register("provide-client-params.s3.GetObject", note)
    yield ranges
    s3.client().meta.events.unregister("provide-client-params.s3.GetObject", note)


def test_ranges_of_an_object_request_few_bytes_beyond_their_end(asked) -> None:
    whole = read("s3://pile/lines.json")
    assert len(whole) == 60_000
    asked.clear()
    half = len(LINES) // 2
    assert read("s3://pile/lines.json", 0, half) + read("s3://pile/lines.json", half, len(LINES)) == whole
    assert asked == [f"bytes=0-{half - 1}", f"bytes={half}-{2 * half - 1}", f"bytes={half - 1}-{len(LINES) - 1}"]


@pytest.mark.parametrize("name", ["lines.json", "lines.json.gz"])
def test_lost_connections_are_resumed_at_their_offset(pile, name) -> None:
    whole = read(f"s3://pile/{name}")
    with pile.faults.during(CutConnection()):
        assert read(f"s3://pile/{name}") == whole
        with closing(storage.open_range("s3://pile/body", 7, 1 << 20)) as file:
            assert file.read() == BODY[7:]
    with pile.faults.during(CutConnection(times=2)), storage.readable("s3://pile/body") as path:
        assert path.read_bytes() == BODY


class _Severed(BaseHTTPRequestHandler):
    """S3 server that announces a body in the headers, but closes the connection instead of sending the body."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.send_header("ETag", '"1"')
        self.end_headers()

    do_GET = do_HEAD  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_does_not_answer_is_reported(monkeypatch) -> None:
    with HTTPServer(("127.0.0.1", 0), _Severed) as started:
        Thread(target=started.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{started.server_port}")
        with pytest.raises(DataError, match=r"s3://pile/lines\.json: .*the connection was lost"):
            read("s3://pile/lines.json")
        started.shutdown()


def test_throttled_and_failed_s3_requests_are_retried(pile) -> None:
    with pile.faults.during(Throttled(service="s3", share=0.2), S3Error(share=0.1)):
        assert len(read("s3://pile/lines.json.gz")) == 60_000
        storage.write_text("s3://pile/stubborn/part-1", "text")
        assert storage.list_files("s3://pile/stubborn") == ["s3://pile/stubborn/part-1"]
        assert list(storage.open_lines("s3://pile/stubborn/part-1")) == [b"text"]


USES = {
    "open": storage.open_range,
    "copy": lambda address: storage.readable(address).__enter__(),
    "write": lambda address: storage.write_text(address, "text"),
    "check": storage.check_writable,
    "lines": lambda address: list(storage.open_lines(address)),
    "blocks": lambda address: list(storage.open_blocks(address)),
}


@pytest.mark.parametrize(
    ("use", "address"),
    [
        *((use, address) for use in ("open", "copy") for address in ("s3://pile/absent", "s3://absent/key")),
        *(("lines", "/proc/self/mem"), ("blocks", "/proc/self/mem")),
        *(("open", "/nowhere/absent"), ("write", "s3://absent/x/f")),
        *(("check", "s3://absent/x"), ("check", "s3://No Bucket/x")),
    ],
)
def test_unreadable_and_unwritable_addresses_are_reported(use, address, messages) -> None:
    storage.check_writable("s3://pile/anywhere")
    with messages.raises(DataError):
        USES[use](address)


@pytest.mark.parametrize(
    "content", [b"b" * (3 << 20), b"a" * (9 << 20), None], ids=["other bytes", "more bytes", "removed"]
)
def test_an_object_that_changes_while_it_is_read_is_refused(content, messages) -> None:
    s3.client().put_object(Bucket="pile", Key="changing", Body=b"a" * (3 << 20))
    with closing(storage.open_range("s3://pile/changing", 0, 1 << 20)) as file:
        assert file.read(10) == b"a" * 10
        if content is None:
            s3.client().delete_object(Bucket="pile", Key="changing")
        else:
            s3.client().put_object(Bucket="pile", Key="changing", Body=content)
        with messages.raises(DataError):
            file.read()
