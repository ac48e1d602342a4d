"""Tests of readers on this machine, which are restarted when they die."""

import os

import psutil
import pytest

from bootstrap.node import processes
from common.errors import DataError, ShoalError, TrainingError
from corpus.stream.parts import part_numbers
from corpus.stream.stream_settings import StreamSettings
from shoal.runs.sources.local_readers import Readers, delete_stream, running_readers
from tests.corpus.stream.reading import lines
from tests.waiting import until


@pytest.fixture
def stream(tmp_path):
    (tmp_path / "log").write_text("")
    return tmp_path / "stream"


@pytest.fixture
def readers(stream, monkeypatch):
    """Run readers of a growing file that are restarted once before each new part."""
    monkeypatch.setattr(processes, "MAX_RESTARTS", 1)
    settings = StreamSettings(
        sources=(str(stream.with_name("log")),), tokeniser="spaces", follow=True, part_rows=1, quiet_seconds=0.1
    )
    with running_readers(stream, settings) as made:
        yield made


def kill_one():
    def readers():  # a new process may have no command line yet
        return [each for each in psutil.Process().children() if "corpus.stream" in each.cmdline()]

    until(lambda: len(readers()) == 1)
    (reader,) = readers()
    reader.kill()
    # Its main thread is a zombie before all threads have ended, and only then can `readers` see the end.
    os.waitid(os.P_PID, reader.pid, os.WEXITED | os.WNOWAIT)


def test_a_reader_may_die_often_if_it_writes_parts_in_between(stream, readers):
    expected = []
    for number in range(3):
        expected.append(f"line {number}")
        with stream.with_name("log").open("a") as file:
            file.write(f"{expected[-1]}\n")
        until(lambda: len(part_numbers(stream / "reader-0")) == len(expected))
        kill_one()
        readers.check()
    assert lines(stream) == expected


def test_a_removed_stream_ends_the_run_with_this_reason(stream, messages):
    with messages.raises(TrainingError):
        Readers(stream, StreamSettings(sources=("/log",), tokeniser="spaces")).check()


def test_a_reader_that_dies_again_before_its_next_part_ends_the_run(readers, messages):
    kill_one()
    readers.check()
    kill_one()
    with messages.raises(ShoalError):
        readers.check()


def test_a_folder_that_is_not_a_stream_is_not_deleted(tmp_path, messages):
    (tmp_path / "notes").write_text("mine")
    with messages.raises(DataError):
        delete_stream(tmp_path)
    assert (tmp_path / "notes").read_text() == "mine"
    delete_stream(tmp_path / "nothing")
