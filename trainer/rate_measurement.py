"""Measures each rank's own rate: the rows per second that it trains on its hardware, without waiting for other ranks.

The sum of these rates is the ideal throughput of a run. Do not measure one rank at a time, because ranks on one machine
share its memory bandwidth. All ranks compute simultaneously for the same time, without a collective operation during
the measurement. They train a copy of the model with a learning rate of 0. Training the copy must not be slower than
training the model, because every run would look efficient if the rates were too low. Sparse tables are not copied. The
optimiser rehearses its steps on them without changing them.
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
_SECONDS_ALONE = 0.1
"""Seconds for a single rank. Its rate is compared with no other rank's."""
_WARM_UP = 3

_ROOM = 1.5
"""Factor for the initial size of a CPU process's heap, relative to the memory that an equal share of the rows needs.

The first use of memory is slow, and would otherwise lengthen the first steps of a larger share.
"""

_QUEUE = 16
"""Maximum number of steps by which the host is ahead of a GPU: enough to keep the GPU busy, and few enough to finish in
time.
"""


def measure_initial_rates(compute: GradientComputer, optimiser: Optimiser, *, total: int) -> list[float]:
    """Return the rows per second of every rank (ranks,). Every rank returns the same list.

    Each rank trains on a share of `total` rows that is proportional to its rate in a first, short measurement with
    equal shares. The first measurement also allocates memory for larger shares. A single rank skips it.
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
    seconds: float | None = None,
    warm_up: int = _WARM_UP,
) -> list[float]:
    """Return the rows per second of every rank (ranks,). Every rank returns the same list.

    `split` (ranks,): the rows per step of each rank; a rank trains on at least one row. After `warm_up` steps, each
    rank trains for `seconds`. A rank takes only one warm-up step if this step takes longer than `seconds`.
    """
    seconds = seconds or (_SECONDS if dist.get_world_size() > 1 else _SECONDS_ALONE)
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
        steps.step(0.0)  # as slow as with a higher learning rate, but cannot diverge
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
    # Each rank takes at least one step, even if it starts late.
    while count == 0 or time.perf_counter() - start < seconds:
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
