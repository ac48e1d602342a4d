"""A rank's own rate: rows a second of plain training on this hardware, with no other rank to wait for.

The ideal that a run is held against is the sum of its ranks' own rates. The easy mistake is to measure ranks one
at a time: those that share a machine share its memory too. So all compute at once, for the same time, and no
collective is in between. The model that trains here is a copy, thrown away afterwards. It must not be slower than the
model itself: a rate too low makes every run look good.
"""

import copy
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn

from trainer import peers
from trainer.balance import proportional
from trainer.clock import Laps, WaitingLaps
from trainer.compute import Compute
from trainer.config import TrainConfig
from trainer.data import Rows
from trainer.losses import Loss
from trainer.models.classifier import Classifier
from trainer.optimise import optimiser

_LOOK, _SECONDS = 0.2, 0.6
_WARM_UP = 3

_ROOM = 2
"""Memory that was never used before is slow the first time (on a CPU, for some ten steps of growing heaps, by up to
half), so there has to be some for when shares change, and for what lies scattered between other things."""

_QUEUE = 16
"""Steps that the host may be ahead of a GPU: enough never to let it wait, few enough to end in time."""


def own_rates(
    model: Classifier, rows: Rows, config: TrainConfig, *, total: int, loss: Loss, slowness: float
) -> list[float]:
    """Rows a second of every rank, on steps of its share of `total` rows by these rates; the same on every rank.

    A first look, at equal shares of more rows than that, tells the shares, and has memory at hand for larger ones.
    """
    device = model.embedding.weight.device
    twin = copy.deepcopy(model)
    for module in twin.modules():
        if isinstance(module, nn.RNNBase):
            module.flatten_parameters()  # a copy's weights lie apart, and cuDNN would gather them at every step
    laps = WaitingLaps() if device.type == "cuda" and slowness > 1.0 else Laps()
    compute = Compute(twin, rows, loss=loss, device=device, laps=laps)
    steps = optimiser(twin.parameters(), config)
    generator = np.random.default_rng(config.seed)

    def step(share: int) -> None:
        laps.begin(share)
        compute(generator.integers(len(rows), size=share), share, 0, slowness)
        steps.step()
        steps.zero_grad()

    rates = np.ones(dist.get_world_size())
    for rows_in_all, seconds in ((_ROOM * total, _LOOK), (total, _SECONDS)):
        share = max(1, int(proportional(rows_in_all, rates)[dist.get_rank()]))
        rates = _together(partial(step, share), share, seconds, device)
    return rates.tolist()


def _together(step: Callable[[], None], rows: int, seconds: float, device: torch.device) -> npt.NDArray[np.float64]:
    """(ranks,): rows a second of steps of so many rows, while all ranks are at it."""
    for _ in range(_WARM_UP):
        step()
    _finish(device)
    with peers.needed("between two steps"):
        dist.barrier()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        step()
        count += 1
        if count % _QUEUE == 0:
            _finish(device)
    _finish(device)
    elapsed = time.perf_counter() - start
    rates: list[float] = [0.0] * dist.get_world_size()
    with peers.needed("between two steps"):
        dist.all_gather_object(rates, count * rows / elapsed)
    return np.array(rates)


def _finish(device: torch.device) -> None:
    """Wait until a GPU has done what is in its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
