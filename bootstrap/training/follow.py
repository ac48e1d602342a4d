"""Starts the ranks of a run on a deployment's nodes and follows them to their end.

Ranks wait for each other, so a command that fails or a node that is gone must end the whole run; a reader, too.
"""

import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.interrupt import mark_handled
from bootstrap.nodes.fleet import GpuNode, NodeWatch
from bootstrap.nodes.run_command import CommandState, NodeCommand
from bootstrap.progress import Bars
from bootstrap.training.node_scripts import TrainingRun
from bootstrap.training.readers import Readers
from bootstrap.training.run_view import RunView
from corpus.reading.s3 import Place, head_if_there, read_from
from trainer.config import TrainConfig
from trainer.output.files import RECORD
from trainer.rank_processes import STOP_SECONDS

_PAUSE_SECONDS = 1.0
_PORTS = range(20_000, 30_000)


def run_ranks(
    deployment: Deployment,
    nodes: Sequence[GpuNode],
    run: TrainingRun,
    config: TrainConfig,
    view: RunView,
    bars: Bars,
    *,
    readers: Readers | None = None,
) -> KeyboardInterrupt | None:
    """Start the ranks and follow them to their end; returns the interrupt that asked them to stop, if there was one.

    The ranks are also asked to stop when one of the `readers` fails, which its own context then reports. Raises
    Abandoned when the user interrupts again, before AWS has answered and the ranks could be asked to stop.
    """
    record = RemoteRecord(deployment, run, view)
    port = random.choice(_PORTS)  # noqa: S311
    commands = [
        NodeCommand(deployment.session, node.instance_id, run.train(nodes, rank, port, config))
        for rank, node in enumerate(nodes)
    ]
    watch = RankWatch(deployment, nodes, commands, run, record, readers)
    stop_request: KeyboardInterrupt | None = None
    while True:
        try:
            if stop_request:
                if retrying.unanswered:
                    bars.note(_unanswered_message(deployment, run))
                watch.stop()
            while not watch.finished():
                time.sleep(_PAUSE_SECONDS)
            return stop_request
        except KeyboardInterrupt as interrupt:
            if stop_request:
                raise (Abandoned(interrupt) if retrying.unanswered else interrupt) from None
            stop_request = interrupt
            mark_handled(stop_request)


def _unanswered_message(deployment: Deployment, run: TrainingRun) -> str:
    """What to tell a user who stops a run while AWS does not answer."""
    return (
        "the ranks are asked to stop as soon as AWS answers. Ctrl-C again ends this command at once, and the training "
        f"continues; to copy its results, type: shoal fetch {deployment.name} --run {run.name} --output DIR"
    )


class RemoteRecord:
    """Follows the record of a run in S3."""

    def __init__(self, deployment: Deployment, run: TrainingRun, view: RunView) -> None:
        """Call this before the run begins: what the record has by then was written before the run was resumed."""
        self._s3, self._view = deployment.session.client("s3"), view
        self._place = Place(run.folder.bucket, run.folder.key + RECORD)
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


class RankWatch:
    """Follows the commands of a run; a node that fails or is gone ends all, because other ranks would wait for it."""

    def __init__(
        self,
        deployment: Deployment,
        nodes: Sequence[GpuNode],
        commands: Sequence[NodeCommand],
        run: TrainingRun,
        record: RemoteRecord,
        readers: Readers | None,
    ) -> None:
        self._deployment, self._nodes, self._commands, self._run = deployment, nodes, commands, run
        self._record, self._readers = record, readers
        self._to_ask: list[int] = []
        self._deadline: float | None = None
        self._node_watch = NodeWatch(
            deployment,
            nodes,
            ", and the ranks with it; type the same command with --resume, which continues from the last checkpoint",
        )

    def finished(self) -> bool:
        """Whether all commands have ended. Raises ShoalError when a node is gone, or the ranks will not stop."""
        states = [retrying(command.state) for command in self._commands]
        if all(state.finished for state in states):
            self._record.look()
            return True
        if any(state.finished and not state.succeeded for state in states) or self._reading_failed():
            self.stop()
        self._ask_to_stop(states)
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ShoalError(
                f"the ranks did not stop in time, so their nodes are ended; what they wrote is in {self._run.folder}"
            )
        self._node_watch.look()
        self._record.look()
        return False

    def _reading_failed(self) -> bool:
        return self._readers is not None and self._readers.failure() is not None

    def stop(self) -> None:
        """Have the running ranks stop with a checkpoint and copy their results to S3."""
        if self._deadline is None:
            self._deadline = math.inf  # their time begins when they were asked
            self._to_ask = list(range(len(self._nodes)))

    def _ask_to_stop(self, states: Sequence[CommandState]) -> None:
        """Ask the ranks to stop that were not asked yet; after the last one their time begins."""
        if not self._to_ask:
            return
        while self._to_ask:
            rank = self._to_ask[0]
            script, node = self._run.stop(rank), self._nodes[rank].instance_id
            # This node may be the one that has failed. The others must be asked nevertheless.
            with suppress(BotoCoreError, ClientError, ShoalError):
                if not states[rank].finished:
                    retrying(partial(NodeCommand, self._deployment.session, node, script, online_seconds=10))
            self._to_ask.pop(0)
        self._deadline = time.monotonic() + 2 * STOP_SECONDS
