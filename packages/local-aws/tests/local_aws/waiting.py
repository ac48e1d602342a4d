"""Waits for what happens beside a test."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600
"""Seconds that a busy machine may need for anything a test waits for."""


def until(holds: Callable[[], Any], seconds: float = PATIENCE, *, every: float = 0.05) -> Any:
    """Wait until this is true, and return it. A busy machine may take long; what never becomes true fails the test."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "this never became true"
        time.sleep(every)
    return found
