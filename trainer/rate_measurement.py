"""Measurement of each rank's own rate: rows per second of plain training on its hardware, without waiting for other
ranks.

The sum of these rates is the ideal of a run. Do not measure one rank at a time: ranks on one machine share its memory
bandwidth. All ranks compute simultaneously for the same time, without a collective in between. They train a copy of the
model with a learning rate of 0. The copy must not be slower than the model: rates that are too low would make every run
look efficient. Sparse tables are not copied: the optimiser rehearses steps on them without changing them.
"""

import time

import numpy as np
import torch
import torch.distributed as dist
from shoal_balance import IntArray, proportional_split

from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.optimiser import Optimiser
from trainer.distributed import collectives

_LOOK, _SECONDS = 0.2, 0.6
_WARM_UP = 3

_ROOM = 1.5
"""Factor by which the heap of a CPU process is initially larger than needed. First use of memory is slow and would
lengthen the first steps."""

_QUEUE = 16
"""Steps that the host may be ahead of a GPU: enough to keep the GPU busy, few enough to end in time."""


def measure_initial_rates(compute: GradientComputer, optimiser: Optimiser, *, total: int) -> list[float]:
    """Return the rows per second of every rank (ranks,), the same list on every rank.

    The split of `total` rows is proportional to a short first measurement on equal shares. That measurement also
    allocates memory for larger shares. A single rank does not need it.
    """
    if dist.get_world_size() == 1:
        return measure_own_rates(compute, optimiser, split=np.array([total]))
    room = _ROOM if compute.device.type == "cpu" else 1.0
    equal = proportional_split(round(room * total), np.ones(dist.get_world_size()))
    look = measure_own_rates(compute, optimiser, split=equal, seconds=_LOOK, warm_up=1)
    return measure_own_rates(compute, optimiser, split=proportional_split(total, np.array(look)))


def measure_own_rates(
    compute: GradientComputer,
    optimiser: Optimiser,
    *,
    split: IntArray,
    seconds: float = _SECONDS,
    warm_up: int = _WARM_UP,
) -> list[float]:
    """Return the rows per second of every rank (ranks,), the same list on every rank.

    Each rank trains on steps of its own share of `split` (ranks,), at least one row, for `seconds`. Before that it
    takes `warm_up` steps, or only one if that takes longer than `seconds`.
    """
    device = compute.device
    timer = StepTimer()
    twin = compute.with_copied_model(timer)
    steps = optimiser.rehearsal(twin.model)
    generator = np.random.default_rng(0)
    share = max(1, int(split[dist.get_rank()]))

    def step() -> None:
        timer.begin(share)
        twin(generator.integers(twin.rows, size=share), share, 0)
        twin.set_table_gradients()
        steps.step(0.0)  # takes as long, and cannot diverge
        steps.clear()

    for _ in range(warm_up):
        start = time.perf_counter()
        step()
        _finish(device)
        if time.perf_counter() - start > seconds:
            break  # shares of this size need only one warm-up step
    queue = max(1, min(_QUEUE, int(seconds / (time.perf_counter() - start))))
    with collectives.convert_errors("between two steps"):
        dist.barrier()
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:  # the first step may start late
        step()
        count += 1
        if count % queue == 0:
            _finish(device)
    _finish(device)
    elapsed = time.perf_counter() - start
    with collectives.convert_errors("between two steps"):
        rates: list[float] = collectives.gather(count * share / elapsed, dist.get_world_size(), None)
    return rates


def _finish(device: torch.device) -> None:
    """Wait until a GPU has finished its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
