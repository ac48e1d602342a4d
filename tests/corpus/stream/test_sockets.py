"""Line sockets as sources, with real senders that end, go away and come back."""

import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest

from common.errors import DataError
from corpus.stream import sockets
from corpus.stream.parts import Part, Position, part_numbers, part_path, read_part, write_part
from tests.corpus.stream.reading import Stopped, begin, lines, parts, read, read_until
from tests.corpus.stream.sender import Sender
from tests.waiting import until

LINES = [f"line {number} of many" for number in range(2_000)]
SENT = [line.encode() for line in LINES]


def position(stream: Path) -> Position:
    """After the newest part of a stream."""
    folder = stream / "reader-0"
    numbers = part_numbers(folder)
    return read_part(part_path(folder, numbers[-1])).after if numbers else Position()


def patient(_: float) -> None:
    """Give the sender's thread time, as the reader's clock is not that of the machine."""
    time.sleep(0.004)


def test_a_socket_is_read_to_its_end_and_its_sender_hears_what_is_safe(tmp_path: Path) -> None:
    with Sender(SENT) as sender:
        status = read(begin(tmp_path / "stream", sender.address), patient)
        ends = [part.after.offsets[sender.address] for part in parts(tmp_path / "stream")]
        until(lambda: len(sender.received) >= len(ends))  # the last part is written after the end of the connection
    assert lines(tmp_path / "stream") == LINES
    assert ends[-1] == status.lines == len(LINES)
    assert status.bytes == sum(map(len, SENT)) + len(SENT)
    assert sender.received[0] == "from 0\n"
    assert sender.received[1:] == [f"safe {lines}\n" for lines in ends[: len(sender.received) - 1]]


@pytest.mark.parametrize("resumes", [True, False])
def test_after_lost_connections_a_sender_goes_on_where_it_was(tmp_path: Path, resumes: bool) -> None:
    cuts = [5, 700, 9_000] if resumes else [14 * 7, 14 * 50]  # a sender that cannot send a line again sends whole ones
    with Sender([f"{line:13}".encode()[:13] for line in LINES], cuts=cuts, resumes=resumes, stays=True) as sender:
        begin(tmp_path / "stream", sender.address, follow=True, quiet_seconds=20.0)

        def then(now: float) -> None:
            patient(now)
            if position(tmp_path / "stream").lines == len(LINES):
                raise Stopped
            assert now < 10_000

        with pytest.raises(Stopped):
            read(tmp_path / "stream", then)
    assert lines(tmp_path / "stream") == [line[:13].strip() for line in LINES]
    assert sum(line.startswith("from") for line in sender.received) == len(cuts) + 1


def test_a_connection_that_is_reset_is_made_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        begin(tmp_path / "stream", f"tcp://127.0.0.1:{server.getsockname()[1]}")

        def then(now: float) -> None:
            with suppress(BlockingIOError), server.accept()[0] as connection:
                received.append(connection.recv(100).decode())
                content = b"".join(line + b"\n" for line in SENT[int(received[-1].split()[1]) :])
                if len(received) == 1:
                    connection.sendall(content[:100])
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(content)

        received: list[str] = []
        read(tmp_path / "stream", then)
    assert lines(tmp_path / "stream") == LINES
    assert len(received) == 2


def test_after_a_crash_a_sender_that_can_goes_on_after_the_newest_part(tmp_path: Path) -> None:
    def killed(folder: Path, part: Part) -> None:
        if part.number == 9:
            raise Stopped
        write_part(folder, part)

    with Sender(SENT) as sender:
        begin(tmp_path / "stream", sender.address)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("corpus.stream.reader.write_part", killed)
            with pytest.raises(Stopped):
                read(tmp_path / "stream", patient)
        safe = parts(tmp_path / "stream")[-1].after.offsets[sender.address]
        read(tmp_path / "stream", patient)
    assert lines(tmp_path / "stream") == LINES
    assert f"from {safe}\n" in sender.received


def test_a_sender_that_never_comes_is_an_error_after_a_minute(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    waited: list[float] = []
    with pytest.raises(DataError, match=r"cannot connect to tcp://127.* since a minute: .*refused; start its sender"):
        read(begin(tmp_path / "stream", address), waited.append)
    assert waited[-1] >= sockets._PATIENCE_S


def test_a_sender_that_does_not_listen_is_read_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        begin(tmp_path / "stream", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        read(tmp_path / "stream", lambda _: deaf(server))
    assert lines(tmp_path / "stream") == ["one", "two", "three"]


def deaf(server: socket.socket) -> None:
    """Send three lines once, the last without its end, and go away."""
    if server.fileno() < 0:
        return
    server.setblocking(False)
    with suppress(BlockingIOError), server.accept()[0] as connection:
        server.close()
        connection.sendall(b"one\ntwo\nthree")
        connection.shutdown(socket.SHUT_WR)
        connection.recv(100)


def test_a_sender_of_a_stream_that_grows_may_stay_away(tmp_path: Path) -> None:
    """Of the line that it had begun nothing is taken, as it may come again."""
    server = socket.create_server(("127.0.0.1", 0))
    begin(tmp_path / "stream", f"tcp://127.0.0.1:{server.getsockname()[1]}", follow=True)

    def holds(now: float) -> bool:
        deaf(server)
        if part_numbers(tmp_path / "stream" / "reader-0"):
            gone.append(now)
        return bool(gone) and now > gone[0] + 3 * sockets._PATIENCE_S

    gone: list[float] = []
    read_until(tmp_path / "stream", holds)
    assert lines(tmp_path / "stream") == ["one", "two"]


def test_sockets_go_to_readers_in_turn_and_beside_files(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("a file\n")
    with Sender([b"first"]) as first, Sender([b"second"]) as second, Sender([b"third"]) as third:
        sources = (first.address, tmp_path / "texts", second.address, third.address)
        begin(tmp_path / "stream", *sources, readers=2)
        for reader in (0, 1):
            read(tmp_path / "stream", patient, reader=reader, readers=2)
    found = [set(lines(tmp_path / "stream", reader)) - {"a file"} for reader in (0, 1)]
    assert found == [{"first", "third"}, {"second"}]


def test_a_reader_without_a_source_ends_at_once(tmp_path: Path) -> None:
    begin(tmp_path / "stream", "tcp://127.0.0.1:1", readers=2, follow=True)
    assert read(tmp_path / "stream", reader=1, readers=2).parts == 0
    assert (tmp_path / "stream" / "reader-1" / "end.json").exists()
