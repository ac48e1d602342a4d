"""A rank that sleeps instead of computing, with the real balancer and a real all-reduce by gloo.

torchrun starts it with a JSON object of options:

- `speeds` of the ranks, and `how` to balance
- `reducing`, the share of the all-reduce in a step, and `floats`, the count of numbers that it sums
- `epochs` and `steps_per_epoch`
- `halves`, whether the last rank loses half of its speed midway
- `jitter`, the relative variation of a rank's speed from step to step, and its `seed`
- `fixed`, the fixed time of a rank as a share of a step

Rank 0 prints the `share` of ideal (for the average speeds), and the use of time (trainer/output/throughput.py).
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
"""Seconds before the end of a sleep from which the rank polls the clock. The kernel wakes sleepers late by less."""


def main() -> None:
    """Take part in the run that the command line describes."""
    options = json.loads(sys.argv[1])
    with batch_scheduling():  # like the trainer
        dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, speeds = dist.get_rank(), np.array(options["speeds"])
    gradients = torch.zeros(options["floats"])
    stats = gradients[: len(ComputeStats._fields) * len(speeds)].view(-1, len(speeds))
    step_seconds = _reduce_seconds(gradients) * (1 / options["reducing"] - 1)  # compute time of a balanced step
    fixed = options["fixed"] * step_seconds
    per_row = (step_seconds - fixed) * speeds.sum() / _BATCH
    steps = options["epochs"] * options["steps_per_epoch"]
    change = steps // 2 if options["halves"] else steps
    noise = np.maximum(0.3, np.random.default_rng((options["seed"], rank)).normal(1.0, options["jitter"], steps))
    rates = np.ones(len(speeds))
    for _ in range(2):  # like the trainer's measurement
        shares = _BATCH * rates / rates.sum()
        rates = shares / (fixed + per_row * shares / speeds)
    splitting = make_balancer(options["how"], rates, every=10, steps_per_epoch=options["steps_per_epoch"], total=_BATCH)
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
        stats.zero_()
        stats[:, rank] = torch.tensor(timer.latest_stats())
        timer.end_phase("pack")
        dist.all_reduce(gradients)
        timer.end_phase(ALL_REDUCE)
        if late is not None:  # like the trainer, which knows a step's times after the next step
            splitting.observe(*late)
        rows, seconds = stats.double().numpy().copy()
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
    """Wait until `end` of `time.perf_counter`. Return at once if that is in the past."""
    time.sleep(max(0.0, end - time.perf_counter() - _EARLY))
    while time.perf_counter() < end:
        pass


def _reduce_seconds(gradients: torch.Tensor) -> float:
    """Return the seconds of an all-reduce for the rank that enters it last. The result is the same on every rank."""
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
