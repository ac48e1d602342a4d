"""One piece of preprocessing as it lies in the data bucket: what is finished, who submits it, what goes away.

Several commands may ask for the same work: one submits it, the others follow. The easy mistake is to believe a marker
of finished output for ever: the bucket deletes what nobody took away, object by object, and a folder's marker may
outlive half of the folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from bootstrap.aws import objects
from bootstrap.aws.objects import Place
from jobs.steps import CommandStep, JobStep, Plan

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# The bucket deletes from the third day on; a step may have taken a day for what its marker stands for.
_COUNTS_FOR = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Work:
    """A plan and, in the plan's folder, what has come of it.

    run: the name by which the same work is found again.
    beside: files that tasks need besides what the plan has, by address.
    """

    s3: "S3Client"
    run: str
    plan: Plan
    beside: Mapping[str, bytes]
    _own_name: bytes = field(default_factory=lambda: uuid4().hex.encode(), init=False)

    @property
    def failure(self) -> Place:
        """Where a step says what is wrong with the data."""
        return self._place("failure.txt")

    def unfinished(self) -> list[JobStep | CommandStep]:
        """The steps that are still to be done, in order: from the first on that is not finished, or not lately."""
        steps = self.plan.steps()
        oldest = datetime.now(UTC) - _COUNTS_FOR
        for number, step in enumerate(steps):
            finished = objects.written(self.s3, objects.parse(step.done_file))
            if finished is None or finished < oldest:
                return steps[number:]
        return []

    def claim(self) -> bool:
        """Whether this command may submit the work: of several that ask at once one may, until `release`."""
        return objects.put_new(self.s3, self._claim, self._own_name)

    def release(self) -> None:
        """Take the claim away, whoever has it."""
        objects.remove(self.s3, self._claim)

    def prepare(self, steps: Sequence[JobStep | CommandStep]) -> None:
        """Write what tasks read, and take away what an earlier attempt at these steps left half done.

        What another cluster's number of tasks left over would be read as well.
        """
        files = self.plan.task_files()
        stale = {address.rpartition("/")[0] for address in files}
        stale |= {step.output for step in steps if isinstance(step, JobStep)}
        for folder in sorted(stale):
            objects.remove(self.s3, objects.parse(f"{folder}/"))
        for place in (*(objects.parse(step.done_file) for step in steps), self.failure, self._followed):
            objects.remove(self.s3, place)
        objects.put(self.s3, {**files, **self.beside})

    def follow(self) -> None:
        """Let whoever finishes the work leave its summary for this command."""
        objects.put(self.s3, {str(self._followed): b""})

    def finish(self) -> None:
        """Delete all that passed between the steps, but for what other commands that follow may not have read yet."""
        others = objects.exists(self.s3, self._followed)
        kept = (objects.parse(self.plan.summary), self._followed) if others else ()
        objects.remove(self.s3, self._folder, but=kept)

    def remove(self) -> None:
        """Delete all that passed between the steps."""
        objects.remove(self.s3, self._folder)

    @property
    def _folder(self) -> Place:
        return objects.parse(f"{self.plan.work}/")

    @property
    def _claim(self) -> Place:
        return self._place("claim")

    @property
    def _followed(self) -> Place:
        return self._place("followed")

    def _place(self, name: str) -> Place:
        return Place(self._folder.bucket, f"{self._folder.key}{name}")
