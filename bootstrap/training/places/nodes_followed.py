"""Follows a launch on a deployment's nodes to its end, and has it stopped where it cannot go on.

Ranks wait for each other, so a node that fails or is gone must end the whole run; a reader, too. Agents see what
fails on other nodes; only here is it seen that a node is gone.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

from bootstrap.agent.documents import NodeStatus
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.nodes.fleet import GpuNode, NodeWatch, of_role
from bootstrap.progress import Bars
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.run_view import RunView
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, head_if_there, read_from
from trainer.output.run_files import RECORD
from trainer.rank_processes import STOP_SECONDS

_PAUSE_SECONDS = 1.0
_LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""How long nodes may take to stop: their agents hear of it, their ranks end, or are ended, and results are copied."""
_ANSWER_SECONDS = 120.0
"""How long the agent of a node that is ready may take to tell that it has seen a request."""
GO_ON = "; type the same command with --resume, which continues from the last checkpoint"
_AGAIN = "; type the same command again"

Statuses = Mapping[str, NodeStatus]


def wait_for_data(launch: NodeLaunch, nodes: Sequence[GpuNode], bars: Bars) -> None:
    """Wait until all nodes have their data, or one cannot get it; the bar shows the texts that all of them have read.

    An error or an interrupt stops the launch. Raises ShoalError for a node that is gone or does not answer.
    """
    watch, since = NodeWatch(launch.deployment, nodes, _AGAIN), time.monotonic()
    try:
        while True:
            statuses = launch.statuses()
            if any(each.over for each in statuses.values()):
                return
            if len(statuses) == len(nodes) and all(each.has_come_to("staged") for each in statuses.values()):
                return
            watch.look()
            silent = [each.instance_id for each in nodes if each.instance_id not in statuses]
            if silent and time.monotonic() - since > _ANSWER_SECONDS:
                raise ShoalError(
                    f"the agent of the node {silent[0]} does not answer; if its deployment is of an earlier version of "
                    "Shoal, deploy it again"
                )
            if read := min((each.read for each in statuses.values()), default=0):
                bars.at(read)
            bars.tick()
            time.sleep(_PAUSE_SECONDS)
    except Abandoned:
        raise
    except BaseException:
        launch.ask_to_stop()  # on a node that stays it would go on
        raise


class FollowedNodes:
    """A launch that is followed."""

    def __init__(self, launch: NodeLaunch, nodes: Sequence[GpuNode], view: RunView) -> None:
        """`view` shows what the record has more than now."""
        self.statuses: Statuses = {}
        self._launch, self._record = launch, RemoteRecord(launch, view)
        self._trainers = NodeWatch(launch.deployment, of_role(nodes, "train"), f", and the ranks with it{GO_ON}")
        self._readers = NodeWatch(launch.deployment, of_role(nodes, "read"), f", and the reader with it{GO_ON}")
        self._lost: ShoalError | None = None
        """Of a reader's node, the error; the ranks then stop with a checkpoint."""
        self._deadline: float | None = None

    def is_over(self) -> bool:
        """Whether all nodes have ended what they did. Raises ShoalError when a node is gone, or will not stop."""
        self.statuses = self._launch.statuses()
        request = self._launch.request
        awaited = request.trainers if self._lost else request.members
        if all(each.instance in self.statuses and self.statuses[each.instance].over for each in awaited):
            self._record.look()
            if self._lost:
                raise self._lost
            return True
        if any(each.fails for each in self.statuses.values()):
            self._deadline = self._deadline or time.monotonic() + _LONGEST_STOP_SECONDS
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ShoalError(
                f"the nodes did not stop in time, so they are ended; what they wrote is in {self._launch.folder}"
            )
        self._look_at_nodes()
        self._record.look()
        return False

    def _look_at_nodes(self) -> None:
        self._trainers.look()
        if self._lost is None:
            try:
                self._readers.look()
            except ShoalError as error:
                self._lost = error
                self.stop()

    def stop(self) -> None:
        """Have the ranks stop with a checkpoint; then their time begins."""
        if not self._launch.request.stop:
            self._launch.ask_to_stop()
            self._deadline = time.monotonic() + _LONGEST_STOP_SECONDS


def unanswered_message(launch: NodeLaunch) -> str:
    """What to tell a user who stops a run while AWS does not answer."""
    return (
        "the ranks are asked to stop as soon as AWS answers. Ctrl-C again ends this command at once, and the training "
        f"continues; to copy its results, type: shoal fetch {launch.deployment.name} --run {launch.run} --output DIR"
    )


class RemoteRecord:
    """Follows the record of a run in S3."""

    def __init__(self, launch: NodeLaunch, view: RunView) -> None:
        """Call this before the run begins: what the record has by then was written before the run was resumed."""
        self._s3, self._view = launch.deployment.session.client("s3"), view
        self._place = S3Path(launch.folder.bucket, launch.folder.key + RECORD)
        self._known = self._state()

    def look(self) -> None:
        """Show what was added to the record."""
        more = b""
        if (found := self._state()) is not None and found != self._known:
            if found[1] < self._view.offset:
                self._view.begin_again()
            more = retrying(partial(read_from, self._s3, self._place, self._view.offset))
            self._known = found
        self._view.feed(more)

    def _state(self) -> tuple[str, int] | None:
        found = retrying(partial(head_if_there, self._s3, self._place))
        return None if found is None else (found["ETag"], found["ContentLength"])
