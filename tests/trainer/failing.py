"""A program for ranks: the trainer, whose rank 1 fails at step 20 as the first argument says: `kill` or `error`, or at
loading `late`; with `-again` behind it also when it is started again. Or it has `memory` for 50 rows at once."""

import os
import signal
import sys
import time
from datetime import timedelta

import torch

from trainer import task as task_interface
from trainer.__main__ import main
from trainer.classification import task
from trainer.computing import gradients
from trainer.distributed import collectives, failures

how, again, _ = sys.argv.pop(1).partition("-again")
load, piece, own, at = (
    task.load_data,
    gradients.GradientComputer._piece,
    task_interface.stratified_rows,
    failures.note_position,
)
reached = ""


def noting(where: str):
    global reached
    reached = where
    return at(where)


def failing(*arguments):
    if os.environ["RANK"] == "1" and reached == "at step 20" and (again or not failures.previous_failure()):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyError("what is not there")
    return own(*arguments)


def late(*arguments, **options):
    time.sleep(15 if os.environ["RANK"] == "1" else 0)
    return load(*arguments, **options)


def small(self: gradients.GradientComputer, numbers, *rest):
    if os.environ["RANK"] == "1" and len(numbers) > 50:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return piece(self, numbers, *rest)


if how == "memory":
    gradients.GradientComputer._piece = small
elif how == "late":
    task.load_data, collectives.TIMEOUT = late, timedelta(seconds=10)
else:
    failures.note_position, task_interface.stratified_rows = noting, failing
status = main()
if status:
    os._exit(status)
