"""Looks after the nodes of a deployment while a run on them is followed."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bootstrap.aws.retry import retrying
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.scale_up import LONGEST_READY_SECONDS
from bootstrap.progress import Bars
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.places.nodes_followed import GO_ON, RemoteRecord, Watch
from bootstrap.training.run_view import RunView
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, head_if_there, read_from
from trainer.output.run_files import RECORD

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


class NodesWatch(Watch):
    """Notices that no node is left, for which a command would wait for ever."""

    def __init__(self, launch: NodeLaunch, seen: Callable[[Sequence[GpuNode]], None] = lambda _: None) -> None:
        """`seen` is told which nodes run."""
        super().__init__(launch)
        self._deployment, self._tell, self._seen = launch.deployment, seen, time.monotonic()

    def look_at_nodes(self, bars: Bars) -> None:  # noqa: ARG002
        running = retrying(partial(fleet.nodes, self._deployment))
        self._tell(running)
        if running:
            self._seen = time.monotonic()
        elif not any(group.desired for group in retrying(partial(fleet.groups, self._deployment))):
            raise ShoalError(f"somebody has ended the nodes of '{self._deployment.name}'{GO_ON}")
        elif time.monotonic() - self._seen > LONGEST_READY_SECONDS:
            raise ShoalError(f"no node of '{self._deployment.name}' is left, and AWS starts none{GO_ON}")


def unanswered_message(launch: NodeLaunch) -> str:
    """What to tell a user who stops a run while AWS does not answer."""
    return (
        "the ranks are asked to stop as soon as AWS answers. Ctrl-C again ends this command at once, and the training "
        f"continues; to copy its results, type: shoal fetch {launch.deployment.name} --run {launch.run} --output DIR"
    )


def record_in_bucket(s3: "S3Client", folder: S3Path, view: RunView, *, found: bool) -> RemoteRecord:
    """The record of a run whose folder is in the data bucket; `found` as in `RemoteRecord`."""
    place = S3Path(folder.bucket, folder.key + RECORD)

    def state() -> tuple[str, int] | None:
        head = retrying(partial(head_if_there, s3, place))
        return None if head is None else (head["ETag"], head["ContentLength"])

    return RemoteRecord(view, state, lambda *part: retrying(partial(read_from, s3, place, *part)), found=found)
