"""One rank of several that sleep instead of computing, with the real balancer, claims and a real all-reduce by gloo.

Started by torchrun with a JSON object: `speeds` of the ranks, `how` to balance, whether they may claim (`claims`), the
share of the all-reduce in a step (`reducing`), how many `floats` it sums, `epochs` and `steps_per_epoch`, whether
the last rank `halves` its speed midway, by how much a rank's speed varies from step to step (`jitter`), what share of a
step is needed to begin (`fixed`), and the `seed` of the jitter. Rank 0 prints the `share` of ideal (that of the speeds
as they are on average), what the time went to (efficiency.py), and the share of the rows that was `claimed`.

A rank takes fixed + rows / speed for its share, and again for each piece that it claims. In a step, jitter makes all
these times longer or shorter by the same factor.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

from trainer.balancing.balancers import make_balancer
from trainer.balancing.claims import ClaimPlanner, StepTimes
from trainer.clock import ALL_REDUCE, BACKWARD, ComputeStats, StepTimer
from trainer.computing.sleeping import sleep_until
from trainer.distributed.ranks import batch_scheduling
from trainer.output.efficiency import Efficiency
from trainer.step_planner import ClaimCounter

_BATCH = 512
_TRIALS = 40


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
    claims, counter = ClaimPlanner(enabled=asked["claims"]), ClaimCounter(dist.distributed_c10d._get_default_store(), 0)
    efficiency, timer, late, claimed = Efficiency(rates.tolist()), StepTimer(), None, 0

    def compute(rows: int) -> None:
        if rows:
            sleep_until(time.perf_counter() + (fixed + per_row * rows / speed) * noise[step])
            timer.end_phase(BACKWARD)

    dist.barrier()
    start = time.perf_counter()
    for step in range(steps):
        speed = speeds[rank] / (2 if step >= change and rank == len(speeds) - 1 else 1)
        plan = claims.plan(splitting.split(_BATCH))
        timer.begin(int(plan.share[rank]))
        compute(int(plan.share[rank]))
        if plan.pieces:
            for number in counter.claim_pieces(plan, rank, f"at step {step}"):
                timer.begin_piece(plan.pieces[number])
                compute(plan.pieces[number])
            timer.begin_piece(0)
        told.zero_()
        told[:, rank] = torch.tensor(timer.latest_stats())
        timer.end_phase("pack")
        dist.all_reduce(gradients)
        timer.end_phase(ALL_REDUCE)
        if late is not None:  # as the trainer, which knows of a step when it has done the next
            splitting.observe(late.rows, late.seconds)
            claims.observe(late)
        rows, seconds, more, more_seconds, pieces, claiming = told.double().numpy().copy()
        late = StepTimes(rows=rows, seconds=seconds, claimed=more, pieces=pieces, claiming=claiming)
        efficiency.add((rows + more).astype(np.int64), seconds + more_seconds)
        claimed += int(more.sum())
    timer.finish()
    elapsed = time.perf_counter() - start
    phases: list[dict[str, float]] = [{}] * len(speeds)
    dist.all_gather_object(phases, dict(timer.sums))
    if rank == 0:
        slower = speeds * np.where(np.arange(len(speeds)) == len(speeds) - 1, 0.5, 1.0)
        ideal = change * step_seconds + (steps - change) * (fixed + per_row * _BATCH / slower.sum())
        shares = efficiency.shares(rows=steps * _BATCH, seconds=elapsed, phases=phases, checkpoints=0.0, awaited=0.0)
        found = {"share": ideal / elapsed, **shares, "claimed": claimed / steps / _BATCH, "step": elapsed / steps}
        print(json.dumps(found))  # noqa: T201
    dist.destroy_process_group()


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
