"""An agent as a process of this machine."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bootstrap.agent.agent import BEAT_SECONDS, TICK_SECONDS, Agent
from bootstrap.agent.folder import open_store
from bootstrap.agent.machine import is_shutting_down, this_machine
from bootstrap.agent.node import Node
from bootstrap.agent.node_documents import Member
from bootstrap.agent.processes import Processes
from common.display import printable_lines

_NICENESS = 19
"""Of copying results: ranks need the cores more."""


def serve(
    group: str,
    member: Member,
    *,
    store: str,
    processes: Processes,
    notice: Callable[[], str],
    beat_seconds: float = BEAT_SECONDS,
    idle_seconds: float = float("inf"),
    tell_busy: Callable[[bool], None] = lambda _: None,
) -> None:
    """Be the agent of a node until it has had nothing to do for `idle_seconds`.

    `group`: the name of its deployment; `member`: which node it is; `store`: the address of the channel; `tell_busy` is
    told whenever it has got something to do, or has done it. SIGTERM ends it; where the machine shuts down, its ranks
    stop with a checkpoint before, and the others go on without it.
    """
    leaves = threading.Event()

    def end(number: int, _: object) -> None:
        if not is_shutting_down():
            sys.exit(128 + number)
        leaves.set()

    signal.signal(signal.SIGTERM, end)
    node = Node(
        instance=member.instance,
        address=member.address,
        gpus=member.gpus,
        store=store,
        machine=this_machine(),
        processes=processes,
        channel=open_store(store),
        clock=time.monotonic,
        time=time.time,
        notice=lambda: "off" if leaves.is_set() else notice(),
        pool=ThreadPoolExecutor(1, initializer=os.nice, initargs=(_NICENESS,)),
        say=lambda text: print(printable_lines(text), file=sys.stderr, flush=True),  # noqa: T201
    )
    agent = Agent(group, node, beat_seconds=beat_seconds)
    threading.Thread(target=_beat, args=(agent,), daemon=True).start()
    worked, busy = time.monotonic(), False
    while time.monotonic() - worked < idle_seconds and not (leaves.is_set() and not agent.takes_part):
        agent.tick()
        if agent.busy:
            worked = time.monotonic()
        if agent.busy is not busy:
            busy = agent.busy
            tell_busy(busy)
        time.sleep(agent.pause)


def _beat(agent: Agent) -> None:
    while True:
        agent.beat()
        time.sleep(TICK_SECONDS)
