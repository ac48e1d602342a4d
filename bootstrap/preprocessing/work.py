"""Files of a preprocessing run in the data bucket: markers of finished steps, the claim to submit steps, and cleanup.

If several commands start the same run, one command submits the run, and the other commands follow it. The marker of a
finished step is valid for only one day. The bucket deletes old objects one by one, so an older marker can outlive some
of the step's output.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson

from bootstrap.aws import objects
from common.errors import DataError
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import S3Path, head_or_none, list_objects, place_of, put, put_new
from jobs.merge import MergeResult, read_merge_result
from jobs.steps import CommandStep, JobStep, Plan

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

FAILURE, FOLLOWED = "failure.txt", "followed"
"""Names of objects in the folder of a run: the error message about its data, and the mark that a different command
follows the run."""
_CLAIM = "claim"
# The bucket deletes objects after two days, and a step can take up to a day to write its output.
_MARKER_LIFETIME = timedelta(days=1)


def record_result(s3: "S3Client", run: str, made: MergeResult) -> None:
    """Record next to a dataset that this run created it, so that the run is not repeated. The dataset then counts as
    the newest one."""
    place = place_of(made.dataset)
    put(s3, S3Path(place.bucket, f"{place.key.rpartition('/')[0]}/{run}.json"), orjson.dumps(asdict(made)))


def find_result(s3: "S3Client", run: str, datasets: S3Path) -> MergeResult | None:
    """Return the recorded result of a run if its dataset still exists, else None. Invalid records are ignored."""
    for each in list_objects(s3, datasets):
        if not each["Key"].endswith(f"/{run}.json"):
            continue
        folder = each["Key"].rpartition("/")[0]
        dataset = S3Path(datasets.bucket, f"{folder}/{DATASET_NAME}")
        with suppress(DataError):
            result = read_merge_result(str(S3Path(datasets.bucket, each["Key"])))
            if (result.dataset, folder.rpartition("/")[2]) == (str(dataset), result.digest) and head_or_none(
                s3, dataset
            ):
                return result
    return None


@dataclass(frozen=True, kw_only=True)
class ClusterWork:
    """Plan of a preprocessing run, and the files in the run's folder.

    run: Name of the run, derived from its input and settings.
    extra_files: Contents of additional files that tasks need, by address.
    """

    s3: "S3Client"
    run: str
    plan: Plan
    extra_files: Mapping[str, bytes]
    _claimant: bytes = field(default_factory=lambda: uuid4().hex.encode(), init=False)

    @property
    def failure(self) -> S3Path:
        """Address to which a step writes an error message about the data."""
        return self._place(FAILURE)

    def unfinished(self) -> list[JobStep | CommandStep]:
        """Return the first unfinished step and all later steps, in order. A marker that is older than a day does not
        count."""
        steps = self.plan.steps()
        oldest = datetime.now(UTC) - _MARKER_LIFETIME
        for number, step in enumerate(steps):
            marker = head_or_none(self.s3, place_of(step.done_file))
            if marker is None or marker["LastModified"] < oldest:
                return steps[number:]
        return []

    def claim(self) -> bool:
        """Claim the run, and return whether the claim succeeded. Until `release`, only the command with the claim is
        allowed to submit the steps."""
        return put_new(self.s3, self._place(_CLAIM), self._claimant)

    def release(self) -> None:
        """Remove the claim, no matter which command has it."""
        objects.remove(self.s3, self._place(_CLAIM))

    def prepare(self, steps: Sequence[JobStep | CommandStep]) -> None:
        """Write the task files, after removing the output of an earlier attempt at these steps.

        Without this removal, tasks would also read files of an attempt with a different number of tasks.
        """
        files = self.plan.task_files()
        stale = {address.rpartition("/")[0] for address in files}
        stale |= {step.output for step in steps if isinstance(step, JobStep)}
        for folder in sorted(stale):
            objects.remove(self.s3, place_of(f"{folder}/"))
        for place in (*(place_of(step.done_file) for step in steps), self.failure, self._place(FOLLOWED)):
            objects.remove(self.s3, place)
        objects.put(self.s3, {**files, **self.extra_files})

    def follow(self) -> None:
        """Ask the command that finishes the run to keep the summary, because this command reads it."""
        put(self.s3, self._place(FOLLOWED), b"")

    def finish(self) -> None:
        """Delete the files of the run. The summary is kept if other commands follow the run."""
        followed = self._place(FOLLOWED)
        others = head_or_none(self.s3, followed)
        objects.remove(self.s3, self._place(""), keep=() if others is None else (place_of(self.plan.summary), followed))

    def remove(self) -> None:
        objects.remove(self.s3, self._place(""))

    def _place(self, name: str) -> S3Path:
        """Return the address of a file in the folder of the run. If the name is empty, return the address of the
        folder."""
        return place_of(f"{self.plan.work}/{name}")
