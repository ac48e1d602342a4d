"""Agent of a node: it reads the request, agrees on an attempt with the other nodes, runs its part and reports its
status.

The agent can be killed at any time, even during a run, because a restarted agent reads its whole state again.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node import documents
from bootstrap.node.assignment import Supervisor
from bootstrap.node.documents import RequestDocument, RunRequest
from bootstrap.node.folder import open_store
from bootstrap.node.launch import Participation
from bootstrap.node.machine import Node, is_shutting_down, this_machine
from bootstrap.node.node_documents import Member, NodeStatus
from bootstrap.node.processes import Processes
from bootstrap.node.store import StoredDocument
from common import names
from common.display import printable
from common.errors import DataError

ACTIVITY_SECONDS = 60.0
"""Seconds between writes of a node's sign of activity. The guard stops nodes without a recent sign of activity."""
TICK_SECONDS, _URGENT_TICK_SECONDS = 1.0, 0.2
"""Seconds between ticks: usually, and while other nodes wait for this node."""
_MAX_STUCK_SECONDS = 120.0
"""Duration of a tick after which the agent sends no more heartbeats, so that the other nodes continue without this
node."""
_NEVER = float("inf")
_NICENESS = 19
"""Niceness of the thread that copies results. The thread has the lowest priority, so that the ranks get the cores
first."""
_UNANSWERED = (Boto3Error, BotoCoreError, ClientError, OSError)


class Agent:
    def __init__(self, deployment: str, node: Node, *, activity_seconds: float = ACTIVITY_SECONDS) -> None:
        self._key, self._node = names.request_key(deployment), node
        self._instance, self._channel, self._clock = node.member.instance, node.channel, node.clock
        self._activity_seconds, self._activity_reported = activity_seconds, node.clock() - activity_seconds
        self._document: StoredDocument | None = None
        self._request: RunRequest | None = None
        self._launch: Participation | None = None
        """Launch of the request, also after its end."""
        self._supervisor = Supervisor(node.processes, node.clock)
        self._tick_started = node.clock()

    def tick(self) -> None:
        """Reconcile once, without waiting for slow operations. Calls that S3 does not answer are repeated in the next
        tick."""
        self._tick_started = self._clock()
        try:
            self._read_request()
            if launch := self.launch:
                launch.reconcile()
            else:
                self._supervisor.stop_others(None)
        except (DataError, *_UNANSWERED) as error:
            self._node.say(f"{type(error).__name__}: {error}")
        self._tick_started = _NEVER

    def heartbeat(self) -> None:
        """Send the heartbeat for the other nodes and the sign of activity for the guard, if they are due.

        A separate thread calls this method, because a tick can wait long for S3 or for a file server that does not
        answer.
        """
        try:
            if (launch := self.launch) and self._clock() - self._tick_started < _MAX_STUCK_SECONDS:
                launch.heartbeat()
            self._report_activity()
        except _UNANSWERED as error:
            self._node.say(f"{type(error).__name__}: {error}")

    @property
    def launch(self) -> Participation | None:
        """Launch for which this node works, or None if the node has nothing to do."""
        launch = self._launch  # another thread can replace it
        return launch if launch is not None and not launch.ended else None

    def _read_request(self) -> None:
        """Read the request, and update `_launch`, which is set only while the nodes of the request are ready."""
        document = self._channel.read(self._key, self._document)
        if document is not self._document:
            self._request = self._read(document) if document else None
            self._document = document
        request = self._request
        if request is None or not request.ready:
            self._launch = None
            return
        request = request.at(self._node.time())
        if self._launch is None or self._launch.request.token != request.token:
            self._launch = Participation(request, self._node, self._supervisor)
        self._launch.request = request

    def _read(self, document: StoredDocument) -> RunRequest | None:
        """Return the request in a document, or None after reporting why the document is invalid."""
        try:
            return RequestDocument.from_json(document.text).request
        except DataError as error:
            why = f"this node cannot use the request: {error}"
            self._node.say(why)
            if token := documents.token_in(document.text):
                status = NodeStatus(token=token, phase="failed", error=why[: documents.MAX_ERROR_LENGTH])
                self._channel.write(names.status_key(self._instance), status.to_json())
            return None

    def _report_activity(self) -> None:
        """Write the sign of activity for the guard if it is due and this node is busy: it has a launch, or a process
        uses its GPUs."""
        if self._clock() - self._activity_reported < self._activity_seconds:
            return
        self._activity_reported = self._clock()
        if self.launch or self._node.machine.uses_gpus():
            self._channel.write(f"{names.NODES}{self._instance}.busy", json.dumps({"busy": True}))


def serve(
    group: str,
    member: Member,
    *,
    store: str,
    scoped: bool = True,
    notice: Callable[[], str],
    activity_seconds: float = ACTIVITY_SECONDS,
    idle_seconds: float = float("inf"),
    on_busy_change: Callable[[bool], None] = lambda _: None,
) -> None:
    """Run the agent of a node until the agent has been idle for `idle_seconds`.

    `group` is the name of the deployment, `member` identifies the node, and `store` is the address of the document
    store. `scoped` is as in `Processes`. `on_busy_change` is called with True when the agent becomes busy and with
    False when it becomes idle.

    On SIGTERM the agent exits. If the machine is shutting down, the node's ranks first stop with a checkpoint, and the
    other nodes continue without this node.
    """
    leaving = threading.Event()

    def end(number: int, _: object) -> None:
        if not is_shutting_down():
            sys.exit(128 + number)
        leaving.set()

    signal.signal(signal.SIGTERM, end)
    node = Node(
        member=member,
        machine=this_machine(),
        processes=Processes(this_machine().programs, scoped=scoped),
        channel=open_store(store),
        clock=time.monotonic,
        time=time.time,
        notice=lambda: "off" if leaving.is_set() else notice(),
        pool=ThreadPoolExecutor(1, initializer=os.nice, initargs=(_NICENESS,)),
        say=lambda text: print(printable(text), file=sys.stderr, flush=True),  # noqa: T201
    )
    agent = Agent(group, node, activity_seconds=activity_seconds)

    def send_heartbeats() -> None:
        while True:
            agent.heartbeat()
            time.sleep(TICK_SECONDS)

    threading.Thread(target=send_heartbeats, daemon=True).start()
    last_work, launch, busy = time.monotonic(), agent.launch, False
    while time.monotonic() - last_work < idle_seconds and not (leaving.is_set() and not (launch and launch.takes_part)):
        agent.tick()
        launch = agent.launch
        if launch:
            last_work = time.monotonic()
        if bool(launch) is not busy:
            busy = not busy
            on_busy_change(busy)
        time.sleep(_URGENT_TICK_SECONDS if launch and launch.is_urgent else TICK_SECONDS)
