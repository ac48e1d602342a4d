"""What runs did, read from their folders: the records that trainings leave (trainer/output/record.py).

A record may be of a run that goes on, or that was cut off in the middle of a line, and of a version with other fields.
So a line that is not what it should be is left out and counted. Do not take all lines of steps for steps of the run: a
resumed run repeats those after its latest checkpoint, and only the last of them count.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from common.errors import ExperimentError, explain_os_error
from common.files import regular
from experiments.records.launches import read_launches
from trainer.output.lines import Checkpoint, End, Epoch, Note, Search, Start, Step, Test, Trial, Waiting, parse_line
from trainer.output.run_files import RECORD, SUMMARY, read_json

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Session:
    """A run from one of its starts to the next, or to its last line."""

    start: Start
    until: float
    """The time of its last line, since 1970."""
    computing: float
    """Seconds in which rows were computed that count, as its steps tell: what the ranks needed at their rates."""
    waiting: float
    """Seconds of waiting for text."""
    end: Mapping[str, Any] | None
    """What it told at its end, as summary.json has it; None where it was cut off, or goes on."""
    lost: int = 0
    """Steps that were done, and that the next session repeats, as far as the record tells."""
    repeated: float = 0.0
    """Seconds of these steps."""
    down: float = 0.0
    """Seconds to the next start, where nobody asked for the end."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    folder: Path
    starts: tuple[Start, ...]
    steps: tuple[Step, ...]
    """Those that count, in order."""
    epochs: tuple[Epoch, ...]
    checkpoints: tuple[Checkpoint, ...]
    notes: tuple[Note, ...]
    sessions: tuple[Session, ...]
    test: Test | None
    summary: Mapping[str, Any] | None
    """None of a run that has not ended."""
    launch: Mapping[str, Any]
    """What the latest command that ran it knew: nodes, cost, stages; empty where nothing is known."""
    launches: tuple[Mapping[str, Any], ...]
    """What each of the commands that ran it knew, `launch` last; those that were killed are not there."""
    last: float
    """The time of the last line, since 1970."""
    left_out: int
    """Lines that could not be used."""

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def begin(self) -> Start:
        return self.starts[0]

    @property
    def latest(self) -> Start:
        return self.starts[-1]

    @property
    def seconds(self) -> float:
        """From its first start to its last line."""
        return self.last - self.begin.time

    @property
    def state(self) -> str:
        """finished, stopped, or unfinished: it goes on, or was cut off."""
        if self.summary is None:
            return "unfinished"
        return "stopped" if self.summary.get("stopped") else "finished"

    @property
    def sleeps(self) -> bool:
        """Whether its ranks slept instead of computing, as those of earlier versions could."""
        return bool(self.latest.config.get("sleep"))

    @property
    def measures(self) -> Mapping[str, float]:
        """The measures on the test rows, or, before these, on the validation rows after the latest epoch. None of
        ranks that slept: these learnt nothing."""
        if self.sleeps:
            return {}
        if self.test is not None:
            return numbers(self.test.measures)
        return numbers(self.epochs[-1].validation) if self.epochs else {}

    @property
    def own_rates(self) -> Sequence[float]:
        """What each rank reaches by itself, rows/s: the higher of two measurements, once the run has ended."""
        told = (self.summary or {}).get("own_rates")
        rates = [each for each in told if isinstance(each, int | float)] if isinstance(told, list) else []
        return rates if len(rates) == self.latest.world_size else self.latest.own_rates

    def told(self, name: str) -> float | None:
        """A number of its summary; None where there is none."""
        return numbers(self.summary or {}).get(name)

    def passed(self, moment: float) -> float:
        """Seconds of the run until a moment since 1970, without those between its starts."""
        return sum(max(0.0, min(moment, each.until) - each.start.time) for each in self.sessions)

    @property
    def dollars(self) -> float | None:
        """What its nodes cost, of all launches that tell it; None where none does, or nothing was paid."""
        costs = [costs["cost"] for costs in map(numbers, self.launches) if "cost" in costs]
        return sum(costs) if costs else None

    @property
    def launched(self) -> float:
        """Seconds of all its launches; from its first start to its last line where they are not known."""
        return sum(numbers(each).get("seconds", 0.0) for each in self.launches) or self.seconds


def numbers(measures: Mapping[str, Any]) -> dict[str, float]:
    """Those that are finite numbers, by their names."""
    return {
        name: float(value)
        for name, value in measures.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def full_steps(run: RunRecord) -> list[Step]:
    """The steps of at least half a global batch: shorter ones, at ends of epochs, say little by themselves."""
    return [step for step in run.steps if 2 * sum(step.split) >= run.latest.global_batch]


def read_all(read: Callable[[Path], _T], folders: Sequence[Path]) -> tuple[list[_T], list[str]]:
    """What `read` gives for each of these folders, and the sentence of each ExperimentError that it raises."""
    found: list[_T] = []
    problems: list[str] = []
    for folder in folders:
        try:
            found.append(read(folder))
        except ExperimentError as error:
            problems.append(str(error))
    return found, problems


def read_run(folder: Path) -> RunRecord:
    """The run of a folder. Raises ExperimentError where its record cannot be read, or has no start of a run."""
    with explain_os_error(ExperimentError, f"cannot read {folder / RECORD}", "give the --output of `shoal train`"):
        lines = regular(folder / RECORD).read_bytes().splitlines()
    content = _Content()
    for line in filter(bytes.strip, lines):
        content.add(line)
    if not content.starts:
        raise ExperimentError(
            f"{folder / RECORD} has no line of kind 'start' with all its fields; it is not the record of a training, "
            "or of another version: train again"
        )
    summary = read_json(folder / SUMMARY)
    end = summary if summary is not None else content.end
    launches = read_launches(folder)
    return RunRecord(
        folder=folder,
        starts=tuple(content.starts),
        steps=tuple(content.steps),
        epochs=tuple(content.epochs),
        checkpoints=tuple(content.checkpoints),
        notes=tuple(content.notes),
        sessions=(*content.sessions, content.session(content.steps, end=end)),
        test=content.test,
        summary=end,
        launch=launches[-1] if launches else {},
        launches=launches,
        last=content.last,
        left_out=content.left_out,
    )


class _Content:
    """The lines of a record, as they come."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.steps: list[Step] = []
        self.epochs: list[Epoch] = []
        self.checkpoints: list[Checkpoint] = []
        self.notes: list[Note] = []
        self.waits: list[Waiting] = []
        self.sessions: list[Session] = []
        self.test: Test | None = None
        self.end: dict[str, Any] | None = None
        self.last = 0.0
        self.left_out = 0

    def add(self, line: bytes) -> None:
        """Take in a line; one that is not what it should be is counted."""
        found = parse_line(line)
        if found is None or not (self.starts or isinstance(found, Start)):
            self.left_out += not isinstance(found, Search | Trial)  # of what came before the run
            return
        match found:
            case Start():
                self._go_on(found)
            case Step():
                self.steps.append(found)
            case Epoch():
                self.epochs.append(found)
            case Checkpoint():
                self.checkpoints.append(found)
            case Waiting():
                self.waits.append(found)
            case Note():
                self.notes.append(found)
            case Test():
                self.test = found
            case End():
                self.end = dict(found.summary)
        self.last = max(self.last, found.time)

    def _go_on(self, start: Start) -> None:
        """End the session before, and forget the steps that this start repeats."""
        if self.starts:
            kept = [step for step in self.steps if step.step <= start.from_step]
            lost = self.steps[len(kept) :]
            saved = [each.time for each in self.checkpoints if each.step <= start.from_step]
            since = max(saved, default=self.starts[-1].time)
            self.sessions.append(
                replace(
                    self.session(kept, end=self.end),
                    lost=lost[-1].step - start.from_step if lost else 0,
                    repeated=max(0.0, lost[-1].time - since) if lost else 0.0,
                    down=max(0.0, start.time - self.last) if self.end is None else 0.0,
                )
            )
            steps_an_epoch = start.steps / max(1, start.epochs)
            self.steps = kept
            self.epochs = [each for each in self.epochs if each.epoch * steps_an_epoch <= start.from_step]
            self.test = self.end = None
        self.starts.append(start)

    def session(self, steps: Sequence[Step], *, end: Mapping[str, Any] | None) -> Session:
        """The session since the latest start; `steps`: those of the run that count, so far."""
        start, computing = self.starts[-1], 0.0
        last = next((each for each in reversed(steps) if each.time >= start.time), None)
        if last is not None and last.rows_per_second and last.balanced is not None:
            rows = (last.step - start.from_step) * start.global_batch
            computing = max(0.0, rows / last.rows_per_second * last.balanced)
        waits = sum(each.seconds for each in self.waits if each.time >= start.time)
        return Session(start=start, until=self.last, computing=computing, waiting=waits, end=end)
