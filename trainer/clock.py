"""Where the time of training goes: the whole of it, and step by step its phases.

The easy mistake is to ask a GPU for the time of the step that was just queued: the host then waits for it, at every
step. On a GPU the newest times are those of two steps before, so that the host may be a step ahead.
"""

import time
from collections import defaultdict, deque
from collections.abc import Mapping
from itertools import pairwise

import torch

ROWS, FORWARD, BACKWARD, SLOWED = "rows", "forward", "backward", "slowed"
COMPUTE = (ROWS, FORWARD, BACKWARD, SLOWED)
"""The phases that are a rank's own computing: its rows by their numbers, their loss, their gradients, and sleep that
was asked for."""
ORDER, PACK, ALL_REDUCE, UPDATE = "order", "pack", "all_reduce", "update"
"""Which rows come next, and which words they have; gradients into one buffer and out again; their sum over the ranks,
with the wait for the last of them; the optimiser's step."""


class Clock:
    """Sums up stretches of time: training from the first step to the last, without what lies between epochs."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._since: float | None = None

    def go_on(self) -> None:
        """Count from now."""
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Count no further."""
        self._sum, self._since = self.seconds, None

    @property
    def seconds(self) -> float:
        """Counted so far."""
        return self._sum + (time.perf_counter() - self._since if self._since is not None else 0.0)


class Laps:
    """The phases of each step, by the host's clock."""

    def __init__(self) -> None:
        self.sums = _seconds()
        """Seconds a phase, over all steps whose times are known."""
        self._rows = 0
        self._now = _seconds()
        self._before = _seconds()
        self._since = time.perf_counter()

    def begin(self, rows: int) -> None:
        """A step of so many own rows begins, with its first phase."""
        self._add(self._now)
        self._before, self._now, self._rows = self._now, _seconds(), rows
        self._since = time.perf_counter()

    def end_of(self, phase: str) -> None:
        """A phase, which may come several times in a step, ends here, and the next begins."""
        now = time.perf_counter()
        self._now[phase] += now - self._since
        self._since = now

    def finish(self) -> None:
        """The last step is done."""
        self._add(self._now)
        self._now = _seconds()

    def computing(self) -> tuple[int, float]:
        """Rows and seconds of computing in the latest step of which they are known; (0, 0.0) before there is one."""
        return self._rows, sum(self._now.get(phase, 0.0) for phase in COMPUTE)

    def reducing(self) -> float:
        """Seconds of the latest all-reduce that is known; 0.0 before there is one."""
        return self._before.get(ALL_REDUCE, 0.0)

    def _add(self, phases: Mapping[str, float]) -> None:
        for phase, seconds in phases.items():
            self.sums[phase] += seconds


class WaitingLaps(Laps):
    """The phases of each step of a GPU, by the host's clock: the host waits for the GPU at the end of each.

    For a rank that is slowed: its sleep is not in the GPU's queue of work.
    """

    def begin(self, rows: int) -> None:
        torch.cuda.synchronize()
        super().begin(rows)

    def end_of(self, phase: str) -> None:
        torch.cuda.synchronize()
        super().end_of(phase)


class GPULaps(Laps):
    """The phases of each step, by events in the device's queue of work."""

    def __init__(self) -> None:
        super().__init__()
        self._latest = (0, _seconds())
        self._pending: deque[tuple[int, list[tuple[str, torch.cuda.Event]]]] = deque()

    def begin(self, rows: int) -> None:
        self._pending.append((rows, [("", _event())]))
        if len(self._pending) > 2:
            self._take_oldest()

    def end_of(self, phase: str) -> None:
        self._pending[-1][1].append((phase, _event()))

    def finish(self) -> None:
        while self._pending:
            self._take_oldest()

    def computing(self) -> tuple[int, float]:
        rows, phases = self._latest
        return rows, sum(phases.get(phase, 0.0) for phase in COMPUTE)

    def reducing(self) -> float:
        return self._latest[1].get(ALL_REDUCE, 0.0)

    def _take_oldest(self) -> None:
        rows, marks = self._pending.popleft()
        marks[-1][1].synchronize()
        phases = _seconds()
        for (_, begin), (phase, end) in pairwise(marks):
            phases[phase] += begin.elapsed_time(end) / 1000
        self._latest = rows, phases
        self._add(phases)


def laps_of(device: torch.device, *, slowed: bool) -> Laps:
    """The laps of a rank that computes on `device`, and is slowed or not."""
    if device.type != "cuda":
        return Laps()
    return WaitingLaps() if slowed else GPULaps()


def _seconds() -> defaultdict[str, float]:
    return defaultdict(float)


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
