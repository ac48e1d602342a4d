"""Runs of `shoal embed` on streams: ranks that are killed again and again, and sources that are too fast."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pytest

from corpus.stream.parts import part_numbers
from corpus.stream.progress import read_status
from tests.corpus.stream.reading import begin
from tests.processes import MARK, left_behind, rank_processes
from tests.trainer.embeddings import made_text
from tests.waiting import PATIENCE, until
from trainer.embeddings.stream_rows import load_start
from trainer.output import checkpoint
from trainer.output.run_files import STREAM

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak]


LEARNING = (
    "--model", "skipgram", "--embedding", "8", "--global-batch", "4", "--min-count", "1", "--subsample", "0",
    "--threads", "1", "--vocabulary-words", "5000", "--checkpoint-minutes", "0.01", "--record-every", "1",
)  # fmt: skip


class WordRun:
    """A run on a stream's folder; a context manager, after which none of its processes is left."""

    def __init__(self, stream: Path, output: Path, *options: object) -> None:
        self.output = output
        self._temporary = output.with_name("temporary")
        self._temporary.mkdir(exist_ok=True)
        command = ["shoal", "embed", "--local", "--data", stream, "--output", output, *LEARNING, *options, "--json"]
        self.process = subprocess.Popen(
            [*map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MARK: str(self._temporary), "CUDA_VISIBLE_DEVICES": ""},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.communicate(timeout=PATIENCE)
        assert not (left := left_behind(str(self._temporary))), left

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        """The lines of these kinds in the record."""
        path = self.output / "record.jsonl"
        whole = path.read_text().splitlines(keepends=True) if path.exists() else []
        found = [json.loads(line) for line in whole if line.endswith("\n")]
        return [line for line in found if line["kind"] in kinds]

    def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds, while the command runs."""
        until(lambda: holds() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def until_checkpoints(self, count: int) -> None:
        """Wait until so many checkpoints are there, and a step after the last one."""

        def holds() -> bool:
            there = self.lines("checkpoint")
            return len(there) >= count and self.lines("step")[-1]["step"] > there[-1]["step"]

        self.until(holds)

    def readers(self) -> list[psutil.Process]:
        """Its readers that live."""
        found = []
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if "corpus.stream" in each.cmdline():
                    found.append(each)
        return found

    def ends(self, status: int = 0) -> str:
        """What it said on stderr, once it has ended with this status."""
        _, said = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == status, said
        assert "Traceback" not in said
        return said

    def summary(self) -> dict[str, Any]:
        """The content of summary.json."""
        found: dict[str, Any] = json.loads((self.output / "summary.json").read_text())
        return found

    def learnt(self) -> dict[str, Any]:
        """The place in the stream by the newest checkpoint: parts `taken` of each reader, `words_seen`."""
        newest, _ = checkpoint.newest(self.output / "checkpoints")
        assert newest is not None
        found: dict[str, Any] = newest[1]["task"]
        return found


LINES = made_text.lines(15_000)
WORDS = 12 * len(LINES)
TWO = ("--nodes", "2", "--slow", "0:10", "1:10", "--words", WORDS)
"""So slow that the ranks can be killed before they have learnt all."""


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A stream of parts of 128 rows from a file that is followed."""
    return followed(tmp_path, LINES)


def followed(home: Path, lines: Sequence[str]) -> Path:
    (home / "texts").write_text("".join(f"{line}\n" for line in lines))
    return begin(home / "stream", home / "texts", follow=True, part_rows=128, ahead=3, quiet_seconds=2.0)


def has_learnt_all(run: WordRun) -> None:
    """Whether each word was in a part that was learnt from to its end, and each part once, by record and checkpoint."""
    parts = -(-(WORDS + len(LINES)) // (128 * 128))
    learnt = run.learnt()
    assert [*learnt.pop("last")] == ["reader-0"]  # the part that it goes on from, where its folder is gone
    first = load_start(run.output / STREAM)
    assert first is not None
    known = set(first.vocabulary.words)
    outside = sum(word not in known for line in LINES for word in line.split())
    assert learnt == {
        "taken": {"reader-0": parts},
        "chosen": None,
        "words_seen": WORDS,
        "words_outside": outside,
    }
    assert run.summary()["rows_seen"] == 128 * parts
    assert run.summary()["steps"] == run.lines("step")[-1]["step"]
    # Each start is from the last checkpoint of the record, or from a newer one, which is not in it where all were
    # killed just after it was written.
    saved = 0
    for line in run.lines("start", "checkpoint"):
        if line["kind"] == "start":
            assert line["from_step"] >= saved
        else:
            assert line["step"] >= saved
            saved = line["step"]


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
    with WordRun(stream, tmp_path / "run", "--nodes", "2", "--mode", "async:3", "--words", WORDS, "--resume") as run:
        run.ends()
    has_learnt_all(run)


def test_a_source_that_is_too_fast_waits_and_neither_reader_nor_rank_grows(tmp_path: Path) -> None:
    words = 12 * 40_000
    memory: list[tuple[int, int]] = []
    waiting: list[int] = []
    stream = followed(tmp_path, made_text.lines(40_000))

    def look(run: WordRun) -> bool:
        processes = [*run.readers()[:1], *rank_processes(0)]
        if len(processes) == 2:
            memory.append(tuple(each.memory_info().rss for each in processes))
            waiting.append(len(part_numbers(stream / "reader-0")))
        return read_status(stream).words == words

    with WordRun(stream, tmp_path / "run", "--slow", "0:10", "--words", words) as run:
        run.until_checkpoints(2)
        run.until(lambda: look(run))
        run.ends()
    assert max(waiting) <= 2 * 3 + 2  # and those of which readers have not heard yet that they are in a checkpoint
    assert read_status(stream).paused_seconds > read_status(stream).waiting_seconds
    for before, most in zip(memory[len(memory) // 4], map(max, zip(*memory, strict=True)), strict=True):
        assert most - before < 20 << 20
    assert run.learnt()["words_seen"] == words
