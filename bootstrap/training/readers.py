"""Readers of a training: processes on nodes of their own, which leave on the share what the ranks take.

A training cannot go on without one of its readers, because it would learn from a part of the text alone. So the ranks
stop with a checkpoint where a reader fails for good or its node is gone; a reader that died is started again before.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, NodeWatch
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.progress import Bars
from bootstrap.training.node_scripts import TrainingRun
from trainer.rank_processes import STOP_SECONDS

ReaderCommand = Callable[[int, int], Sequence[str]]
"""The arguments of Python for reader I of N, from 0, such as ["-m", "corpus.stream", "--reader", "0/2"]; `STREAM` among
them is the stream's folder on the share."""

_PAUSE_SECONDS = 0.5
_ONLINE_SECONDS = 10
"""How long to wait for the agent of a node whose reader is asked to stop: the node may be gone."""
_ADVICE = "; type the same command with --resume, which continues from the last checkpoint"


def require_readers(deployment: Deployment) -> int:
    """How many readers a training on this deployment has. Raises ShoalError where its topology has none."""
    count = sum(group.size for group in fleet.groups(deployment, readers=True) if group.role == "read")
    if not count:
        raise ShoalError(
            f"the deployment '{deployment.name}' has no nodes that read; add a group with `role: read` to the "
            f"`training` of its topology '{deployment.topology}', and deploy again"
        )
    return count


@contextmanager
def reading(
    deployment: Deployment, nodes: Sequence[GpuNode], run: TrainingRun, command: ReaderCommand, bars: Bars
) -> Iterator["Readers"]:
    """A reader on each of these nodes, which have the share, until the end.

    Raises ShoalError with the last line of a reader that failed for good, or for a node that is gone.
    """
    readers = Readers(deployment, nodes, run)
    try:
        readers.start(command)
        yield readers
    except Abandoned:
        raise
    except BaseException:
        readers.ask_to_stop()  # on a node that stays it would go on
        raise
    readers.stop(bars)


class Readers:
    """The readers of a run, one on each of their nodes."""

    def __init__(self, deployment: Deployment, nodes: Sequence[GpuNode], run: TrainingRun) -> None:
        self._deployment, self._nodes, self._run = deployment, nodes, run
        self._token = secrets.token_hex(4)
        self._commands: list[NodeCommand] = []
        self._failure: str | None = None
        self._node_watch = NodeWatch(deployment, nodes, f", and the reader with it{_ADVICE}")

    def start(self, command: ReaderCommand) -> None:
        """Start all readers."""
        for reader, node in enumerate(self._nodes):
            script = self._run.read(reader, command(reader, len(self._nodes)), self._token)
            self._commands.append(NodeCommand(self._deployment.session, node.instance_id, script))

    def failure(self) -> str | None:
        """A sentence about a reader that failed for good, or whose node is gone; None while there is none."""
        for reader, command in enumerate(self._commands):
            state = retrying(command.state)
            if self._failure is None and state.finished and not state.succeeded:
                self._failure = (
                    f"reader {reader} on the node {command.instance_id} died again and again: {state.last_line}; all "
                    f"of it: {self._run.folder}reader-{reader}.log{_ADVICE}"
                )
        try:
            self._node_watch.look()
        except ShoalError as error:
            self._failure = self._failure or str(error)
        return self._failure

    def ask_to_stop(self) -> None:
        """Ask all readers to stop, as far as their nodes can be reached."""
        for reader, command in enumerate(self._commands):
            script, node = self._run.stop_reading(reader, self._token), command.instance_id
            with suppress(BotoCoreError, ClientError, ShoalError):
                if not retrying(command.state).finished:
                    send = partial(NodeCommand, self._deployment.session, node, script, online_seconds=_ONLINE_SECONDS)
                    retrying(send)

    def stop(self, bars: Bars) -> None:
        """Stop all readers and wait for their end. Raises ShoalError with the `failure` of one."""
        failure = self.failure()
        self.ask_to_stop()
        if failure:
            raise ShoalError(failure)
        deadline = time.monotonic() + 2 * STOP_SECONDS
        while not all(retrying(command.state).finished for command in self._commands):
            if time.monotonic() > deadline:
                bars.note("not all readers stopped in time; their nodes are ended, unless they stay")
                break
            time.sleep(_PAUSE_SECONDS)
