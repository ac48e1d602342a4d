"""What the readers of a training on a deployment have done, as reported in the data bucket."""

import math
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from bootstrap.nodes import fleet
from common.errors import DataError
from corpus.reading.s3 import S3Path, list_objects, read_text
from corpus.stream.progress import Status, sum_of
from infra import topology

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_TOLD = re.compile(r".*/reader-[0-9]{1,6}\.json")
_ALIVE = timedelta(minutes=2)
"""A run whose readers told something within this time counts as running."""
_LOOK_SECONDS = 5.0


def count_readers(deployment: Deployment) -> int:
    """How many nodes of a deployment read for those that train. Raises ShoalError where it has no nodes."""
    return sum(group.size for group in fleet.groups(deployment, readers=True) if group.role == "read")


def read_so_far(s3: "S3Client", run: S3Path, readers: int) -> Status:
    """What so many readers of the run in a folder have done, as reported."""
    names = (f"{run.key}reader-{each}.json" for each in range(readers))
    return _sum([read_text(s3, S3Path(run.bucket, name)) for name in names])


class ReadingProgress:
    """What the readers of a run have done, as it was some seconds ago."""

    def __init__(self, s3: "S3Client", run: S3Path, readers: int) -> None:
        self._look = partial(read_so_far, s3, run, readers)
        self._looked, self._read = -math.inf, Status()

    def __call__(self) -> Status:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            self._read = retrying(self._look)
        return self._read


def reading_now(s3: "S3Client", bucket: str, deployment: str) -> Status | None:
    """What the readers of a deployment have done that read now, by its data bucket; None where none does."""
    found = [
        each
        for each in list_objects(s3, S3Path(bucket, f"{topology.RUNS_PREFIX}{deployment}."))
        if _TOLD.fullmatch(each["Key"])
    ]
    if not found:
        return None
    newest = max(found, key=lambda each: each["LastModified"])
    if datetime.now(UTC) - newest["LastModified"] > _ALIVE:
        return None
    folder = newest["Key"].rpartition("/")[0]
    texts = [read_text(s3, S3Path(bucket, each["Key"])) for each in found if each["Key"].startswith(f"{folder}/")]
    return _sum(texts)


def _sum(told: Sequence[str | None]) -> Status:
    """What readers told, together. Others may write there, too: what is no status does not count."""
    found = []
    for text in told:
        with suppress(DataError):
            found += [] if text is None else [Status.from_json(text)]
    return sum_of(found)
