"""Gradients that torch's DistributedDataParallel sums during `backward` (Li et al. 2020), for `--exchange ddp`.

It sends whole tables, where exchange.py sends the rows that a batch touches. But it sends the gradients of the last
layers while those of the first are still computed. So it is the better choice for a model without large tables, over a
link that is not slow, and the peer of exchange.py everywhere else.

It would divide the sum by the number of ranks, which is wrong for unequal shares unless each rank multiplies its loss
by that number. So the sum is taken by a hook, which does neither (gradients.py has the loss). The hook also notes when
the rank has computed the last of its own gradients. Do not time around `backward`: it ends when the slowest rank does.
"""

import time
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from trainer.clock import ALL_REDUCE, BACKWARD, FORWARD, SLOWED, StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.row_gradients import Means
from trainer.distributed import collectives
from trainer.distributed.collectives import HALF_SCALE, in_half_precision
from trainer.distributed.memory import is_full
from trainer.order import IntArray
from trainer.rank_errors import RankError


class _Loss(nn.Module):
    """The loss of rows as the output of a module, which is what DistributedDataParallel takes."""

    def __init__(self, compute: GradientComputer) -> None:
        super().__init__()
        self.model = compute.model
        self._compute = compute

    def forward(self, numbers: IntArray, of: int, step: int) -> Tensor:
        return self._compute.scaled_loss(numbers, of, step)


class SummingComputer:
    """Computes shares as `compute` does, and sums their gradients over the ranks of the default group meanwhile.

    Every rank has to compute once in each step, also without rows. `timer` gets the phases; `bits`: 16 to send
    gradients in half precision.
    """

    piece_rows = 0
    """A share is computed at once."""

    def __init__(self, compute: GradientComputer, *, timer: StepTimer, bits: int) -> None:
        self._compute, self._timer, self._bits = compute, timer, bits
        self._slowness, self._since = 1.0, 0.0
        with collectives.convert_errors("at the start"):
            self._summing = DistributedDataParallel(_Loss(compute), gradient_as_bucket_view=True)
        self._summing.register_comm_hook(None, self._send)

    def __call__(self, numbers: IntArray, of: int, step: int, slowness: float = 1.0) -> Tensor:
        """Set the model's gradients to those of a global batch of `of` rows, of which this rank computes `numbers`
        (n,).

        Returns these rows' part of the global batch's mean loss, a scalar still on the device. `slowness`: sleep until
        so many times the own compute time has passed. Raises RankError if the rows do not fit into memory.
        """
        self._slowness, self._since = slowness, time.perf_counter()
        scale = self._compute.scale(of)
        try:
            loss = self._summing(numbers, of, step)
            self._timer.end_phase(FORWARD)
            with collectives.convert_errors(f"at step {step + 1}"):
                loss.backward()
        except RuntimeError as error:
            if not is_full(error):
                raise
            raise RankError(
                f"{len(numbers)} rows do not fit into the memory of {self._compute.device} at once, and --exchange ddp "
                "computes no pieces; take a smaller --global-batch, or leave out --exchange"
            ) from error
        self._timer.end_phase(ALL_REDUCE)
        if scale != 1.0:
            gradients = [each.grad for each in self._compute.model.parameters() if each.grad is not None]
            torch._foreach_div_(gradients, scale)
        part: Tensor = loss.detach() / scale
        return part

    def take_means(self) -> list[Means]:
        """None: there are no sparse tables."""
        return []

    def _send(self, _state: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
        """Begin to sum a bucket of gradients; after the last one this rank has computed all of its own."""
        if bucket.is_last():
            self._timer.end_phase(BACKWARD)
            if self._slowness > 1.0:
                time.sleep((self._slowness - 1.0) * (time.perf_counter() - self._since))
                self._timer.end_phase(SLOWED)
        gradients = bucket.buffer()
        sent = in_half_precision(gradients, dist.get_world_size()) if self._bits == 16 else gradients
        summing: Any = dist.all_reduce(sent, async_op=True)

        def summed(_arrived: torch.futures.Future[list[Tensor]]) -> Tensor:
            return gradients if sent is gradients else gradients.copy_(sent).div_(HALF_SCALE)

        found: torch.futures.Future[Tensor] = summing.get_future().then(summed)
        return found
