"""Waits for what happens beside a test."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], seconds: float = 240, *, every: float = 0.05) -> None:
    """Wait until this is true. A busy machine may take long; what never becomes true fails the test."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "this never became true"
        time.sleep(every)
