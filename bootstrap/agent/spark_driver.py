"""How far the job of a driver of Spark is, by the REST API that it serves on its own machine.

See "REST API" in Spark's documentation of monitoring. With YARN the driver sends whoever asks to YARN's proxy.
"""

import json
from http.client import HTTPException
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

_SECONDS = 2.0
_MOST_BYTES = 8 << 20


def tasks(port: int) -> tuple[int, int] | None:
    """How many tasks of the stages so far are done, and how many there are; None while it does not tell."""
    applications = f"http://localhost:{port}/api/v1/applications"
    try:
        (application,) = _asked(applications)
        stages = _asked(f"{applications}/{quote(application['id'], safe='')}/stages")
        counts = [_counts(each) for each in stages]
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None  # also while it starts: then it answers in words
    return sum(done for done, _ in counts), sum(total for _, total in counts)


def _asked(address: str) -> Any:
    with build_opener(ProxyHandler({})).open(address, timeout=_SECONDS) as answer:
        return json.loads(answer.read(_MOST_BYTES))


def _counts(stage: dict[str, Any]) -> tuple[int, int]:
    """The tasks of an attempt of a stage: those that are done, and all. One that failed has another attempt for the
    rest, and one that is skipped has its output from an earlier job."""
    total, done = int(stage["numTasks"]), int(stage["numCompleteTasks"])
    if stage["status"] in ("FAILED", "SKIPPED"):
        return done, done
    return min(done, total), total
