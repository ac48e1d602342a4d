"""A reader of a stream writes parts for trainers, waits for trainers, and exits when its sources end."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from common.errors import DataError
from corpus.stream import __main__ as program
from corpus.stream import reader
from corpus.stream.parts import part_numbers
from corpus.stream.progress import Status, read_status
from tests.corpus.stream.reading import Stopped, begin, lines, parts, read, read_until, words
from tests.waiting import until

LINES = [f"line {number} of many, with words {number % 97}" for number in range(3_000)]


def source(tmp_path: Path, found: list[str] | bytes = LINES) -> Path:
    path = tmp_path / "texts"
    path.write_bytes(found if isinstance(found, bytes) else "".join(f"{line}\n" for line in found).encode())
    return path


def content_of(stream: Path, name: str) -> Any:
    return json.loads((stream / "reader-0" / name).read_text())


def command(stream: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "corpus.stream", "--stream", str(stream), *more]


def test_only_one_reader_writes_to_a_folder(tmp_path: Path, messages) -> None:
    stream = begin(tmp_path / "stream", source(tmp_path), follow=True)

    def then(_: float) -> None:
        with messages.raises(DataError):
            read(stream)
        assert not (stream / "reader-0" / "error.json").exists()
        raise Stopped

    with pytest.raises(Stopped):
        read(stream, then)


def test_lines_become_a_part_after_a_silence(tmp_path: Path) -> None:
    path = source(tmp_path, ["one two", "three"])
    stream = begin(tmp_path / "stream", path, follow=True, quiet_seconds=30.0)
    seen: list[tuple[float, int]] = []

    def holds(now: float) -> bool:
        seen.append((now, len(part_numbers(stream / "reader-0"))))
        return now > 100

    read_until(stream, holds)
    assert words(parts(stream)) == ["one", "two", "\n", "three"]
    assert [count for _, count in seen if count > 1] == []
    (first_part,) = {min(now for now, count in seen if count)}
    assert first_part == pytest.approx(30, abs=0.5)


def waiting(stream: Path, taken: int) -> int:
    """Report `taken` parts as taken, at most all written parts. Return how many written parts are not taken."""
    written = part_numbers(stream / "reader-0")[-1] + 1
    (stream / "taken.json").write_text(json.dumps({"reader-0": min(taken, written)}))
    return written - min(taken, written)


def test_a_reader_waits_for_trainers_and_removes_taken_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = begin(tmp_path / "stream", source(tmp_path), follow=True, ahead=4)
    seen = []

    def holds(now: float) -> bool:
        if part_numbers(stream / "reader-0"):
            seen.append(waiting(stream, int(now // 10)))
        return now > 200

    read_until(stream, holds)
    assert max(seen) == 5
    assert part_numbers(stream / "reader-0") == list(range(20, 25))
    status = content_of(stream, "status.json")
    assert 190 < status["paused_seconds"] < 201
    assert status["waiting_seconds"] == 0
    # The newest part is kept even after it was taken, because it has the position to resume from.
    (stream / "taken.json").write_text('{"reader-0": 25}')
    monkeypatch.setattr(reader, "write_part", Mock(side_effect=Stopped))
    with pytest.raises(Stopped):
        read(stream)
    assert part_numbers(stream / "reader-0") == [24]


def test_the_status_of_all_readers_is_their_sum(tmp_path: Path, messages) -> None:
    assert read_status(tmp_path) == Status()
    for number, each in enumerate((Status(lines=1, waiting_seconds=0.5), Status(lines=2))):
        (tmp_path / f"reader-{number}").mkdir()
        each.write(tmp_path / f"reader-{number}")
    assert read_status(tmp_path) == Status(lines=3, waiting_seconds=0.5)
    (tmp_path / "reader-1" / "status.json").write_text('{"lines": "3"}')
    with messages.raises(DataError):
        read_status(tmp_path)


def test_a_full_disk_is_reported(tmp_path, monkeypatch, messages) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("corpus.stream.reader.write_part", full)
    stream = begin(tmp_path / "stream", source(tmp_path))
    with messages.raises(DataError):
        read(stream)


def main(monkeypatch: pytest.MonkeyPatch, stream: Path, *more: str) -> int:
    monkeypatch.setattr(sys, "argv", ["corpus.stream", "--stream", str(stream), *more])
    return program.main()


def test_the_command_reports_skipped_lines(tmp_path, monkeypatch, capsys, messages) -> None:
    stream = begin(tmp_path / "stream", source(tmp_path, b"fine\n\xff\n"))
    assert main(monkeypatch, stream) == 0
    out, err = capsys.readouterr()
    assert out == ""
    messages.check(err)
    assert lines(stream) == ["fine"]


def test_the_command_runs_the_requested_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[object] = []
    monkeypatch.setattr(program, "read_stream", lambda *reader: readers.append(reader) or Status())
    assert main(monkeypatch, tmp_path) == main(monkeypatch, tmp_path, "--reader", "1/3") == 0
    assert readers == [(tmp_path, 0, 1), (tmp_path, 1, 3)]


def test_the_command_fails_with_one_message(tmp_path, monkeypatch, capsys, messages) -> None:
    assert main(monkeypatch, tmp_path / "absent") == 1
    messages.check(capsys.readouterr().err)
    with pytest.raises(SystemExit) as ended:
        main(monkeypatch, tmp_path, "--reader", "2/2")
    assert ended.value.code == 2
    messages.check(capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_reader_ended_by_a_signal_writes_no_incomplete_part(tmp_path: Path, number: signal.Signals) -> None:
    stream = begin(tmp_path / "stream", source(tmp_path), follow=True)
    with subprocess.Popen(command(stream), stderr=subprocess.PIPE, text=True) as process:
        status = stream / "reader-0" / "status.json"
        until(lambda: len(part_numbers(stream / "reader-0")) >= 93 and status.exists())
        process.send_signal(number)
        assert process.wait() == 128 + number
        assert process.stderr.read() == ""
    assert len(part_numbers(stream / "reader-0")) == 93
    assert not (stream / "reader-0" / "error.json").exists()
