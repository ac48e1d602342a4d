"""Where the time and the money of a run went, cause by cause.

A run may have been started several times. What is told apart in full is the time of starts that came to an end, or were
stopped; of those that were cut off, and of a run that goes on, the record tells how much was computing, and the rest is
one cause. Do not count the time from the latest launch to its first line twice: it is in what the launch took.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard

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
_EARLIER = "earlier: "
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


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A part of a run's time."""

    name: str
    seconds: float
    dollars: float | None
    """None where it is not known, or nothing is paid."""


class _Part(NamedTuple):
    """A launch, or a session of one that is not known."""

    began: float
    launch: Mapping[str, Any]
    sessions: list[Session]


def causes(run: RunRecord) -> list[Cause]:
    """The causes of a run, in the order in which they first come; their seconds sum to all that the run took."""
    *earlier, latest = _parts(run)
    before: dict[str, Cause] = {}
    for each in (cause for part in earlier for cause in _of_part(part)):
        same = before.get(each.name)
        dollars = [one.dollars for one in (same, each) if one is not None and one.dollars is not None]
        seconds = each.seconds + (same.seconds if same else 0.0)
        before[each.name] = Cause(name=each.name, seconds=seconds, dollars=sum(dollars) if dollars else None)
    return [*(replace(each, name=_EARLIER + each.name) for each in before.values()), *_of_part(latest)]


def goodput(run: RunRecord) -> float | None:
    """The share of a run's time in which rows were computed that count; None for a run without time."""
    found = causes(run)
    total = sum(each.seconds for each in found)
    useful = sum(each.seconds for each in found if each.name in (COMPUTING, _EARLIER + COMPUTING))
    return useful / total if total else None


def _divided(stage: Cause, inside: Mapping[str, float]) -> list[Cause]:
    """The stage of the training by its causes, and what these do not name."""
    known = sum(inside.values())
    parts = dict(inside)
    if stage.seconds > known:
        parts[STARTING] = parts.get(STARTING, 0.0) + stage.seconds - known
    total = sum(parts.values())
    return [
        Cause(
            name=name,
            seconds=seconds,
            dollars=None if stage.dollars is None else stage.dollars * (seconds / total if total else 0.0),
        )
        for name, seconds in parts.items()
    ]


def _parts(run: RunRecord) -> list[_Part]:
    """The launches of a run with their sessions, and the sessions of other launches, in order."""
    latest = run.sessions[-1].start.time
    parts = [
        _Part(began if _is(began := launch.get("began")) else latest, launch, sessions=[]) for launch in run.launches
    ]
    for at, session in enumerate(run.sessions):
        following = run.sessions[at + 1].start.time if at + 1 < len(run.sessions) else None
        own = next((part for part in parts if _holds(part, session.start.time)), None)
        if own is None:
            parts.append(own := _Part(session.start.time, launch={}, sessions=[]))
        then = next((part for part in parts if following and part is not own and _holds(part, following)), None)
        if then is not None:  # after the session nothing ran until that launch began
            session = replace(session, down=min(session.down, max(0.0, then.began - session.until)))
        own.sessions.append(session)
    return sorted(parts, key=lambda part: part.began)


def _holds(part: _Part, moment: float) -> bool:
    """Whether a launch went on at a moment since 1970."""
    seconds = part.launch.get("seconds")
    return bool(part.launch) and part.began <= moment <= part.began + (seconds if _is(seconds) else math.inf)


def _of_part(part: _Part) -> list[Cause]:
    """The stages of a launch, the training among them by its causes."""
    inside = _added(_of_sessions(part.sessions))
    stages = _stages(part.launch)
    if not any(stage.name == _TRAIN for stage in stages) and (inside or not stages):
        whole, cost = part.launch.get("seconds"), part.launch.get("cost")
        is_all = not stages
        stages.append(
            Cause(
                name=_TRAIN,
                seconds=whole if is_all and _is(whole) else sum(inside.values()),
                dollars=cost if is_all and _is(cost) else None,
            )
        )
    return [cause for stage in stages for cause in (_divided(stage, inside) if stage.name == _TRAIN else [stage])]


def _of_sessions(sessions: Sequence[Session]) -> Iterator[tuple[str, float]]:
    for session in sessions:
        if session.end is not None and (parts := _in_full(session.end)):
            yield from parts
            continue
        took = max(0.0, session.until - session.start.time)
        repeated = min(session.repeated, took)
        computing = min(session.computing, took - repeated)
        waiting = min(session.waiting, took - repeated - computing)
        yield COMPUTING, computing
        yield TEXT, waiting
        yield MIXED, took - computing - waiting - repeated
        yield REPEATED, repeated
        yield DOWN, session.down


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


def _stages(launch: Mapping[str, Any]) -> list[Cause]:
    listed = launch.get("stages")
    return [
        Cause(name=each["name"], seconds=each["seconds"], dollars=each["dollars"] if _is(each.get("dollars")) else None)
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str) and _is(each.get("seconds"))
    ]


def _added(parts: Iterator[tuple[str, float]]) -> dict[str, float]:
    """The sums by cause, without those of nothing."""
    found: dict[str, float] = {}
    for name, seconds in parts:
        if seconds > 0:
            found[name] = found.get(name, 0.0) + seconds
    return found


def _is(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
