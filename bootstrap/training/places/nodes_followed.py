"""Follows a launch on a deployment's nodes to its end, and has it stopped where it cannot go on.

Ranks wait for each other, so a node that fails or is gone must end the whole run; a reader, too. Agents see what
fails on other nodes; only here is it seen that a node is gone.
"""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from bootstrap.agent.node_documents import RunEnd
from bootstrap.aws.retry import retrying
from bootstrap.interrupt import Detached
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.scale_up import READY_SECONDS
from bootstrap.progress import Bars
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.run_view import RunView
from common.display import plural, printable
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, head_if_there, read_from
from trainer.output.run_files import RECORD
from trainer.rank_processes import STOP_SECONDS

_PAUSE_SECONDS = 1.0
LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""How long nodes may take to stop: their agents hear of it, their ranks end, or are ended, and results are copied."""
_ANSWER_SECONDS = 120.0
"""How long the agent of a node that is ready may take to tell that it has seen a request."""
GO_ON = "; type the same command with --resume, which continues from the last checkpoint"
_LOOK_SECONDS = 10.0


def wait_for_data(launch: NodeLaunch, bars: Bars, *, detach: bool = False) -> None:
    """Wait until all nodes have their data, or one cannot get it; the bar shows the texts that all of them have read.

    Raises ShoalError for a node that does not answer, and with `detach` Detached once the nodes have agreed on who
    does it.
    """
    watch, turn = _Watch(launch), _Turn(launch)
    while True:
        watch.look(bars)
        statuses, attempt = launch.statuses(), launch.attempt()
        if launch.end() is not None or any(each.over for each in statuses.values()):
            return
        if detach and (attempt or turn.is_certain()):
            raise Detached
        if attempt and all(name in statuses and statuses[name].has_come_to("staged") for name in attempt.instances):
            return
        if attempt is None:
            turn.wait(statuses, bars)
        if read := min((each.read for each in statuses.values()), default=0):
            bars.at(read)
        bars.tick()
        time.sleep(_PAUSE_SECONDS)


class _Turn:
    """Waits for the runs before a launch, and then for the agents of its nodes."""

    def __init__(self, launch: NodeLaunch) -> None:
        self._launch = launch
        self._first = ""
        """The token of the run that is waited for."""
        self._since = time.monotonic()

    def is_certain(self) -> bool:
        """Whether it comes by itself: a run is before it that has its nodes."""
        return any(each.ready for each in self._launch.before()[:1])

    def wait(self, told: Collection[str], bars: Bars) -> None:
        """Look once, `told` being the nodes whose agents have answered. Raises ShoalError for one that does not."""
        first = next(iter(self._launch.before()), None)
        waited = time.monotonic() - self._since
        if first is None:
            silent = [each for each in self._launch.started if each not in told]
            if silent and not self._first and waited > _ANSWER_SECONDS:
                raise ShoalError(
                    f"the agent of the node {silent[0]} does not answer; if its deployment is of an earlier version of "
                    "Shoal, deploy it again"
                )
            if self._first:
                self._first, self._since = "", time.monotonic()
        elif first.token != self._first:
            bars.note(f"waiting for run {first.run}")
            self._first, self._since = first.token, time.monotonic()
        elif not first.ready and waited > READY_SECONDS:
            self._launch.give_up(first)


class FollowedNodes:
    """A launch that is followed."""

    def __init__(
        self, launch: NodeLaunch, view: RunView, bars: Bars, seen: Callable[[Sequence[GpuNode]], None]
    ) -> None:
        """`view` shows what the record has more than now, and `seen` is told which nodes run."""
        self.end: RunEnd | None = None
        self._launch, self._record, self._bars = launch, RemoteRecord(launch, view), bars
        self._watch = _Watch(launch, seen)
        self._deadline: float | None = None

    def is_over(self) -> bool:
        """Whether the run has ended. Raises ShoalError when no node is left, or the nodes will not stop."""
        self.end = self._launch.end()
        if self.end is not None:
            self._record.look()
            return True
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ShoalError(
                f"the nodes did not stop in time, so they are ended; what they wrote is in {self._launch.folder}"
            )
        self._watch.look(self._bars)
        self._record.look()
        return False

    def stop(self) -> None:
        """Have the ranks stop with a checkpoint; then their time begins."""
        if not self._launch.request.stop:
            self._launch.ask_to_stop()
            self._deadline = time.monotonic() + LONGEST_STOP_SECONDS


class _Watch:
    """Shows each new attempt, and notices that no node is left, for which a command would wait for ever."""

    def __init__(self, launch: NodeLaunch, seen: Callable[[Sequence[GpuNode]], None] = lambda _: None) -> None:
        self._launch, self._shown, self._tell = launch, launch.attempt(), seen
        self._looked_at = self._seen = time.monotonic()
        self._troubles: dict[str, str] = {}

    def look(self, bars: Bars) -> None:
        """Look, unless it was done seconds ago. Raises ShoalError where no node is left, and none comes."""
        attempt = self._launch.attempt()
        if attempt is not None and attempt is not self._shown:
            if attempt.why:
                bars.note(
                    f"{attempt.why}; attempt {attempt.number} continues on {plural(len(attempt.members), 'node')}"
                )
            self._shown = attempt
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        deployment = self._launch.deployment
        for instance, status in self._launch.statuses().items():
            if status.trouble and self._troubles.get(instance) != status.trouble:
                bars.note(f"the node {instance}: {printable(status.trouble)}")
            self._troubles[instance] = status.trouble
        running = retrying(partial(fleet.nodes, deployment))
        self._tell(running)
        if running:
            self._seen = time.monotonic()
        elif not any(group.desired for group in retrying(partial(fleet.groups, deployment))):
            raise ShoalError(f"somebody has ended the nodes of '{deployment.name}'{GO_ON}")
        elif time.monotonic() - self._seen > READY_SECONDS:
            raise ShoalError(f"no node of '{deployment.name}' is left, and AWS starts none{GO_ON}")


def unanswered_message(launch: NodeLaunch) -> str:
    """What to tell a user who stops a run while AWS does not answer."""
    return (
        "the ranks are asked to stop as soon as AWS answers. Ctrl-C again ends this command at once, and the training "
        f"continues; to copy its results, type: shoal fetch {launch.deployment.name} --run {launch.run} --output DIR"
    )


class RemoteRecord:
    """Follows the record of a run in S3."""

    def __init__(self, launch: NodeLaunch, view: RunView) -> None:
        """Call this before the run begins: what the record has by then was written before the run was resumed. Of one
        that an earlier command has begun all is shown."""
        self._s3, self._view = launch.deployment.session.client("s3"), view
        self._place = S3Path(launch.folder.bucket, launch.folder.key + RECORD)
        self._known = None if launch.found else self._state()

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
