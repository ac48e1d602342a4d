"""Shared code of all parts: outcomes, intermediate figures, messages, a time budget, and timing of a GPU.

Do not time a GPU by the host's clock, because the GPU may still work. Measure between two events in its queue.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from trainer.options import section

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "reference": {"embedding": 100, "hidden": 32, "layers": 2, "pooling": "last", "word_dropout": 0.0},
}
"""Measured models, as options of a training run."""

if find_spec("pydantic") is None:  # it checks options, but those of benchmarks are constants
    vars(section)["require_fields"] = lambda *_: None


@dataclass(frozen=True)
class Outcome:
    """Result of a part, with figures in JSON's types."""

    said: str
    """Result in one line."""
    figures: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


class OutcomeFile:
    """File with the outcome of the part in this process. Without a path nothing is written."""

    path: Path | None = None

    @classmethod
    def write(cls, outcome: Outcome) -> None:
        """Replace the content of the file."""
        if cls.path:
            whole = cls.path.with_suffix(".new")  # the part may be killed at any time
            whole.write_text(json.dumps(asdict(outcome)))
            whole.replace(cls.path)


def keep(figures: dict[str, Any]) -> None:
    """Write the figures so far. A part that is killed counts as failed, but keeps them."""
    OutcomeFile.write(Outcome(said="", figures=figures, failed=True))


class Budget:
    """Time after which a part starts no new work, so that it ends in time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Remaining seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())


def print_progress(text: str = "") -> None:
    """Print a line and flush it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def finish(device: torch.device) -> None:
    """Wait until a GPU has finished the work in its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def milliseconds(call: Callable[[], Any], device: torch.device, *, repeats: int = 10, warm_up: int = 3) -> float:
    """Return the median time of `repeats` calls after `warm_up` calls, in milliseconds.

    Calls are queued, so a GPU does not wait for the host. If the host is slower, this is the host's time.
    """
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
    """Return the norm of the difference of two tensors, divided by the norm of `expected`; NaN if either has NaN."""
    difference = (found.double().cpu() - expected.double().cpu()).norm()
    return float(difference / expected.double().norm().cpu().clamp(min=1e-30))
