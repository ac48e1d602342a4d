"""A program for ranks: the trainer, whose rank 1 fails at step 20 as the first argument says: `kill` or `error`, or it
is killed with a piece that it has claimed (`claim`), or at loading `late`; with `-again` behind it also when it is
started again. Or it has `memory` for 50 rows at once, or is one row short of its `split`."""

import os
import signal
import sys
import time
from datetime import timedelta

import torch

from tests.trainer.claiming import always_claim
from trainer import step_planner
from trainer.__main__ import main
from trainer.balancing import claims
from trainer.classification import task
from trainer.computing import gradients
from trainer.distributed import collectives, failures

how, again, _ = sys.argv.pop(1).partition("-again")
plan, load, piece, own = (
    step_planner.StepPlanner.plan,
    task.load_data,
    gradients.GradientComputer._piece,
    claims.StepPlan.own_rows,
)
claimed, at = step_planner.ClaimCounter.claim_pieces, failures.note_position
reached = ""


def noting(where: str):
    global reached
    reached = where
    return at(where)


def failing(self: step_planner.StepPlanner, size: int) -> claims.StepPlan:
    if os.environ["RANK"] == "1" and reached == "at step 20" and (again or not failures.previous_failure()):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyError("what is not there")
    return plan(self, size)


def killed(self: step_planner.ClaimCounter, plan: claims.StepPlan, rank: int, where: str):
    if rank == 1 and where == "at step 20" and not failures.previous_failure():
        next(claimed(self, plan, rank, where), None)
        os.kill(os.getpid(), signal.SIGKILL)
    return claimed(self, plan, rank, where)


def late(*arguments, **options):
    time.sleep(4 if os.environ["RANK"] == "1" else 0)
    return load(*arguments, **options)


def small(self: gradients.GradientComputer, numbers, *rest):
    if os.environ["RANK"] == "1" and len(numbers) > 50:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return piece(self, numbers, *rest)


def fewer(*arguments):
    return own(*arguments)[int(os.environ["RANK"]) :]


if how == "memory":
    gradients.GradientComputer._piece = small
elif how == "split":
    claims.StepPlan.own_rows = fewer
elif how == "claim":
    always_claim()
    step_planner.ClaimCounter.claim_pieces = killed
elif how == "late":
    task.load_data, collectives.TIMEOUT = late, timedelta(seconds=2)
else:
    failures.note_position, step_planner.StepPlanner.plan = noting, failing
status = main()
if status:
    os._exit(status)
