"""The files of one preprocessing run in the data bucket: which steps are finished, who submits them, what is removed.

Several commands may ask for the same work: one submits it, the others follow. A step's marker counts for a day only,
because the bucket deletes old objects one by one, and a marker may outlive a part of its folder.
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
"""Names in the folder of a run: what is wrong with its data, and that another command follows it."""
_CLAIM = "claim"
# The bucket deletes objects after two days, and a step may take a day for its output.
_MARKER_LIFETIME = timedelta(days=1)


def remember(s3: "S3Client", run: str, made: MergeResult) -> None:
    """Write beside a dataset which work made it, so that the same work is not done again; it is the newest then."""
    place = place_of(made.dataset)
    put(s3, S3Path(place.bucket, f"{place.key.rpartition('/')[0]}/{run}.json"), orjson.dumps(asdict(made)))


def made_before(s3: "S3Client", run: str, datasets: S3Path) -> MergeResult | None:
    """The result of this work, where its dataset is still there; None else, also for a note that is not Shoal's."""
    for each in list_objects(s3, datasets):
        if not each["Key"].endswith(f"/{run}.json"):
            continue
        folder = each["Key"].rpartition("/")[0]
        dataset = S3Path(datasets.bucket, f"{folder}/{DATASET_NAME}")
        with suppress(DataError):
            made = read_merge_result(str(S3Path(datasets.bucket, each["Key"])))
            if (made.dataset, folder.rpartition("/")[2]) == (str(dataset), made.digest) and head_or_none(s3, dataset):
                return made
    return None


@dataclass(frozen=True, kw_only=True)
class ClusterWork:
    """A plan, and its files in the plan's folder.

    run: the name of the work; the same work has the same name.
    beside: further files that tasks need, by address.
    """

    s3: "S3Client"
    run: str
    plan: Plan
    beside: Mapping[str, bytes]
    _own_name: bytes = field(default_factory=lambda: uuid4().hex.encode(), init=False)

    @property
    def failure(self) -> S3Path:
        """Where a step writes what is wrong with the data."""
        return self._place(FAILURE)

    def unfinished(self) -> list[JobStep | CommandStep]:
        """The steps from the first unfinished one on, in order; a marker older than a day does not count."""
        steps = self.plan.steps()
        oldest = datetime.now(UTC) - _MARKER_LIFETIME
        for number, step in enumerate(steps):
            marker = head_or_none(self.s3, place_of(step.done_file))
            if marker is None or marker["LastModified"] < oldest:
                return steps[number:]
        return []

    def claim(self) -> bool:
        """Whether this command may submit the work; of several commands only one may, until `release`."""
        return put_new(self.s3, self._place(_CLAIM), self._own_name)

    def release(self) -> None:
        """Remove the claim, whichever command has it."""
        objects.remove(self.s3, self._place(_CLAIM))

    def prepare(self, steps: Sequence[JobStep | CommandStep]) -> None:
        """Write the task files, and remove the output of an earlier attempt at these steps.

        Otherwise tasks would also read the files of an attempt with another number of tasks.
        """
        files = self.plan.task_files()
        stale = {address.rpartition("/")[0] for address in files}
        stale |= {step.output for step in steps if isinstance(step, JobStep)}
        for folder in sorted(stale):
            objects.remove(self.s3, place_of(f"{folder}/"))
        for place in (*(place_of(step.done_file) for step in steps), self.failure, self._place(FOLLOWED)):
            objects.remove(self.s3, place)
        objects.put(self.s3, {**files, **self.beside})

    def follow(self) -> None:
        """Ask the command that finishes the work to keep its summary for this command."""
        put(self.s3, self._place(FOLLOWED), b"")

    def finish(self) -> None:
        """Delete the work's files; its summary stays where other commands follow the work."""
        followed = self._place(FOLLOWED)
        others = head_or_none(self.s3, followed)
        objects.remove(self.s3, self._place(""), but=() if others is None else (place_of(self.plan.summary), followed))

    def remove(self) -> None:
        objects.remove(self.s3, self._place(""))

    def _place(self, name: str) -> S3Path:
        """A file in the folder of the work; "": the folder itself."""
        return place_of(f"{self.plan.work}/{name}")
