"""Where the time of a run goes: all of it by activity, and the training steps by phase.

Do not ask a GPU for the times of the step that was just queued: the host would wait for it at every step. On a GPU the
newest times are those of two steps before, so the host may be one step ahead.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

import torch

ROWS, FORWARD, BACKWARD, SLOWED = "rows", "forward", "backward", "slowed"
COMPUTE = (ROWS, FORWARD, BACKWARD, SLOWED)
"""The phases of a rank's own computing: loading its rows, their loss, their gradients, and the sleep of --slow."""
ORDER, PACK, ALL_REDUCE, UPDATE = "order", "pack", "all_reduce", "update"
"""Finding the next rows and their words; copying gradients into one buffer and back; their sum over the ranks, with the
wait for the last rank; the optimiser's step."""


class ComputeStats(NamedTuple):
    """The rows that a rank computed in a step, and the seconds that it took."""

    rows: int
    seconds: float


class Activity(StrEnum):
    """What a run spends its time on."""

    LOADING = "loading"
    """Reading the dataset, making the model."""
    RATES = "rates"
    """Measuring the ranks' own rates."""
    WAITING = "waiting"
    """For the next rows of an unbounded stream."""
    SEARCH = "search"
    """For the best settings (`--model auto`)."""
    TRAINING = "training"
    CHECKPOINTS = "checkpoints"
    """Writing them, while other ranks wait, or train."""
    EVALUATION = "evaluation"
    """Judging the model, by validation rows and at the end by test rows."""
    OTHER = "other"
    """Everything else."""


class Clock:
    """Adds up the time of a run by activity. Every moment counts once, so the sums add up to the whole time.

    Time counts from the creation of this object, first for loading.
    """

    def __init__(self) -> None:
        self._sums = dict.fromkeys(Activity, 0.0)
        self._now, self._since = Activity.LOADING, time.perf_counter()

    def turn_to(self, activity: Activity) -> Activity:
        """Count for `activity` from now on; returns the activity until now."""
        before, now = self._now, time.perf_counter()
        self._sums[before] += now - self._since
        self._now, self._since = activity, now
        return before

    @contextmanager
    def during(self, activity: Activity) -> Iterator[None]:
        """Count for `activity` inside this block, and for the previous activity after it."""
        before = self.turn_to(activity)
        try:
            yield
        finally:
            self.turn_to(before)

    @property
    def times(self) -> dict[Activity, float]:
        self.turn_to(self._now)
        return dict(self._sums)

    @property
    def training(self) -> float:
        """Seconds so far of training, with its checkpoints."""
        times = self.times
        return times[Activity.TRAINING] + times[Activity.CHECKPOINTS]


class StepTimer:
    """The phases of each step, by the host's clock."""

    def __init__(self) -> None:
        self.sums = _seconds()
        """Seconds a phase, over all steps whose times are known."""
        self._rows = 0
        self._now = _seconds()
        self._since = time.perf_counter()

    def begin(self, rows: int) -> None:
        self._add(self._now)
        self._now, self._rows = _seconds(), rows
        self._since = time.perf_counter()

    def end_phase(self, phase: str) -> None:
        """End a phase, which may occur several times in a step; the next phase begins."""
        now = time.perf_counter()
        self._now[phase] += now - self._since
        self._since = now

    def finish(self) -> None:
        self._add(self._now)
        self._now = _seconds()

    def latest_stats(self) -> ComputeStats:
        """What was computed in the latest step whose times are known; zeros before the first one."""
        return ComputeStats(self._rows, sum(self._now.get(phase, 0.0) for phase in COMPUTE))

    def _add(self, phases: Mapping[str, float]) -> None:
        for phase, seconds in phases.items():
            self.sums[phase] += seconds


class CUDAStepTimer(StepTimer):
    """The phases of each step, by events in the device's queue of work."""

    def __init__(self) -> None:
        super().__init__()
        self._latest = (0, _seconds())
        self._pending: deque[tuple[int, list[tuple[str, torch.cuda.Event]]]] = deque()

    def begin(self, rows: int) -> None:
        self._pending.append((rows, [("", _event())]))
        if len(self._pending) > 2:
            self._take_oldest()

    def end_phase(self, phase: str) -> None:
        self._pending[-1][1].append((phase, _event()))

    def finish(self) -> None:
        while self._pending:
            self._take_oldest()

    def latest_stats(self) -> ComputeStats:
        rows, phases = self._latest
        return ComputeStats(rows, sum(phases.get(phase, 0.0) for phase in COMPUTE))

    def _take_oldest(self) -> None:
        rows, marks = self._pending.popleft()
        marks[-1][1].synchronize()
        phases = _seconds()
        for (_, begin), (phase, end) in pairwise(marks):
            phases[phase] += begin.elapsed_time(end) / 1000
        self._latest = rows, phases
        self._add(phases)


def step_timer(device: torch.device) -> StepTimer:
    """The timer for a rank that computes on `device`."""
    return CUDAStepTimer() if device.type == "cuda" else StepTimer()


def _seconds() -> defaultdict[str, float]:
    return defaultdict(float)


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
