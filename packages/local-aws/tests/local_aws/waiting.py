"""Waits for events outside of a test."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600
"""Time limit for a wait in seconds. It is long enough for a busy machine."""


def until(holds: Callable[[], Any], seconds: float = PATIENCE, *, every: float = 0.05) -> Any:
    """Wait until `holds` returns a true value, and return the value. Fail the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "this never became true"
        time.sleep(every)
    return found
