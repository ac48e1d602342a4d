"""A program for ranks: the trainer, with a failure of rank 1 at step 20. The first argument is the failure: `kill`,
`error` or `none`."""

import os
import signal
import sys

from trainer import task
from trainer.__main__ import main
from trainer.distributed import failures
from trainer.output import reporter

reporter.STEP_SECONDS = 0.0  # record every step
how = sys.argv.pop(1)
own, at = task.stratified_rows, failures.note_position
reached = ""


def noting(where: str):
    global reached
    reached = where
    return at(where)


def failing(*arguments):
    if (os.environ["RANK"], reached) == ("1", "at step 20") and how != "none" and not failures.previous_failure():
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyError("a missing key")
    return own(*arguments)


failures.note_position, task.stratified_rows = noting, failing
status = main()
if status:
    os._exit(status)
