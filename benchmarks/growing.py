"""Hours of an unbounded stream, played as fast as a run takes it, with faults in between: memory stays what it is,
and every line is learnt from once.

    python -m benchmarks growing [--hours 6] [--words-a-second 1000] [--kills 6] [--mode sync]

A folder grows: each file has half an hour of lines, and old ones go. `shoal train --follow` learns from it by two
ranks. At equal distances a reader, a rank, and the command itself are killed in turn; the command is typed again with
--resume. At the end the words that the newest checkpoint says were learnt from, and the lines that the reader has
taken, are those that were written. Half of a line's words are of its topic, so that there is something to learn: the
held-out loss and the similarity of words of one topic are those of the last evaluation.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import psutil

from benchmarks.record import Log
from common.errors import ShoalError
from corpus.stream.progress import read_status
from corpus.stream.stream_settings import StreamSettings, write_settings
from trainer.output import checkpoint
from trainer.output.run_files import CHECKPOINTS, RECORD

_VOCABULARY, _LINE_WORDS = 20_000, 20
_TOPICS = 40
"""A word's topic is its number modulo this."""
_JUDGED_WORDS, _PAIRS = 1_000, 2_000
"""The most frequent words, and so many pairs of them, half of them of one topic."""
_FILE_SECONDS, _FILES = 1800, 3
"""Seconds of text in a file, and how many of the newest files stay."""
_BLOCK_SECONDS = 60
_AHEAD_BLOCKS = 30
"""How much more may be written than the reader has read."""
_VOCABULARY_WORDS = 1_000_000
_RANKS = 2
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Resident memory, in bytes, at an `hour` of the text that was learnt from."""

    hour: float
    reader: int
    rank: int
    """Of the largest rank."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """What became of the text."""

    samples: list[Sample]
    kills: list[str]
    words_written: int
    words_learnt: int
    lines_written: int
    lines_read: int
    sessions: int
    """How often ranks were started."""
    seconds: float
    loss: float
    """Of a pair that is held out."""
    similarity: float

    @property
    def is_exact(self) -> bool:
        """Whether each line was read, and each word learnt from, as often as it was written."""
        return self.words_learnt == self.words_written and self.lines_read == self.lines_written


class Folder:
    """A folder of text that grows."""

    def __init__(self, path: Path, *, words_a_second: int, seconds: int) -> None:
        self.path, self._lines, self._seconds = path, max(1, words_a_second // _LINE_WORDS), seconds
        self._chance = np.random.default_rng(0)
        weights = 1.0 / np.arange(1, _VOCABULARY + 1)
        self._weights = weights / weights.sum()
        self._files: list[Path] = []
        self.played = self.words = self.lines = 0
        path.mkdir()

    @property
    def is_whole(self) -> bool:
        """Whether all is written."""
        return self.played >= self._seconds

    @property
    def block_words(self) -> int:
        """Words of a minute."""
        return self._lines * _BLOCK_SECONDS * _LINE_WORDS

    def grow(self) -> None:
        """Write the next minute, into the newest file or a new one."""
        if self.played % _FILE_SECONDS == 0:
            self._files.append(self.path / f"{self.played:08}.txt")
        count = self._lines * _BLOCK_SECONDS
        drawn = self._chance.choice(_VOCABULARY, (count, _LINE_WORDS), p=self._weights)
        of_topic = drawn - drawn % _TOPICS + self._chance.integers(0, _TOPICS, (count, 1))
        drawn = np.where(self._chance.random(drawn.shape) < 0.5, of_topic, drawn)
        with self._files[-1].open("a") as file:
            file.writelines(" ".join(f"w{word}" for word in line) + "\n" for line in drawn.tolist())
        self.played += _BLOCK_SECONDS
        self.words, self.lines = self.words + drawn.size, self.lines + count

    def forget(self, words_learnt: int) -> None:
        """Remove files that were learnt from, but for the newest ones: no fault makes a reader want them again."""
        learnt = words_learnt // (self._lines * _FILE_SECONDS * _LINE_WORDS)
        for old in self._files[: max(0, min(learnt, len(self._files) - _FILES))]:
            old.unlink(missing_ok=True)


def _write_pairs(path: Path) -> Path:
    """A similarity set: words of one topic are similar."""
    chance = np.random.default_rng(0)
    one, other = chance.integers(0, _JUDGED_WORDS, (2, _PAIRS))
    other[::2] += one[::2] % _TOPICS - other[::2] % _TOPICS
    path.write_text(
        "".join(f"w{a} w{b} {int(a % _TOPICS == b % _TOPICS)}\n" for a, b in zip(one, other, strict=True) if a != b)
    )
    return path


class Command:
    """`shoal train` on the folder's stream, which is killed and typed again."""

    def __init__(self, stream: Path, output: Path, options: Sequence[str]) -> None:
        self._stream, self._output, self._options = stream, output, options
        self.kills: list[str] = []
        self._process = self._started()

    def kill_in_turn(self) -> str:
        """Kill a reader, then a rank, then the command, and so on; the command is started again. Returns which."""
        what = ("reader", "rank", "command")[len(self.kills) % 3]
        chosen = {"reader": self.readers, "rank": self.ranks, "command": lambda: [self._itself()]}[what]()
        for process in chosen[-1:]:
            process.kill()
        self.kills.append(what)
        if what == "command":
            self._process.wait()
            self._process = self._started("--resume")
        return what

    def look(self) -> None:
        """Raise ShoalError where the command has ended."""
        if self._process.poll() is not None:
            raise ShoalError(f"shoal train ended with status {self._process.returncode}: see {self._output}.log")

    def readers(self) -> list[psutil.Process]:
        """Its readers."""
        return self._below(lambda process: "corpus.stream" in process.cmdline())

    def ranks(self) -> list[psutil.Process]:
        """Its ranks."""
        return self._below(lambda process: "RANK" in process.environ())

    def stop(self) -> None:
        """Stop it with a checkpoint."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def _itself(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    def _below(self, is_one: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
        found = []
        for each in self._itself().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                if is_one(each):
                    found.append(each)
        return found

    def _started(self, *more: str) -> "subprocess.Popen[bytes]":
        arguments = ["embed", "--local", "--nodes", "2", "--data", str(self._stream)]
        arguments += ["--output", str(self._output), *self._options]
        with self._output.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "bootstrap.cli.main", *arguments, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ),
            )


def play(
    folder: Path,
    *,
    hours: float,
    words_a_second: int,
    kills: int,
    mode: str,
    part_rows: int,
    say: Callable[[str], None] = lambda _: None,
) -> Played:
    """Play `hours` of text in this folder. Raises ShoalError where the run ends by itself, or does not come to the
    end of the text."""
    began, seconds = time.monotonic(), round(hours * 3600)
    text = Folder(folder / "texts", words_a_second=words_a_second, seconds=seconds)
    stream, output = folder / "stream", folder / "run"
    sources = (str(text.path),)
    write_settings(
        stream,
        StreamSettings(
            sources=sources, tokeniser="spaces", follow=True, part_rows=part_rows, ahead=4, quiet_seconds=5.0
        ),
    )
    first = str(min(_VOCABULARY_WORDS, words_a_second * seconds // 4))
    learning = ("--mode", mode, "--embedding", "64", "--vocabulary-words", first, "--checkpoint-minutes", "0.05")
    run = Command(stream, output, [*learning, "--similarity", str(_write_pairs(folder / "pairs.txt"))])
    samples: list[Sample] = []
    faults = [seconds * (number + 1) // (kills + 1) for number in range(kills)]
    heard, learnt = time.monotonic(), 0
    try:
        while learnt < text.words or not text.is_whole:
            run.look()
            while not text.is_whole and text.words - read_status(stream).words < _AHEAD_BLOCKS * text.block_words:
                text.grow()
            if (now := _words_learnt(output)) > learnt:
                heard, learnt = time.monotonic(), now
                text.forget(learnt)
                if faults and learnt >= faults[0] * words_a_second:
                    say(f"{learnt / words_a_second / 3600:.2f} h: killed a {run.kill_in_turn()}")
                    del faults[0]
            elif time.monotonic() - heard > _PATIENCE_SECONDS:
                raise ShoalError(f"nothing was learnt for {_PATIENCE_SECONDS:.0f} s: see {output}.log")
            samples += _sampled(run, learnt / words_a_second / 3600)
            time.sleep(_LOOK_SECONDS)
    finally:
        run.stop()
    status = read_status(stream)
    return Played(
        samples=samples,
        kills=run.kills,
        words_written=text.words,
        words_learnt=_words_learnt(output),
        lines_written=text.lines,
        lines_read=status.lines,
        sessions=(output / RECORD).read_text().count('"kind": "start"'),
        seconds=time.monotonic() - began,
        **_last_judged(output),
    )


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growing", description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=6.0, help="of text (default: %(default)s)")
    parser.add_argument("--words-a-second", type=int, default=1000, help="of the text (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=6, help="faults (default: %(default)s)")
    parser.add_argument("--mode", default="sync", help="how ranks learn together (default: %(default)s)")
    parser.add_argument("--part-rows", type=int, default=2048, help="rows of a part (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where files go (default: the system's temporary folder)")
    options = parser.parse_args(arguments)
    log = Log("growing")
    with TemporaryDirectory(dir=options.folder) as name:
        found = play(
            Path(name),
            hours=options.hours,
            words_a_second=options.words_a_second,
            kills=options.kills,
            mode=options.mode,
            part_rows=options.part_rows,
            say=log.say,
        )
    log.table(["hour", "MB of the reader: median, most", "MB of the largest rank"], memory_by_hour(found.samples))
    log.say(
        f"{options.hours:g} h of text in {found.seconds:.0f} s, {len(found.kills)} faults, {found.sessions} starts of "
        f"ranks; words written {found.words_written:,}, learnt from {found.words_learnt:,}; lines written "
        f"{found.lines_written:,}, read {found.lines_read:,}; held-out loss {found.loss:.2f}, similarity "
        f"{found.similarity:.2f}"
    )
    log.keep({"options": vars(options) | {"folder": str(options.folder)}, "played": asdict(found)})
    if not found.is_exact:
        raise SystemExit("text was lost, or learnt from twice")


def memory_by_hour(samples: Sequence[Sample]) -> list[list[str]]:
    """A row for each hour of the text: of the reader and of the largest rank the median and the most memory."""
    hours = sorted({int(each.hour) for each in samples})
    return [
        [
            f"{hour} to {hour + 1}",
            *(
                f"{median(of) / 1e6:.0f}, {max(of) / 1e6:.0f}"
                for of in zip(*((each.reader, each.rank) for each in samples if int(each.hour) == hour), strict=True)
            ),
        ]
        for hour in hours
    ]


def _sampled(run: Command, hour: float) -> Iterator[Sample]:
    """A sample of a run whose reader and ranks are there."""
    with suppress(psutil.NoSuchProcess):  # of one that has ended meanwhile there is no sample
        readers, ranks = ([each.memory_info().rss for each in found] for found in (run.readers(), run.ranks()))
        if readers and len(ranks) == _RANKS:
            yield Sample(hour=hour, reader=max(readers), rank=max(ranks))


def _words_learnt(output: Path) -> int:
    """By the newest checkpoint."""
    newest, _ = checkpoint.newest(output / CHECKPOINTS)
    return int(newest[1]["task"]["words_seen"]) if newest else 0


def _last_judged(output: Path) -> dict[str, float]:
    """The held-out loss and the similarity after the last part that the run was evaluated after."""
    events = map(json.loads, (output / RECORD).read_text().splitlines())
    *_, judged = (event["validation"] for event in events if event["kind"] == "epoch" and event["validation"])
    return {name: float(judged[name]) for name in ("loss", "similarity")}
