"""Measures the time of a run: the total time of each activity, and the time of each phase of a training step.

Do not ask a GPU for the times of the step that was just queued, because the host would then wait for the GPU at every
step. On a GPU the latest known times are those of two steps earlier, so that the host can be one step ahead of the GPU.
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
"""Phases in which a rank computes: loading its rows, forward pass, backward pass, and the sleep of `--slow`."""
ORDER, PACK, ALL_REDUCE, UPDATE = "order", "pack", "all_reduce", "update"
"""Other phases: finding the next rows and their words; copying gradients to one buffer and back; summing gradients over
ranks, including the wait for the slowest rank; updating the weights.
"""


class ComputeStats(NamedTuple):
    """Rows that a rank computed in one step, and the seconds that the rank computed for them."""

    rows: int
    seconds: float


class Activity(StrEnum):
    """Activity on which a run spends time."""

    LOADING = "loading"
    """Read the dataset and create the model."""
    RATES = "rates"
    """Measure the ranks' own rates."""
    WAITING = "waiting"
    """Wait for the next rows of an unbounded stream."""
    TRAINING = "training"
    CHECKPOINTS = "checkpoints"
    """Write checkpoints, while other ranks wait or train."""
    EVALUATION = "evaluation"
    """Evaluate the model on validation rows, and at the end on test rows."""
    OTHER = "other"
    """Everything else."""


class Clock:
    """Measures the seconds that a run spends on each activity, from its creation with the activity `LOADING`.

    Each moment counts for exactly one activity, so the sums of all activities add up to the total time.
    """

    def __init__(self) -> None:
        self._sums = dict.fromkeys(Activity, 0.0)
        self._now, self._since = Activity.LOADING, time.perf_counter()

    def switch_to(self, activity: Activity) -> Activity:
        """Switch to `activity`, and return the previous activity."""
        before, now = self._now, time.perf_counter()
        self._sums[before] += now - self._since
        self._now, self._since = activity, now
        return before

    @contextmanager
    def during(self, activity: Activity) -> Iterator[None]:
        """Count the time of this block for `activity`, and then switch back to the previous activity."""
        before = self.switch_to(activity)
        try:
            yield
        finally:
            self.switch_to(before)

    @property
    def times(self) -> dict[Activity, float]:
        self.switch_to(self._now)
        return dict(self._sums)

    @property
    def training(self) -> float:
        """Seconds of training so far, including checkpoints."""
        times = self.times
        return times[Activity.TRAINING] + times[Activity.CHECKPOINTS]


class StepTimer:
    """Measures the phases of each step with the host's clock."""

    def __init__(self) -> None:
        self.sums = _seconds()
        """Seconds per phase, over all steps with known times."""
        self._rows = 0
        self._now = _seconds()
        self._since = time.perf_counter()

    def begin(self, rows: int) -> None:
        self._add(self._now)
        self._now, self._rows = _seconds(), rows
        self._since = time.perf_counter()

    def end_phase(self, phase: str) -> None:
        """End a phase, and start the next phase. A phase can occur several times in a step."""
        now = time.perf_counter()
        self._now[phase] += now - self._since
        self._since = now

    def finish(self) -> None:
        self._add(self._now)
        self._now = _seconds()

    def latest_stats(self) -> ComputeStats:
        """Return the rows and compute time of the latest step with known times; zeros before the first such step."""
        return ComputeStats(self._rows, sum(self._now.get(phase, 0.0) for phase in COMPUTE))

    def _add(self, phases: Mapping[str, float]) -> None:
        for phase, seconds in phases.items():
            self.sums[phase] += seconds


class CUDAStepTimer(StepTimer):
    """Measures the phases of each step with CUDA events."""

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
    """Return the timer for a rank that computes on `device`."""
    return CUDAStepTimer() if device.type == "cuda" else StepTimer()


def _seconds() -> defaultdict[str, float]:
    return defaultdict(float)


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
