"""A training that a fault happens to, wherever it runs, and what the fault has cost it."""

import json
import random
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

from bootstrap.agent import documents
from bootstrap.agent.channel import Channel, Document
from trainer.output.run_files import CHECKPOINTS, RECORD

RANKS, BATCH = 3, 512
AWAY_SECONDS = 45.0
"""How long what comes back is away."""
HEADS = (
    "fault",
    "noticed, s",
    "next step, s",
    "longest pause, s",
    "rows twice or never",
    "loss less that without",
    "left running",
)
_LONGEST_SECONDS = 420.0
_LOOK_SECONDS = 0.2
_TIMES, _LONGEST_LIFE = 20, 8.0
"""How often a fault of the command is made, and how many seconds after the one before at most."""


class Run(ABC):
    """A training whose command was typed, and what it has left so far in the store of its place."""

    def __init__(self, store: Channel, output: Path, epochs: int) -> None:
        self.store, self.output, self.epochs = store, output, epochs
        self._before, self._name = set[str](), ""
        self._before = self.made()
        self._record: Document | None = None
        self.process: subprocess.Popen[str] | None = None

    @property
    @abstractmethod
    def where(self) -> Sequence[object]:
        """The words of the command that say where it trains, and on what."""

    @property
    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """That of the command."""

    @abstractmethod
    def left(self) -> int:
        """How many ranks run."""

    def type_command(self) -> None:
        """Type it, perhaps again."""
        words = [*self.where, "--output", self.output, "--epochs", self.epochs, "--threads", 1, "--seed", 3]
        words += ["--model", "lstm", "--global-batch", BATCH, "--checkpoint-minutes", 0.1, "--json"]
        words += ["--balance", "off"]  # equal splits on equal nodes: what is learnt is then equal to the last bit
        words += [word for rank in range(RANKS) for word in ("--slow", f"{rank}:6")]
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bootstrap.cli.main", "train", *map(str, words)],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def type_again(self) -> None:
        """Type it again, once it has ended."""
        assert self.process is not None
        self.process.wait()
        self.type_command()

    def kill_command(self) -> None:
        """Kill it, if it was typed and has not ended."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def said(self) -> str:
        """What it has printed beside its result."""
        return self._log.read_text() if self._log.exists() else ""

    def lives(self, seconds: float) -> bool:
        """Whether the command has not ended for so long."""
        assert self.process is not None
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def made(self) -> set[str]:
        """The names of the runs that were made since."""
        return {key.split("/")[1] for key in self.store.list(documents.RUNS)} - self._before

    @property
    def name(self) -> str:
        """Of the run; nothing before there is one."""
        self._name = self._name or max(self.made(), default="")
        return self._name

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Of its record, as it is in the store."""
        if not self.name:
            return []
        self._record = self.store.read(f"{documents.RUNS}{self.name}/{RECORD}", self._record)
        text, wanted = self._record.text if self._record else "", f'{{"kind": "{kind}"'
        return [json.loads(line) for line in text.splitlines() if line.startswith(wanted) and line.endswith("}")]

    def step(self) -> int:
        """The latest of its record."""
        return max((int(line["step"]) for line in self.lines("step")), default=0)

    def attempts(self) -> list[dict[str, Any]]:
        """All attempts."""
        keys = self.store.list(documents.attempts_prefix(self.name)) if self.name else ()
        found = (self.store.read(key) for key in keys)
        return [json.loads(each.text) for each in found if each]

    def members(self) -> list[str]:
        """The nodes of the latest attempt."""
        return [each["instance"] for each in self.attempts()[-1]["members"]]

    def has_checkpoint(self) -> bool:
        """Whether one is in the store."""
        return bool(self.name and self.store.list(f"{documents.RUNS}{self.name}/{CHECKPOINTS}/"))

    def troubles(self) -> str:
        """What the nodes tell is wrong with them."""
        found = (self.store.read(key) for key in self.store.list(documents.NODES) if key.endswith(".run"))
        return " ".join(str(json.loads(each.text)["trouble"]) for each in found if each)

    def until(self, holds: Callable[[], object], what: str) -> float:
        """Seconds until something holds. Ends the benchmark where it does not, or the command fails."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > _LONGEST_SECONDS or (self.process and self.process.poll()):
                sys.exit(f"{what} did not happen in {time.monotonic() - began:.0f} s:\n{self.said()[-3000:]}")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - began

    def ended(self) -> dict[str, Any]:
        """Its summary, once the command has ended, which is typed again where it has left the run to itself."""
        while True:
            assert self.process is not None
            printed, _ = self.process.communicate(timeout=_LONGEST_SECONDS)
            if self.process.returncode:
                sys.exit(self.said()[-3000:])
            found: dict[str, Any] = json.loads(printed)
            if not found.get("detached"):
                return found
            self.type_command()

    @property
    def _log(self) -> Path:
        return self.output.with_suffix(".log")


R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Fault(Generic[R]):
    """What is done to a run, and undone after a while."""

    do: Callable[[R], None]
    undo: Callable[[R], None] | None = None
    noticed: Callable[[R], object] | None = None
    """By default that there is another attempt, or that the ranks were started again, before the next step is made."""
    away: float = AWAY_SECONDS
    served: bool = False
    """Whether the hosts share a folder that a server of its own serves."""
    again_and_again: bool = False
    """Whether it is made at random moments, from the beginning of the run on."""


def kill_and_type_again(run: Run) -> None:
    """Kill the command, and type it again."""
    run.kill_command()
    run.type_command()


def measure(run: R, fault: Fault[R]) -> dict[str, Any]:
    """What a fault has cost a run."""
    if fault.again_and_again:
        return _measure_often(run, fault)
    began = time.monotonic()
    run.type_command()
    run.until(run.step, "the first step")
    first = time.monotonic() - began
    run.until(lambda: run.lines("checkpoint") and len(run.attempts()) == 1, "the first checkpoint")
    run.until(run.has_checkpoint, "its copy")
    steps, attempts, starts = run.step(), len(run.attempts()), len(run.lines("start"))
    since, at = time.monotonic(), time.time()
    fault.do(run)
    again = fault.noticed or (lambda _: len(run.attempts()) > attempts or len(run.lines("start")) > starts)
    noticed, goes_on, undone = 0.0, False, fault.undo is None

    def look() -> bool:
        nonlocal noticed, goes_on, undone
        now = time.monotonic() - since
        noticed = noticed or (now if again(run) else 0.0)
        goes_on = goes_on or run.step() > steps
        if not undone and now >= fault.away:
            undone = True
            assert fault.undo is not None
            fault.undo(run)
        return goes_on and undone and (noticed > 0 or fault.noticed is None)

    run.until(look, "the next step")
    summary = run.ended()
    time.sleep(2)
    made = list(_made(run))
    next_step = min(when for when in made if when > at) - at
    pause = max(after - before for before, after in pairwise(made) if after > at)
    expected = run.epochs * -(-summary["rows"] // BATCH)
    return {
        "first step": round(first, 1),
        "noticed": round(noticed, 1),
        "next step": round(next_step, 1),
        "pause": round(pause, 1),
        "wrong rows": abs(summary["rows_seen"] - run.epochs * summary["rows"]) + abs(summary["steps"] - expected),
        "loss": summary["log_loss"],
        "attempts": len(run.attempts()),
        "left": run.left(),
        "seconds": round(time.monotonic() - began, 1),
    }


def _made(run: Run) -> Iterator[float]:
    """When each recorded step was made for the first time."""
    latest = -1
    for line in run.lines("step"):
        if line["step"] > latest:
            latest = line["step"]
            yield line["time"]


def _measure_often(run: R, fault: Fault[R]) -> dict[str, Any]:
    """How many runs there are after a fault of the command at random moments of a run that is twice as long."""
    chance, times = random.Random(5), 0  # noqa: S311
    run.epochs *= 2
    run.type_command()
    while times < _TIMES and run.lives(chance.uniform(0.3, _LONGEST_LIFE)):
        fault.do(run)
        times += 1
    summary = run.ended()
    return {
        "times": times,
        "runs": len(run.made()),
        "launches": len({each["token"] for each in run.attempts()}),
        "attempts": len(run.attempts()),
        "wrong rows": abs(summary["rows_seen"] - run.epochs * summary["rows"]),
    }


def rows(found: Mapping[str, Mapping[str, Any]], undisturbed: str) -> Iterator[list[str]]:
    """Of the table, from what was measured; `undisturbed`: the name of that without a fault."""
    for name, each in found.items():
        if "noticed" not in each:
            continue
        yield [
            name,
            f"{each['noticed']:.1f}" if each["noticed"] else "not",
            f"{each['next step']:.1f}",
            f"{each['pause']:.1f}",
            str(each["wrong rows"]),
            f"{each['loss'] - found[undisturbed]['loss']:+.1e}",
            str(each["left"]),
        ]
