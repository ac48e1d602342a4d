"""Readers of a training: processes on nodes of their own, which leave on the share what the ranks take.

A training cannot go on without one of its readers, because it would learn from a part of the text alone. So the ranks
stop with a checkpoint where a reader fails for good or its node is gone; a reader that died is started again before.
"""

import math
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, NodeWatch
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.progress import Bars
from bootstrap.training.node_scripts import TrainingRun
from corpus.errors import DataError
from corpus.reading.s3 import Place, list_objects, read_text
from corpus.stream.progress import Status, sum_of
from infra import topology
from trainer.rank_processes import STOP_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

ReaderCommand = Callable[[int, int], Sequence[str]]
"""The arguments of Python for reader I of N, from 0, such as ["-m", "corpus.stream", "--reader", "0/2"]; `STREAM` among
them is the stream's folder on the share."""

_PAUSE_SECONDS = 0.5
_TOLD = re.compile(r".*/reader-[0-9]{1,6}\.json")
_ALIVE = timedelta(minutes=2)
"""A run whose readers told something within this time counts as running."""
_TELL_SECONDS = 5
"""How often the nodes' results are copied to S3, and what readers have done with them."""
_ONLINE_SECONDS = 10
"""How long to wait for the agent of a node whose reader is asked to stop: the node may be gone."""
_ADVICE = "; type the same command with --resume, which continues from the last checkpoint"


def count_readers(deployment: Deployment) -> int:
    """How many nodes of a deployment read for those that train. Raises ShoalError where it has no nodes."""
    return sum(group.size for group in fleet.groups(deployment, readers=True) if group.role == "read")


def read_so_far(s3: "S3Client", run: TrainingRun, readers: int) -> Status:
    """What so many readers of a run have done, as far as they have told."""
    names = (f"{run.folder.key}reader-{each}.json" for each in range(readers))
    return _sum([read_text(s3, Place(run.bucket, name)) for name in names])


def reading_now(s3: "S3Client", bucket: str, deployment: str) -> Status | None:
    """What the readers of a deployment have done that read now, by its data bucket; None where none does."""
    found = [
        each
        for each in list_objects(s3, Place(bucket, f"{topology.RUNS_PREFIX}{deployment}."))
        if _TOLD.fullmatch(each["Key"])
    ]
    if not found:
        return None
    newest = max(found, key=lambda each: each["LastModified"])
    if datetime.now(UTC) - newest["LastModified"] > _ALIVE:
        return None
    folder = newest["Key"].rpartition("/")[0]
    texts = [read_text(s3, Place(bucket, each["Key"])) for each in found if each["Key"].startswith(f"{folder}/")]
    return _sum(texts)


@contextmanager
def reading(
    deployment: Deployment, nodes: Sequence[GpuNode], run: TrainingRun, command: ReaderCommand, bars: Bars
) -> Iterator["Readers"]:
    """A reader on each of these nodes, which have the share, until the end; a node may have several.

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
    """The readers of a run, each with its node."""

    def __init__(self, deployment: Deployment, nodes: Sequence[GpuNode], run: TrainingRun) -> None:
        self._deployment, self._nodes, self._run = deployment, nodes, run
        self._token = secrets.token_hex(4)
        self._commands: list[NodeCommand] = []
        self._failure: str | None = None
        self._node_watch = NodeWatch(deployment, nodes, f", and the reader with it{_ADVICE}")
        self._looked = -math.inf
        self._read = Status()

    def start(self, command: ReaderCommand) -> None:
        """Start all readers."""
        for reader, node in enumerate(self._nodes):
            script = self._run.read(reader, command(reader, len(self._nodes)), self._token)
            self._commands.append(NodeCommand(self._deployment.session, node.instance_id, script))

    def progress(self) -> Status:
        """What they have done, as it was some seconds ago."""
        if time.monotonic() - self._looked >= _TELL_SECONDS:
            self._looked = time.monotonic()
            s3 = self._deployment.session.client("s3")
            self._read = retrying(partial(read_so_far, s3, self._run, len(self._nodes)))
        return self._read

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


def _sum(told: Sequence[str | None]) -> Status:
    """What readers told, together. Others may write there, too: what is no status does not count."""
    found = []
    for text in told:
        with suppress(DataError):
            found += [] if text is None else [Status.from_json(text)]
    return sum_of(found)
