"""Shows how far the steps of a run on the cluster are: tasks, with the bar's rate and time left, and dollars."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from bootstrap.agent.documents import step_name
from bootstrap.agent.job_progress import JobProgress, progress_key
from bootstrap.aws.retry import retrying
from bootstrap.progress import Bars
from common.errors import DataError
from corpus.reading.s3 import S3Path, read_text

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_LOOK_SECONDS = 3.0


class FollowedSteps:
    def __init__(
        self, s3: "S3Client", bucket: str, run: str, bars: Bars, spent: Callable[[], float | None] = lambda: None
    ) -> None:
        """`spent` returns the dollars so far, or None where they are not known."""
        self._s3, self._place, self._run, self._bars, self._spent = (
            s3,
            S3Path(bucket, progress_key(run)),
            run,
            bars,
            spent,
        )
        self._name, self._total, self._looked_at = "", 0, 0.0

    def begin(self, name: str) -> None:
        self._name, self._total, self._looked_at = name, 0, 0.0
        self._bars.stage(name, 0)

    def tick(self) -> None:
        """Show how far it is, and look for that every few seconds."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            if (found := self._told()) is not None and found.total:
                if found.total != self._total:
                    self._total = found.total
                    self._bars.stage(self._name, found.total, " tasks")
                self._bars.at(found.done)
            if (spent := self._spent()) is not None:
                self._bars.say(**{"cost so far": f"${spent:,.2f}"})
        self._bars.tick()

    def last_lines(self) -> tuple[str, str]:
        """What the client of its job printed last, where that has failed, and what the task wrote last that did; empty
        where that is not told."""
        found = self._told()
        return ("", "") if found is None else (found.failed, found.written)

    def _told(self) -> JobProgress | None:
        """What the step has told. Nodes write it: what is of another step, or cannot be used, does not count."""
        with suppress(DataError):
            found = JobProgress.from_json(retrying(partial(read_text, self._s3, self._place)) or "")
            if found.name == step_name(self._run, self._name):
                return found
        return None
