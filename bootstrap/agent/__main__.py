"""`python -m bootstrap.agent`: the agent of this node, for ever.

Reads DEPLOYMENT, DATA_BUCKET, INSTANCE_ID, ADDRESS and RANKS from the environment.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from bootstrap.agent.agent import BEAT_SECONDS, Agent
from bootstrap.agent.channel import Bucket
from bootstrap.agent.machine import this_machine
from bootstrap.agent.node_run import Node
from bootstrap.agent.notices import spot_notice
from bootstrap.agent.processes import OwnProcesses

_TICK_SECONDS = 1.0
_NICENESS = 19
"""Of copying results: ranks need the cores more."""


def main() -> NoReturn:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    machine, bucket = this_machine(), os.environ["DATA_BUCKET"]
    node = Node(
        instance=os.environ["INSTANCE_ID"],
        address=os.environ["ADDRESS"],
        gpus=int(os.environ["RANKS"]),
        bucket=bucket,
        machine=machine,
        processes=OwnProcesses(machine.programs),
        channel=Bucket(bucket),
        clock=time.monotonic,
        time=time.time,
        notice=spot_notice,
        pool=ThreadPoolExecutor(1, initializer=os.nice, initargs=(_NICENESS,)),
        say=lambda text: print(text, file=sys.stderr, flush=True),  # noqa: T201
    )
    agent = Agent(
        os.environ["DEPLOYMENT"],
        node,
        beat_seconds=float(os.environ.get("HEARTBEAT_SECONDS", BEAT_SECONDS)),
    )
    threading.Thread(target=_repeat, args=(agent.beat,), daemon=True).start()
    _repeat(agent.tick)


def _repeat(step: Callable[[], None]) -> NoReturn:
    while True:
        step()
        time.sleep(_TICK_SECONDS)


if __name__ == "__main__":
    main()
