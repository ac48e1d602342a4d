"""What runs did, read from their folders: the records that trainings leave (trainer/output/lines.py).

A record may be of a run that goes on, or that was cut off in the middle of a line, and of a version with other fields.
So a line that is not what it should be is left out and counted. Do not take all lines of steps for steps of the run: a
resumed run repeats those after its latest checkpoint, and only the last of them count.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from common.errors import ExperimentError, explain_os_error
from common.files import require_regular
from experiments.records.launches import read_launches
from trainer.output.lines import End, Epoch, Line, Note, Search, Start, Step, Test, Trial, parse_line
from trainer.output.run_files import RECORD, SUMMARY, read_json

_T = TypeVar("_T")
_L = TypeVar("_L", bound=Line)


@dataclass(frozen=True, kw_only=True)
class Session:
    """A run from one of its starts to the next, or to its last line."""

    start: Start
    until: float
    """The time of its last line, since 1970."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    folder: Path
    starts: tuple[Start, ...]
    steps: tuple[Step, ...]
    """Those that count, in order."""
    epochs: tuple[Epoch, ...]
    notes: tuple[Note, ...]
    sessions: tuple[Session, ...]
    test: Test | None
    summary: Mapping[str, Any] | None
    """None of a run that has not ended."""
    launches: tuple[Mapping[str, Any], ...]
    """What each of the commands that ran it knew (nodes, cost, stages), the latest one last; those that were killed are
    not there."""
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
    def measures(self) -> Mapping[str, float]:
        """The measures on the test rows, or, before these, on the validation rows after the latest epoch."""
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
        lines = [each for each in require_regular(folder / RECORD).read_bytes().splitlines() if each.strip()]
    parts, left_out = _parts(lines)
    if not parts:
        raise ExperimentError(
            f"{folder / RECORD} has no line of kind 'start' with all its fields; it is not the record of a training, "
            "or of another version: train again"
        )
    if any(part.start.config.get("sleep") for part in parts):
        raise ExperimentError(
            f"{folder / RECORD} is of ranks that slept instead of computing, as those of 0.2.0 could; leave it out"
        )
    launches = read_launches(folder)
    steps: list[Step] = []
    epochs: list[Epoch] = []
    sessions: list[Session] = []
    last = 0.0
    for at, part in enumerate(parts):
        last = max(last, *(each.time for each in part.lines))
        steps += _of(Step, part.lines)
        epochs += _of(Epoch, part.lines)
        sessions.append(Session(start=part.start, until=last))
        if at + 1 < len(parts):
            following = parts[at + 1].start
            an_epoch = following.steps / max(1, following.epochs)
            steps = [each for each in steps if each.step <= following.from_step]
            epochs = [each for each in epochs if each.epoch * an_epoch <= following.from_step]
    summary: Mapping[str, Any] | None = read_json(folder / SUMMARY)
    if summary is None:
        summary = next((each.summary for each in reversed(_of(End, parts[-1].lines))), None)
    return RunRecord(
        folder=folder,
        starts=tuple(part.start for part in parts),
        steps=tuple(steps),
        epochs=tuple(epochs),
        notes=tuple(each for part in parts for each in _of(Note, part.lines)),
        sessions=tuple(sessions),
        test=next(iter(reversed(_of(Test, parts[-1].lines))), None),
        summary=summary,
        launches=launches,
        last=last,
        left_out=left_out,
    )


class _Part(NamedTuple):
    start: Start
    lines: list[Line]
    """The start and the lines up to the next one."""


def _parts(lines: Sequence[bytes]) -> tuple[list[_Part], int]:
    """The lines from each start on, and the number of those that are not what they should be."""
    parts: list[_Part] = []
    left_out = 0
    for line in map(parse_line, lines):
        if isinstance(line, Start):
            parts.append(_Part(line, [line]))
        elif line is not None and parts:
            parts[-1].lines.append(line)
        else:
            left_out += not isinstance(line, Search | Trial)  # these come before the run
    return parts, left_out


def _of(kind: type[_L], part: Iterable[Line]) -> list[_L]:
    return [each for each in part if isinstance(each, kind)]
