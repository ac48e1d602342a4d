"""One rank of several whose computing is sleep, with the real balancer and a real all-reduce by gloo.

Started by torchrun with a JSON object: `speeds` of the ranks, `how` to balance, what share of a step the all-reduce
shall be (`reducing`), how many `floats` it sums, `epochs` and `steps_per_epoch`, whether the last rank `halves` its
speed midway, `seed` of the noise. Rank 0 prints the share of ideal, and the shares of the time that the all-reduce took
and that ranks waited for the last.

A rank takes a + b * rows / speed seconds, a being a twentieth of a step, with 1% of noise.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

from trainer.accounts import Accounts
from trainer.balance import balancer
from trainer.ranks import schedule_as_batch

_BATCH = 512
_FIXED, _NOISE = 0.05, 0.01
_TRIALS = 40
_EARLY = 0.0001
"""The kernel wakes sleepers late by less than this, so the rest of the time is spent looking at the clock."""


def main() -> None:
    """Take part in the run that the command line describes."""
    asked = json.loads(sys.argv[1])
    schedule_as_batch()  # as the trainer
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, speeds = dist.get_rank(), np.array(asked["speeds"])
    gradients = torch.zeros(asked["floats"])
    told = gradients[: len(speeds)]  # computing, a rank
    step_seconds = _reduce_seconds(gradients) * (1 / asked["reducing"] - 1)  # of computing, when it is balanced
    fixed, per_row = _FIXED * step_seconds, (1 - _FIXED) * step_seconds * speeds.sum() / _BATCH
    steps = asked["epochs"] * asked["steps_per_epoch"]
    change = steps // 2 if asked["halves"] else steps
    noise = np.random.default_rng((asked["seed"], rank)).normal(1.0, _NOISE, steps)
    rates = np.ones(len(speeds))
    for _ in range(2):  # as the trainer measures them
        shares = _BATCH * rates / rates.sum()
        rates = shares / (fixed + per_row * shares / speeds)
    splitting = balancer(asked["how"], rates, every=10, steps_per_epoch=asked["steps_per_epoch"], total=_BATCH)
    accounts, spent, late = Accounts(rates.tolist()), {"backward": 0.0, "all_reduce": 0.0}, None
    dist.barrier()
    start = time.perf_counter()
    for step in range(steps):
        split = splitting.split(_BATCH)
        rows, begun = int(split[rank]), time.perf_counter()
        speed = speeds[rank] / (2 if step >= change and rank == len(speeds) - 1 else 1)
        if rows:
            _sleep_until(begun + (fixed + per_row * rows / speed) * noise[step])
        computing = time.perf_counter() - begun if rows else 0.0
        told.zero_()
        told[rank] = computing
        begun = time.perf_counter()
        dist.all_reduce(gradients)
        spent["backward"] += computing
        spent["all_reduce"] += time.perf_counter() - begun
        if late is not None:
            splitting.observe(*late)  # a step late, as the trainer
        late = split, told.double().numpy()
        accounts.add(*late)
    seconds = time.perf_counter() - start
    phases: list[dict[str, float]] = [{}] * len(speeds)
    dist.all_gather_object(phases, spent)
    if rank == 0:
        slower = speeds * np.where(np.arange(len(speeds)) == len(speeds) - 1, 0.5, 1.0)
        ideal = change * step_seconds + (steps - change) * (fixed + per_row * _BATCH / slower.sum())
        shares = accounts.shares(rows=steps * _BATCH, seconds=seconds, phases=phases, checkpoints=0.0)
        found = {"share": ideal / seconds, **shares}
        print(json.dumps(found))  # noqa: T201
    dist.destroy_process_group()


def _reduce_seconds(gradients: torch.Tensor) -> float:
    """What an all-reduce takes of the rank that comes to it last; the same on every rank."""
    found = torch.zeros(_TRIALS, dtype=torch.float64)
    for trial in range(_TRIALS):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(gradients)
        found[trial] = time.perf_counter() - start
    dist.all_reduce(found, dist.ReduceOp.MIN)
    return float(found.median())


def _sleep_until(end: float) -> None:
    time.sleep(max(0.0, end - time.perf_counter() - _EARLY))
    while time.perf_counter() < end:
        pass


if __name__ == "__main__":
    main()
