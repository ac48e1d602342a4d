"""Runs of `shoal train` on streams, as processes that tests kill, and what they say they have learnt from."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tests.processes import MARK, left_behind
from tests.waiting import PATIENCE, until
from trainer.output import checkpoint

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

    def stops(self) -> None:
        """Ask it to stop, which it does with a checkpoint."""
        self.process.send_signal(signal.SIGINT)
        self.ends(130)
        assert self.summary()["stopped"]

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
