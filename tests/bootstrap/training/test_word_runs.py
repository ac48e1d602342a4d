"""Tests of `shoal embed` on streams with killed ranks, and with a source that is too fast."""

import json
import os
import signal
import subprocess
from contextlib import suppress

import psutil
import pytest

from corpus.stream.parts import part_numbers
from corpus.stream.progress import read_status
from tests.corpus.stream.reading import begin
from tests.processes import MARK, left_behind, rank_processes
from tests.trainer.embeddings import made_text
from tests.waiting import PATIENCE, until
from trainer.output.run_files import STREAM

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak]


LEARNING = (
    "--model", "skipgram", "--embedding", "8", "--global-batch", "4", "--min-count", "1", "--subsample", "0",
    "--threads", "1", "--vocabulary-words", "5000", "--checkpoint-minutes", "0.01",
)  # fmt: skip


class WordRun:
    """Run on a stream's folder: a context manager that ends all of its processes."""

    def __init__(self, stream, output, *options):
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

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.communicate(timeout=PATIENCE)
        assert not (left := left_behind(str(self._temporary))), left

    def lines(self, *kinds):
        """Return the lines of these kinds in the record."""
        path = self.output / "record.jsonl"
        whole = path.read_text().splitlines(keepends=True) if path.exists() else []
        found = [json.loads(line) for line in whole if line.endswith("\n")]
        return [line for line in found if line["kind"] in kinds]

    def until(self, holds):
        """Wait until `holds` returns true while the command runs."""
        until(lambda: holds() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def until_checkpoints(self, count):
        """Wait for `count` checkpoints, and for a step after the last one."""

        def holds():
            there = self.lines("checkpoint")
            return len(there) >= count and self.lines("step")[-1]["step"] > there[-1]["step"]

        self.until(holds)

    def readers(self):
        """Return the running readers."""
        found = []
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended since the list was made
                if "corpus.stream" in each.cmdline():
                    found.append(each)
        return found

    def ends(self, status=0):
        """Wait for the end with this status, and return the standard error."""
        _, said = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == status, said
        assert "Traceback" not in said
        return said

    def summary(self):
        """Return the content of summary.json."""
        return json.loads((self.output / "summary.json").read_text())

    def learned(self):
        """Return the position in the stream from the newest checkpoint: parts `taken` of each reader, `words_seen`."""
        from trainer.output import checkpoint

        newest, _ = checkpoint.newest(self.output / "checkpoints")
        return newest[1]["task"]


LINES = 15_000
WORDS = 12 * LINES
TWO = ("--nodes", "2", "--slow", "0:10", "1:10", "--words", WORDS)
"""Options that slow the training down, so that ranks are killed before its end."""


@pytest.fixture
def stream(tmp_path):
    """Return a stream with parts of 128 rows from a growing file."""
    return followed(tmp_path, made_text.lines(LINES))


def followed(home, lines):
    (home / "texts").write_text("".join(f"{line}\n" for line in lines))
    return begin(home / "stream", home / "texts", follow=True, part_rows=128, ahead=3, quiet_seconds=2.0)


def has_trained_on_all(run):
    """Check, by record and checkpoint, that the run trained once on each part, to its end."""
    from trainer.embeddings.stream_rows import load_start

    parts = -(-(WORDS + LINES) // (128 * 128))
    learned = run.learned()
    assert [*learned.pop("last")] == ["reader-0"]  # the part from which it continues without its folder
    first = load_start(run.output / STREAM)
    known = set(first.vocabulary.words)
    outside = sum(word not in known for line in made_text.lines(LINES) for word in line.split())
    assert learned == {"taken": {"reader-0": parts}, "chosen": None, "words_seen": WORDS, "words_outside": outside}
    assert run.summary()["rows_seen"] == 128 * parts
    assert run.summary()["steps"] == run.lines("step")[-1]["step"]
    # Each start is from the last checkpoint of the record, or from a newer one: the record lacks it if all ranks were
    # killed just after it was written.
    saved = 0
    for line in run.lines("start", "checkpoint"):
        if line["kind"] == "start":
            assert line["from_step"] >= saved
        else:
            assert line["step"] >= saved
            saved = line["step"]


def test_a_run_ends_after_repeated_kills_of_all_ranks_and_is_resumed(stream, tmp_path):
    with WordRun(stream, tmp_path / "run", *TWO, "--mode", "async:3") as run:
        for count in range(1, 5):  # the ranks are restarted three times
            run.until(lambda: len(run.lines("start")) == count)  # noqa: B023
            checkpoints = len(run.lines("checkpoint"))
            run.until_checkpoints(checkpoints + 1)
            for rank in (*rank_processes(0), *rank_processes(1)):
                rank.kill()
        said = " ".join(run.ends(1).split())
    assert "was killed by signal 9 (SIGKILL)" in said
    assert "restart with --resume" in said
    with WordRun(stream, tmp_path / "run", "--nodes", "2", "--mode", "async:3", "--words", WORDS, "--resume") as run:
        run.ends()
    has_trained_on_all(run)


def test_a_fast_source_waits_and_the_memory_of_readers_and_ranks_stays_constant(tmp_path):
    words = 12 * 40_000
    memory = []
    waiting = []
    stream = followed(tmp_path, made_text.lines(40_000))

    def look(run):
        processes = [*run.readers()[:1], *rank_processes(0)]
        if len(processes) == 2:
            memory.append(tuple(each.memory_info().rss for each in processes))
            waiting.append(len(part_numbers(stream / "reader-0")))
        return read_status(stream).words == words

    with WordRun(stream, tmp_path / "run", "--slow", "0:10", "--words", words) as run:
        run.until_checkpoints(2)
        run.until(lambda: look(run))
        run.ends()
    assert max(waiting) <= 2 * 3 + 2  # and parts in a checkpoint that readers have not read yet
    assert read_status(stream).paused_seconds > read_status(stream).waiting_seconds
    for before, most in zip(memory[len(memory) // 4], map(max, zip(*memory, strict=True)), strict=True):
        assert most - before < 20 << 20
    assert run.learned()["words_seen"] == words
