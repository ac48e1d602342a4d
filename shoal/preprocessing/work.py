"""Files of a preprocessing run in the data bucket: the claim to submit its step, its result, and cleanup.

If several commands start the same run, one command submits the step, and the other commands follow it.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson

from common.errors import DataError
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import S3Path, head_or_none, list_objects, place_of, put, put_if
from jobs.merge import MergeResult, read_merge_result
from jobs.plan import PLAN_NAME, Plan
from shoal.aws import objects

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_CLAIM = "claim"


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
    """Folder of a preprocessing run in the data bucket.

    folder: The folder. Its name is that of the run, which is derived from the run's input and settings.
    """

    s3: "S3Client"
    folder: S3Path
    _claimant: bytes = field(default_factory=lambda: uuid4().hex.encode(), init=False)

    def claim(self) -> bool:
        """Claim the run, and return whether the claim succeeded. Until `release`, only the command with the claim is
        allowed to submit the step."""
        return put_if(self.s3, self._place(_CLAIM), self._claimant, etag=None)

    def release(self) -> None:
        """Remove the claim, no matter which command has it."""
        objects.remove(self.s3, self._place(_CLAIM))

    def empty(self) -> None:
        """Remove the files of an earlier attempt, which tasks would read."""
        objects.remove(self.s3, self.folder, keep=(self._place(_CLAIM),))

    def finish(self, plan: Plan) -> None:
        """Delete the files of the run, except the result and the plan, which other commands might read. The bucket
        deletes these two after two days."""
        objects.remove(self.s3, self.folder, keep=(place_of(plan.summary), self._place(PLAN_NAME)))

    def remove(self) -> None:
        objects.remove(self.s3, self.folder)

    def _place(self, name: str) -> S3Path:
        return S3Path(self.folder.bucket, self.folder.key + name)
