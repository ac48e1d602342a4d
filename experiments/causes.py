"""Where the time and the money of a run went, cause by cause.

A run may have been started several times. What is told apart in full is the time of starts that came to an end, or were
stopped; of those that were cut off, and of a run that goes on, the record tells how much was computing, and the rest is
one cause. Do not count the time from the latest launch to its first line twice: it is in what the launch took.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from experiments.runs import Run, Session

COMPUTING = "computing"
WAITING = "waiting for others"
ALL_REDUCE = "all-reduce"
DATA = "loading rows"
CHECKPOINTS = "checkpoints"
STEPS = "rest of the steps"
LOADING = "loading the dataset"
RATES = "measuring rates"
EVALUATION = "evaluation"
STARTING = "starting and ending"
MIXED = "not told apart"
REPEATED = "steps lost to faults"
DOWN = "down after faults"
_EARLIER = "earlier: "
_TRAIN = "train"
"""The stage of a launch (launch.json) in which the ranks run."""
_LOST = {"imbalance": WAITING, "communication": ALL_REDUCE, "data": DATA, "checkpoints": CHECKPOINTS, "rest": STEPS}
_TIMES = {"loading": LOADING, "rates": RATES, "evaluation": EVALUATION, "other": STARTING}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A part of a run's time."""

    name: str
    seconds: float
    dollars: float | None
    """None where it is not known, or nothing is paid."""


def causes(run: Run) -> list[Cause]:
    """The causes of a run, in the order in which they first come; their seconds sum to all that the run took."""
    began = run.launch.get("began")
    first = next((at for at, each in enumerate(run.sessions) if each.start.time >= began), None) if _is(began) else None
    split = len(run.sessions) - 1 if first is None else first
    before = _added(_of_sessions(_until(began, run.sessions[:split])))
    inside = _added(_of_sessions(run.sessions[split:]))
    found = [Cause(name=_EARLIER + name, seconds=seconds, dollars=None) for name, seconds in before.items()]
    stages = _stages(run)
    if not any(stage.name == _TRAIN for stage in stages):
        whole = run.launch.get("seconds")
        dollars = run.dollars if not stages else None
        stages = [Cause(name=_TRAIN, seconds=whole if _is(whole) else sum(inside.values()), dollars=dollars)]
    for stage in stages:
        found += _divided(stage, inside) if stage.name == _TRAIN else [stage]
    return found


def goodput(run: Run) -> float | None:
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


def _until(began: object, sessions: tuple[Session, ...]) -> Sequence[Session]:
    """The sessions before a launch that began then: after the last of them nothing ran until that moment."""
    if not sessions or not _is(began):
        return sessions
    *others, last = sessions
    return [*others, replace(last, down=min(last.down, max(0.0, began - last.until)))]


def _of_sessions(sessions: Sequence[Session]) -> Iterator[tuple[str, float]]:
    for session in sessions:
        if session.end is not None and (parts := _in_full(session.end)):
            yield from parts
            continue
        took = max(0.0, session.until - session.start.time)
        repeated = min(session.repeated, took)
        computing = min(session.computing, took - repeated)
        yield COMPUTING, computing
        yield MIXED, took - computing - repeated
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


def _stages(run: Run) -> list[Cause]:
    """The stages of the run's latest launch, as far as they are what they should be."""
    listed = run.launch.get("stages")
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
