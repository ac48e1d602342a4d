"""A rank's own rate: rows per second of plain training on this hardware, without waiting for other ranks.

A run is compared with the sum of its ranks' own rates. Do not measure one rank at a time: ranks on one machine share
its memory bandwidth. So all ranks compute at once, for the same time, without a collective in between. They train a
copy of the model, at a learning rate of 0. The copy must not be slower than the model itself: a rate that is too low
makes every run look good. Sparse tables are not copied: the optimiser rehearses its steps on them, and changes nothing.
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
"""How much larger than needed the heap of a CPU process is made at first. The first use of memory is slow, and would
make the first steps longer."""

_QUEUE = 16
"""Steps that the host may be ahead of a GPU: enough that the GPU never waits, few enough to end in time."""


def measure_initial_rates(compute: GradientComputer, optimiser: Optimiser, *, total: int) -> list[float]:
    """Rows per second of every rank, each on its share of `total` rows by these rates; the same on every rank.

    A short measurement on equal shares gives the shares, and allocates memory for larger ones; one rank needs neither.
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
    """Rows per second of every rank, on steps of its own share `split` (ranks,), of at least one row; the same on every
    rank.

    Measured for `seconds`, after `warm_up` steps, or after one step if it takes as long.
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
            break  # shares as large as these are warm after one
    queue = max(1, min(_QUEUE, int(seconds / (time.perf_counter() - start))))
    with collectives.convert_errors("between two steps"):
        dist.barrier()
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:  # a busy machine may have taken all of them meanwhile
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
    """Wait until a GPU has done the work in its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
