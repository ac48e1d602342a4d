"""One rank of several that sleep instead of computing, with the real balancer and a real all-reduce by gloo.

Started by torchrun with a JSON object: `speeds` of the ranks, `how` to balance, the share of the all-reduce in a step
(`reducing`), how many `floats` it sums, `epochs` and `steps_per_epoch`, whether the last rank `halves` its speed
midway, by how much a rank's speed varies from step to step (`jitter`), what share of a step is needed to begin
(`fixed`), and the `seed` of the jitter. Rank 0 prints the `share` of ideal (that of the speeds as they are on average),
and what the time went to (trainer/output/throughput.py).
"""

import json
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from shoal_balance import make_balancer

from trainer.clock import ALL_REDUCE, BACKWARD, ComputeStats, StepTimer
from trainer.distributed.ranks import batch_scheduling
from trainer.output.throughput import Efficiency

_BATCH = 512
_TRIALS = 40
_EARLY = 0.0001
"""The kernel wakes sleepers late by less than this, so the rest of the time is spent looking at the clock."""


def main() -> None:
    """Take part in the run that the command line describes."""
    asked = json.loads(sys.argv[1])
    with batch_scheduling():  # as the trainer
        dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, speeds = dist.get_rank(), np.array(asked["speeds"])
    gradients = torch.zeros(asked["floats"])
    told = gradients[: len(ComputeStats._fields) * len(speeds)].view(-1, len(speeds))
    step_seconds = _reduce_seconds(gradients) * (1 / asked["reducing"] - 1)  # of computing, when it is balanced
    fixed = asked["fixed"] * step_seconds
    per_row = (step_seconds - fixed) * speeds.sum() / _BATCH
    steps = asked["epochs"] * asked["steps_per_epoch"]
    change = steps // 2 if asked["halves"] else steps
    noise = np.maximum(0.3, np.random.default_rng((asked["seed"], rank)).normal(1.0, asked["jitter"], steps))
    rates = np.ones(len(speeds))
    for _ in range(2):  # as the trainer measures them
        shares = _BATCH * rates / rates.sum()
        rates = shares / (fixed + per_row * shares / speeds)
    splitting = make_balancer(asked["how"], rates, every=10, steps_per_epoch=asked["steps_per_epoch"], total=_BATCH)
    efficiency, timer, late = Efficiency(rates.tolist()), StepTimer(), None

    dist.barrier()
    start = time.perf_counter()
    for step in range(steps):
        speed = speeds[rank] / (2 if step >= change and rank == len(speeds) - 1 else 1)
        own = int(splitting.split(_BATCH)[rank])
        timer.begin(own)
        if own:
            sleep_until(time.perf_counter() + (fixed + per_row * own / speed) * noise[step])
            timer.end_phase(BACKWARD)
        told.zero_()
        told[:, rank] = torch.tensor(timer.latest_stats())
        timer.end_phase("pack")
        dist.all_reduce(gradients)
        timer.end_phase(ALL_REDUCE)
        if late is not None:  # as the trainer, which knows of a step when it has done the next
            splitting.observe(*late)
        rows, seconds = told.double().numpy().copy()
        late = rows.astype(np.int64), seconds
        efficiency.add(*late)
    timer.finish()
    elapsed = time.perf_counter() - start
    phases: list[dict[str, float]] = [{}] * len(speeds)
    dist.all_gather_object(phases, dict(timer.sums))
    if rank == 0:
        slower = speeds * np.where(np.arange(len(speeds)) == len(speeds) - 1, 0.5, 1.0)
        ideal = change * step_seconds + (steps - change) * (fixed + per_row * _BATCH / slower.sum())
        shares = efficiency.shares(rows=steps * _BATCH, seconds=elapsed, phases=phases, checkpoints=0.0, awaited=0.0)
        found = {"share": ideal / elapsed, **shares, "step": elapsed / steps}
        print(json.dumps(found))  # noqa: T201
    dist.destroy_process_group()


def sleep_until(end: float) -> None:
    """Return at `end`, by `time.perf_counter`, or at once where that is over."""
    time.sleep(max(0.0, end - time.perf_counter() - _EARLY))
    while time.perf_counter() < end:
        pass


def _reduce_seconds(gradients: torch.Tensor) -> float:
    """The seconds of an all-reduce for the rank that enters it last; the same on every rank."""
    found = torch.zeros(_TRIALS, dtype=torch.float64)
    for trial in range(_TRIALS):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(gradients)
        found[trial] = time.perf_counter() - start
    dist.all_reduce(found, dist.ReduceOp.MIN)
    return float(found.median())


if __name__ == "__main__":
    main()
