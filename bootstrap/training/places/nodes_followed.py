"""Follows a launch to its end, wherever its nodes are."""

import time
from collections.abc import Callable, Collection

from bootstrap.agent.node_documents import RunEnd
from bootstrap.interrupt import Detached
from bootstrap.nodes.scale_up import LONGEST_READY_SECONDS
from bootstrap.progress import Bars
from bootstrap.training.places.run_launch import RunLaunch
from bootstrap.training.run_view import PIECE_BYTES, RunView
from common.display import plural
from common.errors import ShoalError
from trainer.rank_processes import STOP_SECONDS

_PAUSE_SECONDS = 1.0
LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""How long nodes may take to stop: their agents hear of it, their ranks end, or are ended, and results are copied."""
_ANSWER_SECONDS = 120.0
"""How long the agent of a node that is ready may take to tell that it has seen a request."""
GO_ON = "; type the same command with --resume, which continues from the last checkpoint"
_LOOK_SECONDS = 10.0


def wait_for_data(launch: RunLaunch, watch: "Watch", bars: Bars, *, detach: bool = False) -> None:
    """Wait until all nodes have their data, or one cannot get it; the bar shows the texts that all of them have read.

    Raises ShoalError for a node that does not answer, and with `detach` Detached once the nodes have agreed on who
    does it.
    """
    turn = _Turn(launch)
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

    def __init__(self, launch: RunLaunch) -> None:
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
                raise ShoalError(f"the agent of the node {silent[0]} does not answer; {self._launch.when_silent}")
            if self._first:
                self._first, self._since = "", time.monotonic()
        elif first.token != self._first:
            bars.note(f"waiting for run {first.run}")
            self._first, self._since = first.token, time.monotonic()
        elif not first.ready and waited > LONGEST_READY_SECONDS:
            self._launch.give_up(first)


class FollowedNodes:
    def __init__(self, launch: RunLaunch, record: "RemoteRecord", watch: "Watch", bars: Bars) -> None:
        self.end: RunEnd | None = None
        self._launch, self._record, self._watch, self._bars = launch, record, watch, bars
        self._deadline: float | None = None

    def is_over(self) -> bool:
        """Whether the run has ended. Raises ShoalError when no node is left, or the nodes will not stop."""
        self.end = self._launch.end()
        if self.end is not None:
            self._record.look()
            return True
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ShoalError(
                f"the nodes did not stop in time, so they are ended; what they wrote is in {self._launch.left_in}"
            )
        self._watch.look(self._bars)
        self._record.look()
        return False

    def stop(self) -> None:
        """Have the ranks stop with a checkpoint; then their time begins."""
        if not self._launch.request.stop:
            self._launch.ask_to_stop()
            self._deadline = time.monotonic() + LONGEST_STOP_SECONDS


class Watch:
    """Shows each new attempt at a launch, and what is wrong with its nodes."""

    pause: float | None = None
    """Seconds between two looks at the nodes; None: the usual ones."""

    def __init__(self, launch: RunLaunch) -> None:
        self._launch, self._shown = launch, launch.attempt()
        self._looked_at = time.monotonic()
        self._troubles: dict[str, str] = {}

    def look(self, bars: Bars) -> None:
        """Look; at the nodes only now and then. Raises ShoalError where no node is left, and none comes."""
        attempt = self._launch.attempt()
        if attempt is not None and attempt is not self._shown:
            if attempt.why:
                bars.note(
                    f"{attempt.why}; attempt {attempt.number} continues on {plural(len(attempt.members), 'node')}"
                )
            self._shown = attempt
        if time.monotonic() - self._looked_at < (self.pause or _LOOK_SECONDS):
            return
        self._looked_at = time.monotonic()
        for instance, status in self._launch.statuses().items():
            if status.trouble and self._troubles.get(instance) != status.trouble:
                bars.note(f"the node {instance}: {status.trouble}")
            self._troubles[instance] = status.trouble
        self.look_at_nodes(bars)

    def look_at_nodes(self, bars: Bars) -> None:
        """Look whether nodes are there. Raises ShoalError where none is left, and none comes."""


class RemoteRecord:
    """Follows the record of a run where its nodes leave it."""

    def __init__(
        self,
        view: RunView,
        state: Callable[[], tuple[str, int] | None],
        read: Callable[[int, int], bytes],
        *,
        found: bool,
    ) -> None:
        """`state`: a tag of the record's content, and its bytes, where it is there; `read`: its bytes from an
        offset, at most so many.

        Call this before the run begins: what the record has by then was written before the run was resumed. Of one
        that is `found`, as an earlier command has begun it, all is shown."""
        self._view, self._state, self._read = view, state, read
        self._known = None if found else self._state()

    def look(self) -> None:
        fed = False
        if (found := self._state()) is not None and found != self._known:
            if found[1] < self._view.offset:
                self._view.begin_again()
            while self._view.offset < found[1] and (more := self._read(self._view.offset, PIECE_BYTES)):
                self._view.feed(more)
                fed = True
            self._known = found
        if not fed:
            self._view.feed(b"")
