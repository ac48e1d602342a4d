"""Finds the folders of runs, and reads the records that training runs write there (trainer/output/lines.py).

A run can still be in progress, can have been cut off in the middle of a line, or can have the fields of a different
version. So invalid lines of its record are skipped and counted. Do not count every step line as a step of the run. A
resumed run repeats the steps after its latest checkpoint, and only the last repetition counts.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from common.errors import ExperimentError, explain_os_error
from common.files import DOCUMENT_BYTES, RECORD_BYTES, open_regular
from common.json_values import finite_numbers
from trainer.classification.metrics import Confusion
from trainer.output.lines import End, Epoch, Line, Start, Step, Test, parse_line
from trainer.output.run_files import LAUNCH, RECORD, SUMMARY, read_json
from trainer.output.summary import Mistake, StoredConfusion

_MAX_DEPTH = 4
"""Maximum depth of the search below a given folder."""
_L = TypeVar("_L", bound=Line)
_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Session:
    """Section of a run's record, from one start to the next start or to the last line."""

    start: Start
    until: float
    """Time of the last line in seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class ParsedRecord:
    folder: Path
    steps: tuple[Step, ...]
    """Steps of the run in order, without steps that a resumed run repeated later."""
    epochs: tuple[Epoch, ...]
    sessions: tuple[Session, ...]
    """Sections of the record, at least one."""
    test: Test | None
    summary: Mapping[str, Any] | None
    """Content of summary.json, or None for an unfinished run."""
    launches: tuple[Mapping[str, Any], ...]
    """Facts from launch.json (nodes, cost, stages), one mapping for each command that launched the run, the latest
    last. Commands that were killed are missing."""
    last: float
    """Time of the last line in seconds since 1970."""
    left_out: int
    """Number of lines of the record that could not be used."""

    @property
    def latest(self) -> Start:
        return self.sessions[-1].start

    @property
    def seconds(self) -> float:
        """Seconds from the first start to the last line of the record."""
        return self.last - self.sessions[0].start.time

    @property
    def state(self) -> str:
        """State of the run: `finished`, `stopped`, or, if the run is in progress or was cut off, `unfinished`."""
        if self.summary is None:
            return "unfinished"
        return "stopped" if self.summary.get("stopped") else "finished"

    @property
    def measures(self) -> Mapping[str, float]:
        """Measures on the test rows. Before these exist, measures on the validation rows after the latest epoch."""
        if self.test is not None:
            return finite_numbers(self.test.measures)
        return finite_numbers(self.epochs[-1].validation) if self.epochs else {}

    @property
    def confusion(self) -> tuple[Sequence[str], Confusion] | None:
        """Class names and confusion matrix of the test rows; None for embeddings, and before the test."""
        found = _checked(StoredConfusion, self.test and self.test.measures.get("confusion"))
        return (found.classes, Confusion(tuple(map(tuple, found.counts)))) if found else None

    @property
    def mistakes(self) -> Sequence[Mistake]:
        """The wrong predictions that the test recorded."""
        listed = self.test and self.test.measures.get("mistakes")
        found = [_checked(Mistake, each) for each in listed] if isinstance(listed, list) else []
        return [each for each in found if each is not None]

    def summary_number(self, name: str) -> float | None:
        """Return a number of the summary, or None if it is missing."""
        return finite_numbers(self.summary or {}).get(name)

    def passed(self, moment: float) -> float:
        """Return how many seconds the run had been active until `moment` (seconds since 1970), without the pauses
        between its sections."""
        return sum(max(0.0, min(moment, each.until) - each.start.time) for each in self.sessions)

    @property
    def dollars(self) -> float | None:
        """Cost of the run's nodes in dollars: the sum over all launches with a known cost, or None if no launch has a
        known cost."""
        costs = [costs["cost"] for costs in map(finite_numbers, self.launches) if "cost" in costs]
        return sum(costs) if costs else None


def _checked(kind: type[_M], content: object) -> _M | None:
    """Return `content` as an object of this class, or None if it does not fit."""
    with suppress(ValidationError):
        return kind.model_validate(content)
    return None


def read_runs(folders: Sequence[Path]) -> tuple[list[ParsedRecord], list[str]]:
    """Return the runs at and below these folders, and messages about runs that are unreadable.

    Raises ExperimentError if there is no run at or below one of the folders, or if no run is readable.
    """
    found: list[ParsedRecord] = []
    problems: list[str] = []
    for folder in find_runs(folders):
        try:
            found.append(read_run(folder))
        except ExperimentError as error:
            problems.append(str(error))
    if not found:
        raise ExperimentError(problems[0])
    return found, problems


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Return the distinct folders of runs at and below these paths, in order.

    Raises ExperimentError if there is no run at or below one of the paths.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise ExperimentError(
                f"{path} does not exist; give the --output of `shoal train`, or a folder with several runs"
            )
        below = sorted(_below(path, _MAX_DEPTH)) if path.is_dir() else []
        if not below:
            raise ExperimentError(
                f"{path} has no {RECORD}, and neither has any folder below it; give the --output of `shoal train`"
            )
        found |= {each.resolve(): each for each in below if each.resolve() not in found}
    return list(found.values())


def _below(folder: Path, depth: int) -> Iterator[Path]:
    record = folder / RECORD
    if os.path.lexists(record) and not record.is_dir():  # reading reports a pipe, or a link that leads nowhere
        yield folder
    elif depth:
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                yield from _below(each, depth - 1)


def read_run(folder: Path) -> ParsedRecord:
    """Return the run in a folder. Raises ExperimentError if a file is unreadable or the record has no start line."""
    with (
        explain_os_error(ExperimentError, f"cannot read {folder / RECORD}", "give the --output of `shoal train`"),
        open_regular(folder / RECORD, RECORD_BYTES) as record,
    ):
        parts, left_out = _parts(iter(lambda: record.readline(DOCUMENT_BYTES), b""))
    if not parts:
        raise ExperimentError(
            f"{folder / RECORD} has no line of kind 'start' with all its fields; it is not the record of a training "
            "run, or is from a different version of Shoal; train again"
        )
    for path in (folder / SUMMARY, folder / LAUNCH):
        with explain_os_error(ExperimentError, f"cannot read {path}", "make it readable"), suppress(FileNotFoundError):
            open_regular(path, DOCUMENT_BYTES).close()
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
    return ParsedRecord(
        folder=folder,
        steps=tuple(steps),
        epochs=tuple(epochs),
        sessions=tuple(sessions),
        test=next(iter(reversed(_of(Test, parts[-1].lines))), None),
        summary=summary,
        launches=_launches(folder),
        last=last,
        left_out=left_out,
    )


def _launches(folder: Path) -> tuple[Mapping[str, Any], ...]:
    latest = read_json(folder / LAUNCH)
    if not latest:
        return ()
    earlier = latest.get("earlier")
    return (*(each for each in (earlier if isinstance(earlier, list) else ()) if isinstance(each, dict)), latest)


class _Part(NamedTuple):
    start: Start
    lines: list[Line]
    """The start line, and the lines up to the next start line."""


def _parts(lines: Iterable[bytes]) -> tuple[list[_Part], int]:
    """Return the lines, grouped by their start line, and the number of invalid lines."""
    parts: list[_Part] = []
    left_out = 0
    for line in map(parse_line, filter(bytes.strip, lines)):
        if isinstance(line, Start):
            parts.append(_Part(line, [line]))
        elif line is None:
            left_out += 1
        elif parts:  # lines before the first start line do not belong to the run
            parts[-1].lines.append(line)
    return parts, left_out


def _of(kind: type[_L], part: Iterable[Line]) -> list[_L]:
    return [each for each in part if isinstance(each, kind)]
