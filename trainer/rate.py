"""A rank's own rate: rows a second of plain training on this hardware, with no other rank to wait for.

The ideal that a run is held against is the sum of its ranks' own rates. The easy mistake is to measure ranks one
at a time: those that share a machine share its memory too. So all compute at once, for the same time, and no
collective is in between. The model that trains here is a copy, thrown away afterwards. It must not be slower than the
model itself: a rate too low makes every run look good.
"""

import time

import numpy as np
import torch
import torch.distributed as dist

from trainer.balancing.split import proportional
from trainer.clock import StepTimer, SynchronizedStepTimer
from trainer.computing.gradients import Compute
from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.distributed import collectives
from trainer.order import IntArray

_LOOK, _SECONDS = 0.2, 0.6
_WARM_UP = 3

_ROOM = 1.5
"""How much larger than needed the heap of a process on a CPU is made at first: memory that was never used before is
slow the first time, and would make the first steps longer."""

_QUEUE = 16
"""Steps that the host may be ahead of a GPU: enough never to let it wait, few enough to end in time."""


def first_rates(compute: Compute, config: TrainConfig, *, total: int, slowness: float) -> list[float]:
    """Rows a second of every rank, each on its share of `total` rows by these rates; the same on every rank.

    A look at equal shares tells the shares, and has memory at hand for larger ones.
    """
    room = _ROOM if compute.device.type == "cpu" else 1.0
    equal = proportional(round(room * total), np.ones(dist.get_world_size()))
    look = own_rates(compute, config, split=equal, slowness=slowness, seconds=_LOOK, warm_up=1)
    return own_rates(compute, config, split=proportional(total, np.array(look)), slowness=slowness)


def own_rates(
    compute: Compute,
    config: TrainConfig,
    *,
    split: IntArray,
    slowness: float,
    seconds: float = _SECONDS,
    warm_up: int = _WARM_UP,
) -> list[float]:
    """Rows a second of every rank, on steps of its own share `split` (ranks,), of at least one row; the same on every
    rank. Measured for so many `seconds`, after some steps to `warm_up`, or one where that takes as long."""
    device = compute.device
    timer = SynchronizedStepTimer() if device.type == "cuda" and slowness > 1.0 else StepTimer()
    twin = compute.twin(timer)
    steps = Optimiser(twin.model, twin.tables, config)
    generator = np.random.default_rng(config.seed)
    share = max(1, int(split[dist.get_rank()]))

    def step() -> None:
        timer.begin(share)
        twin(generator.integers(twin.rows, size=share), share, 0, slowness)
        steps.step(config.learning_rate)
        steps.clear()

    for _ in range(warm_up):
        start = time.perf_counter()
        step()
        _finish(device)
        if time.perf_counter() - start > seconds:
            break  # shares as large as these are warm after one
    queue = max(1, min(_QUEUE, int(seconds / (time.perf_counter() - start))))
    with collectives.reporting("between two steps"):
        dist.barrier()
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:  # a busy machine may have taken all of them meanwhile
        step()
        count += 1
        if count % queue == 0:
            _finish(device)
    _finish(device)
    elapsed = time.perf_counter() - start
    rates: list[float] = [0.0] * dist.get_world_size()
    with collectives.reporting("between two steps"):
        dist.all_gather_object(rates, count * share / elapsed)
    return rates


def _finish(device: torch.device) -> None:
    """Wait until a GPU has done what is in its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
