"""What all parts share: an outcome, figures kept on the way, messages, a budget of time, and milliseconds of a GPU.

Do not time by the host's clock, because the GPU may still work: times are measured between two events in its queue.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "reference": {"embedding": 100, "hidden": 32, "layers": 2, "pooling": "last", "word_dropout": 0.0},
}
"""Models that are measured, as options of a training run."""


@dataclass(frozen=True)
class Outcome:
    """The result of a part, with figures in types that JSON has."""

    said: str
    """The result in one line."""
    figures: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


class OutcomeFile:
    """The file that has the outcome of the part in this process; without a path nothing is written."""

    path: Path | None = None

    @classmethod
    def write(cls, outcome: Outcome) -> None:
        """Replace what the file has."""
        if cls.path:
            whole = cls.path.with_suffix(".new")  # the part may be ended at any moment
            whole.write_text(json.dumps(asdict(outcome)))
            whole.replace(cls.path)


def keep(figures: dict[str, Any]) -> None:
    """Write the figures known so far: a part that is ended has failed, but leaves these."""
    OutcomeFile.write(Outcome(said="", figures=figures, failed=True))


class Budget:
    """A time after which nothing new is begun, so that a part comes to its end by itself."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; 0 when it is spent."""
        return max(0.0, self._end - time.monotonic())


def print_progress(text: str = "") -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def finish(device: torch.device) -> None:
    """Wait until a GPU has done the work in its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def milliseconds(call: Callable[[], Any], device: torch.device, *, repeats: int = 10, warm_up: int = 3) -> float:
    """The median time of `repeats` calls, after some to warm up. With a queue of calls a GPU never waits for the host,
    unless the host is the slower of the two: then this is the host's time."""
    for _ in range(warm_up):
        call()
    finish(device)
    if device.type != "cuda":
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            times.append(1000 * (time.perf_counter() - start))
        return median(times)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        call()
        mark.record()
    finish(device)
    return float(median(before.elapsed_time(after) for before, after in pairwise(marks)))


def deviation(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The length of the difference of two tensors, divided by the length of `expected`; NaN if either contains NaN."""
    difference = (found.double().cpu() - expected.double().cpu()).norm()
    return float(difference / expected.double().norm().cpu().clamp(min=1e-30))
