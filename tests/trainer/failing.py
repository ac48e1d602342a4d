"""A program for ranks: the trainer, whose rank 1 fails at step 20 as the first argument says: `kill` or `error`, or at
loading `late`; with `-again` behind it also when it is started again."""

import os
import signal
import sys
import time
from datetime import timedelta

from trainer import faults, loop, peers, start
from trainer.__main__ import main

how, again, _ = sys.argv.pop(1).partition("-again")
step, load = loop._Run._step, start.load


def failing(run: loop._Run) -> None:
    if run.ranks.rank == 1 and run.steps_done == 19 and (again or not faults.lost_before()):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyError("what is not there")
    step(run)


def late(*arguments, **options):
    time.sleep(4 if os.environ["RANK"] == "1" else 0)
    return load(*arguments, **options)


if how == "late":
    start.load, peers.TIMEOUT = late, timedelta(seconds=2)
else:
    loop._Run._step = failing
status = main()
if status:
    os._exit(status)
