"""Where the time and the money of a run went, cause by cause.

A run may have been started several times. What is told apart in full is the time of starts that came to an end, or were
stopped; of those that were cut off, and of a run that goes on, the record tells how much was computing, and the rest is
one cause. Do not count the time from a launch to the first line of its run twice: it is in what the launch took.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from experiments.records.runs import RunRecord, Session

COMPUTING = "computing"
WAITING = "waiting for others"
ALL_REDUCE = "all-reduce"
DATA = "loading rows"
TEXT = "waiting for text"
CHECKPOINTS = "checkpoints"
STEPS = "rest of the steps"
LOADING = "loading the dataset"
RATES = "measuring rates"
SEARCH = "search for settings"
EVALUATION = "evaluation"
STARTING = "starting and ending"
MIXED = "not told apart"
REPEATED = "steps lost to faults"
DOWN = "down after faults"
_TRAIN = "train"
"""The stage of a launch (launch.json) in which the ranks run."""
_LOST = {"imbalance": WAITING, "communication": ALL_REDUCE, "data": DATA, "checkpoints": CHECKPOINTS, "rest": STEPS}
_TIMES = {
    "loading": LOADING,
    "rates": RATES,
    "waiting": TEXT,
    "evaluation": EVALUATION,
    "other": STARTING,
    "search": SEARCH,
}
KINDS = ("computing", "waiting", "all-reduce", "starting", "rest", "faults")
"""Of causes, in which several runs are compared."""
_KINDS = {
    COMPUTING: "computing",
    **dict.fromkeys((WAITING, TEXT), "waiting"),
    ALL_REDUCE: "all-reduce",
    **dict.fromkeys((DATA, CHECKPOINTS, STEPS, EVALUATION, MIXED), "rest"),
    **dict.fromkeys((REPEATED, DOWN), "faults"),
}
"""Other causes, also the stages of a launch besides the training, are the start."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A part of a run's time."""

    name: str
    seconds: float
    dollars: float | None
    """None where it is not known, or nothing is paid."""

    @property
    def kind(self) -> str:
        return _KINDS.get(self.name, "starting")


def causes(run: RunRecord) -> list[Cause]:
    """The causes of a run, of all its launches together; their seconds sum to all that the run took."""
    return _added(cause for launch, sessions in _parts(run) for cause in _of_launch(launch, sessions))


def goodput(run: RunRecord) -> float | None:
    """The share of a run's time in which rows were computed that count; None for a run without time."""
    found = causes(run)
    total = sum(each.seconds for each in found)
    return sum(each.seconds for each in found if each.name == COMPUTING) / total if total else None


def _added(causes: Iterable[Cause]) -> list[Cause]:
    """The sums by name, in the order in which the names first come."""
    found: dict[str, Cause] = {}
    for each in causes:
        before = found.get(each.name, Cause(name=each.name, seconds=0.0, dollars=None))
        dollars = [one.dollars for one in (before, each) if one.dollars is not None]
        total = sum(dollars) if dollars else None
        found[each.name] = Cause(name=each.name, seconds=before.seconds + each.seconds, dollars=total)
    return list(found.values())


def _parts(run: RunRecord) -> list[tuple[Mapping[str, Any], list[Session]]]:
    """The launches of a run with their sessions, and the sessions of launches that are not known."""
    latest = run.sessions[-1].start.time
    began = [each if _is(each := launch.get("began")) else latest for launch in run.launches]
    own: list[list[Session]] = [[] for _ in run.launches]
    others: list[tuple[Mapping[str, Any], list[Session]]] = []

    def launched(moment: float) -> int | None:
        """The launch that went on at a moment since 1970."""
        for place, launch in enumerate(run.launches):
            seconds = launch.get("seconds")
            if began[place] <= moment <= began[place] + (seconds if _is(seconds) else math.inf):
                return place
        return None

    for at, session in enumerate(run.sessions):
        place = launched(session.start.time)
        following = launched(run.sessions[at + 1].start.time) if at + 1 < len(run.sessions) else None
        if following is not None and following != place:  # after the session nothing ran until that launch began
            session = replace(session, down=min(session.down, max(0.0, began[following] - session.until)))
        if place is None:
            others.append(({}, [session]))
        else:
            own[place].append(session)
    return [*others, *zip(run.launches, own, strict=True)]


def _of_launch(launch: Mapping[str, Any], sessions: Sequence[Session]) -> Iterator[Cause]:
    """The stages of a launch, the training among them by its causes, and what these do not name."""
    inside = {each.name: each.seconds for each in _added(_of_sessions(sessions)) if each.seconds > 0}
    listed = launch.get("stages")
    stages = [
        (each["name"], each["seconds"], each.get("dollars"))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str) and _is(each.get("seconds"))
    ]
    known = sum(inside.values())
    if not stages:
        whole = launch.get("seconds")
        stages = [(_TRAIN, whole if _is(whole) else known, launch.get("cost"))]
    elif inside and all(name != _TRAIN for name, *_ in stages):
        stages.append((_TRAIN, known, None))
    for name, seconds, told in stages:
        dollars = told if _is(told) else None
        parts = {name: seconds}
        if name == _TRAIN:
            parts = {**inside, STARTING: inside.get(STARTING, 0.0) + max(0.0, seconds - known)}
        total = sum(parts.values())
        for part, took in parts.items():
            if took or name != _TRAIN:
                paid = dollars if dollars is None or not total else dollars * took / total
                yield Cause(name=part, seconds=took, dollars=paid)


def _of_sessions(sessions: Sequence[Session]) -> Iterator[Cause]:
    for session in sessions:
        parts = _in_full(session.end) if session.end is not None else []
        if not parts:
            took = max(0.0, session.until - session.start.time)
            repeated = min(session.repeated, took)
            computing = min(session.computing, took - repeated)
            waiting = min(session.waiting, took - repeated - computing)
            parts = [
                (COMPUTING, computing),
                (TEXT, waiting),
                (MIXED, took - computing - waiting - repeated),
                (REPEATED, repeated),
                (DOWN, session.down),
            ]
        for name, seconds in parts:
            yield Cause(name=name, seconds=seconds, dollars=None)


def _in_full(summary: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The time since a start as the summary of its end has it; empty where that lacks it."""
    times, lost, computing = summary.get("times"), summary.get("lost"), summary.get("balanced")
    if not isinstance(times, dict) or not isinstance(lost, dict) or not _is(computing):
        return []
    steps = sum(times[name] for name in ("training", CHECKPOINTS) if _is(times.get(name)))
    shares = {COMPUTING: computing, **{cause: lost[name] for name, cause in _LOST.items() if _is(lost.get(name))}}
    positive = {cause: max(0.0, share) for cause, share in shares.items()}
    total = sum(positive.values())
    if not total:
        return []
    found = [(cause, times[name]) for name, cause in _TIMES.items() if _is(times.get(name))]
    found[2:2] = [(cause, steps * share / total) for cause, share in positive.items()]
    return [(cause, max(0.0, seconds)) for cause, seconds in found]


def _is(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
