"""Runs on streams whose readers, ranks or command are killed: they go on, and learn from every word."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bootstrap.training.word_runs import WordRun
from tests.corpus.stream.reading import begin
from tests.corpus.stream.sender import Sender
from tests.processes import rank_processes
from tests.trainer.embeddings import made_text
from tests.waiting import PATIENCE
from trainer.embeddings.stream_rows import load_start
from trainer.output.run_files import STREAM

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak]

LINES = [line.encode() for line in made_text.lines(15_000)]
WORDS = 12 * len(LINES)
SLOWED = ("--slow", "0:1@1:10")
"""Only after the first step, in which functions may be compiled."""
TWO = ("--nodes", "2", *SLOWED, "1:1@1:10")


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Path]:
    """A stream of parts of 128 rows from a socket, whose sender goes on where it is asked to, and has an end."""
    with Sender(LINES) as sender:
        yield begin(tmp_path / "stream", sender.address, part_rows=128, ahead=3, quiet_seconds=2.0)


def has_learnt_all(run: WordRun) -> None:
    """Whether each word was in a part that was learnt from to its end, and each part once, by record and checkpoint."""
    parts = -(-(WORDS + len(LINES)) // (128 * 128))
    learnt = run.learnt()
    assert [*learnt.pop("last")] == ["reader-0"]  # the part that it goes on from, where its folder is gone
    first = load_start(run.output / STREAM)
    assert first is not None  # words are counted in the first parts, and then once in each part that is learnt from
    assert int(learnt.pop("vocabulary")["counts"].sum()) == int(first.vocabulary.counts.sum()) + WORDS
    assert learnt == {"taken": {"reader-0": parts}, "chosen": None, "words_seen": WORDS}
    assert run.summary()["rows_seen"] == 128 * parts
    assert run.summary()["steps"] == run.lines("step")[-1]["step"]
    goes_on_from_checkpoints(run)


def goes_on_from_checkpoints(run: WordRun) -> None:
    """Whether each start is from the last checkpoint of the record, or from a newer one, which is not in it where
    all were killed just after it was written."""
    saved = 0
    for line in run.lines("start", "checkpoint"):
        if line["kind"] == "start":
            assert line["from_step"] >= saved
        else:
            assert line["step"] >= saved
            saved = line["step"]


@pytest.mark.parametrize("mode", ["sync", "average:5", "async:3"])
def test_a_reader_and_a_rank_that_are_killed_cost_the_steps_since_the_checkpoint(
    stream: Path, tmp_path: Path, mode: str
) -> None:
    with WordRun(stream, tmp_path / "run", *TWO, "--mode", mode) as run:
        run.until_checkpoints(1)
        (reader,) = run.readers()
        reader.kill()
        run.until(lambda: run.readers() not in ([], [reader]))
        run.until_checkpoints(2)
        for rank in rank_processes(1):  # in async:3 it keeps half of the words
            rank.kill()
        said = run.ends()
    assert said.count("reader 0 ended with status -9; starting it again") == 1
    has_learnt_all(run)
    first, second = run.lines("start")
    assert first["from_step"] < second["from_step"]
    (note,) = [line["text"] for line in run.lines("note")]
    assert note.startswith("rank 1 was ended by signal 9 (SIGKILL)")
    assert note.endswith(f"resuming from step {second['from_step']}")


def test_a_run_whose_ranks_are_all_killed_again_and_again_ends_and_can_be_resumed(stream: Path, tmp_path: Path) -> None:
    with WordRun(stream, tmp_path / "run", *TWO, "--mode", "async:3") as run:
        for count in range(1, 5):  # the ranks are started again three times
            run.until(lambda: len(run.lines("start")) == count)  # noqa: B023
            begun = len(run.lines("checkpoint"))
            run.until_checkpoints(begun + 1)
            for rank in (*rank_processes(0), *rank_processes(1)):
                rank.kill()
        said = " ".join(run.ends(1).split())
    assert "was ended by signal 9 (SIGKILL)" in said
    assert "restart with --resume" in said
    with WordRun(stream, tmp_path / "run", "--nodes", "2", "--mode", "async:3", "--resume") as run:
        run.ends()
    has_learnt_all(run)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_command_is_that_of_its_readers_and_ranks_and_it_goes_on(
    stream: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with WordRun(stream, tmp_path / "run", *SLOWED) as run:
        run.until_checkpoints(1)
        os.kill(run.process.pid, number)
        run.process.communicate(timeout=PATIENCE)
        assert run.process.returncode == (143 if number == signal.SIGTERM else -9)
    assert run.summary()["stopped"]
    with WordRun(stream, tmp_path / "run", "--resume") as run:
        run.ends()
    has_learnt_all(run)
    assert len(run.lines("start")) == 2
