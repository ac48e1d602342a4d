"""Exchange between ranks at each step: gradients, loss, compute times, and requests to stop or to save a checkpoint.

All of these are exchanged in one all-reduce, except the gradients of sparse tables. The all-reduce carries only those
rows of a table that the global batch touches. torch's DistributedDataParallel would send whole tables, which contain
most of the parameters, although a batch touches few of their rows. Every rank knows the whole global batch, and
therefore the touched rows. The gradients of all other rows are zero on all ranks, so the sum is the same.

For a sparse table, a rank would have to read all texts of the global batch to find the touched rows. Instead, each rank
sends to the other ranks one gradient for each of its own texts, and the ids of the text's rows (`gather_gradients`).
That is less than a tenth of the bytes of all row gradients. Every rank concatenates these gradients in rank order, so
that all ranks get bit-identical results. An all-gather would need messages of equal size, and gloo's all-gather copies
them twice.

It runs after `backward()`, so that a rank's own compute time is separate from its wait for other ranks.

The report of a step is read one step later, so that a GPU's host never waits for the step that it just queued. All
ranks must read a report at the same step: otherwise they would split the next batch differently.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from shoal_balance import IntArray
from torch import Tensor, nn

from trainer.clock import ALL_REDUCE, PACK, ComputeStats, StepTimer
from trainer.computing.row_gradients import FactoredGradient, compact, concatenate, row_gradient, sum_touched_rows
from trainer.devices import copy_to_device
from trainer.distributed import collectives


@dataclass(kw_only=True)
class Traffic:
    """Bytes that a rank has sent to other ranks for its steps since it started.

    The initial parameters and the whole tables that are sent for checkpoints are not counted.
    """

    bytes: float = 0.0
    steps: int = 0
    """Number of exchanges; in asynchronous mode, number of the rank's own steps."""

    def add_sum(self, size: int, ranks: int) -> None:
        """Add the bytes of an all-reduce of `size` bytes over `ranks` ranks.

        In a ring all-reduce, each rank sends a share of (ranks - 1) / ranks of the bytes twice.
        """
        self.bytes += 2 * size * (ranks - 1) / ranks


def bytes_a_step(of_ranks: Sequence[Mapping[str, float]], *, local_steps: int) -> float | None:
    """Return the mean number of bytes that a rank sends per step of its own; None before the first step.

    `of_ranks`: the fields of each rank's Traffic. `local_steps`: the number of a rank's own steps between two
    exchanges, at least 1.
    """
    steps = sum(each["steps"] for each in of_ranks) * local_steps
    return sum(each["bytes"] for each in of_ranks) / steps if steps else None


_HALF = 1 << 16
"""Base of the two digits that encode the number of ids. A single float32 cannot represent odd numbers above 2**24."""


def encode_counts(gradient: FactoredGradient) -> tuple[int, int, int]:
    """Return three numbers below 2**24 that encode how many ids and how many gradients `gradient` contains."""
    return (*divmod(len(gradient.ids), _HALF), len(gradient.lengths))


def decode_counts(counts: Sequence[int]) -> tuple[int, int]:
    """Return how many ids and how many gradients a rank has, from the rank's result of `encode_counts`."""
    high, low, gradients = counts
    return high * _HALF + low, gradients


def gradient_bytes(gradient: FactoredGradient) -> int:
    """Return the number of bytes that this rank sends to each other rank for its `gradient`."""
    return gradient.ids.nbytes + gradient.lengths.nbytes + gradient.gradients.nbytes


def gather_gradients(gradient: FactoredGradient, counts: Sequence[Sequence[int]], rank: int) -> FactoredGradient:
    """Return the sum of the gradients of one sparse table over all ranks of the default process group.

    `gradient`: this rank's gradient. `counts` (ranks, 3): each rank's result of `encode_counts`. `rank`: the number of
    this rank. Raises RuntimeError if other ranks are lost.
    """
    columns = gradient.gradients.shape[1]
    sent = gradient._replace(gradients=gradient.gradients.contiguous())
    of_ranks = {
        other: FactoredGradient(
            sent.ids.new_empty(ids), sent.lengths.new_empty(n), sent.gradients.new_empty((n, columns))
        )
        for other, (ids, n) in enumerate(map(decode_counts, counts))
        if n and other != rank
    }
    operations = [
        *(
            dist.P2POp(dist.irecv, tensor, other, tag=tag)
            for other in of_ranks
            for tag, tensor in enumerate(of_ranks[other])
        ),
        *(
            dist.P2POp(dist.isend, tensor, other, tag=tag)
            for other in range(len(counts))
            if len(gradient.lengths) and other != rank
            for tag, tensor in enumerate(sent)
        ),
    ]
    for each in dist.batch_isend_irecv(operations) if operations else ():
        each.wait()
    of_ranks[rank] = sent
    return concatenate([of_ranks[other] for other in sorted(of_ranks)])


_SHORT_ROW = 8
"""Largest number of columns for which ranks send one sum per row. Factored gradients repeat many row ids, so for narrow
tables the sums need fewer bytes."""

_LOSS, _STOP, _SAVE, _NORM, _TIMES = 0, 1, 2, 3, 4
_A_RANK = len(ComputeStats._fields) + 2  # numbers per rank: ComputeStats, rows per piece, and rows of this step


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """Report of a step, the same on all ranks."""

    step: int
    """Number of steps of the run before this one."""
    size: int
    """Number of rows in the global batch."""
    loss: float
    """Mean loss over the global batch."""
    norm: float
    """Norm of the gradient before clipping."""
    stop: bool
    """True if any rank was asked to stop."""
    save: bool
    """True if any rank requests a checkpoint."""
    rows: IntArray
    """(ranks,): number of rows that each rank computed in `seconds`. On a GPU, both are those of two steps earlier."""
    seconds: npt.NDArray[np.float64]
    """(ranks,): compute time of each rank, in seconds, without waiting for other ranks; 0 while unknown."""
    pieces: IntArray
    """(ranks,): number of rows per piece if a rank computes in pieces because of its memory; 0 if it does not."""
    computed: IntArray
    """(ranks,): number of rows of this step that each rank computed."""

    @property
    def is_complete(self) -> bool:
        """True if the numbers of rows that the ranks computed add up to the size of the global batch.

        If not, the ranks split the batch differently, so that rows are missing or were computed twice. The check does
        not find out which rows these are. It does not notice wrong rows if their number is right. The numbers are sent
        in float32, with a relative rounding error of at most 2**-24 from 2**24 rows on.
        """
        return abs(int(self.computed.sum()) - self.size) <= self.size >> 24


class GradientExchange:
    """Sums a model's gradients over the ranks of the default process group."""

    def __init__(
        self,
        model: nn.Module,
        tables: Sequence[Tensor],
        *,
        timer: StepTimer,
        clip_norm: float = 0.0,
        sparse_tables: Sequence[Tensor] = (),
    ) -> None:
        """Create the exchange, and copy rank 0's parameters and buffers, such as dropout masks, to every rank.

        `tables`: the parameters (rows, ...) with few touched rows per batch. `clip_norm`: the norm to which larger
        gradients are scaled down; 0: never. `timer`: measures this rank's compute times, which are sent to all ranks.
        `sparse_tables`: parameters with gradients that contain only the touched rows (row_gradients.py). Each rank
        knows only the rows that its own texts touch.
        """
        self._timer = timer
        self._clip_norm = clip_norm
        self._ranks, self._rank = dist.get_world_size(), dist.get_rank()
        self.traffic = Traffic()
        self._tables, self._sparse = list(tables), list(sparse_tables)
        self._dense = [
            each for each in model.parameters() if not any(each is other for other in (*tables, *sparse_tables))
        ]
        first = next(model.parameters())
        self._device, self._dtype = first.device, first.dtype
        self._is_brief = self._ranks == 1 and bool(sparse_tables) and self._device.type == "cpu"
        """True if nothing is sent, and a step is so short that packing the gradients would take most of its time."""
        self._pending: tuple[int, int, Tensor, torch.cuda.Event | None] | None = None
        with collectives.convert_errors("at the start"):
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, src=0)

    def reduce(
        self,
        *,
        step: int,
        size: int,
        touched: Sequence[IntArray] | None,
        table_gradients: Sequence[FactoredGradient] = (),
        loss: Tensor,
        rows: int,
        piece: int = 0,
        stop: bool,
        save: bool,
    ) -> StepReport | None:
        """Replace the gradients by their sum over ranks. Return the report of the previous step; None if no step came
        before.

        `size`: the number of rows in the global batch. `touched`: the rows (m,) of each table that the batch touches,
        the same on all ranks; None, for a single rank: all rows. `table_gradients`: this rank's gradient of each sparse
        table. `loss`: this rank's contribution to the mean loss. `rows`, `piece`: the number of rows that this rank
        computed, in total and per piece; 0 pieces if the share was computed at once. `stop`, `save`: whether this rank
        requests the end of the run or a checkpoint. Raises TrainingError if other ranks are lost.
        """
        self.traffic.steps += 1
        if self._ranks > 1:
            table_gradients = [
                compact(each) if each.gradients.shape[1] <= _SHORT_ROW else each for each in table_gradients
            ]
        own_counts = [number for each in table_gradients for number in encode_counts(each)]
        message = np.zeros(_TIMES + (_A_RANK + len(own_counts)) * self._ranks)
        message[_STOP], message[_SAVE] = stop, save
        message[_TIMES + self._rank :: self._ranks] = (*self._timer.latest_stats(), piece, rows, *own_counts)
        if self._is_brief:
            tail = torch.from_numpy(message)
            tail[_LOSS], tail[_NORM] = (
                loss,
                self._finish(list(map(_gradient, (*self._dense, *self._tables))), table_gradients),
            )
            return self._report(step, size, tail)
        of_tables = [_gradient(table) for table in self._tables]
        places = None if touched is None else [copy_to_device(rows, self._device) for rows in touched]
        sent = of_tables if places is None else [each[at] for each, at in zip(of_tables, places, strict=True)]
        tail = copy_to_device(message, self._device).to(self._dtype)
        tail[_LOSS] = loss
        parts = [*(gradient.flatten() for gradient in (*map(_gradient, self._dense), *sent)), tail]
        flat = torch.cat(parts)
        self._timer.end_phase(PACK)
        if self._ranks > 1:
            with collectives.convert_errors(f"at step {step + 1}"):
                self.traffic.add_sum(flat.nbytes, self._ranks)
                dist.all_reduce(flat, op=dist.ReduceOp.SUM)
                if table_gradients:
                    table_gradients = self._gather(table_gradients, flat[-len(own_counts) * self._ranks :])
        self._timer.end_phase(ALL_REDUCE)
        flat[-len(tail) + _NORM] = self._finish([flat[: -len(tail)]], table_gradients)
        *gradients, tail = torch.split(flat, [part.numel() for part in parts])
        for parameter, gradient in zip(self._dense, gradients[: len(self._dense)], strict=True):
            parameter.grad = gradient.view_as(parameter)
        for number, (table, gradient) in enumerate(zip(self._tables, gradients[len(self._dense) :], strict=True)):
            if places is None:
                table.grad = gradient.view_as(table)
            else:
                of_tables[number].index_copy_(0, places[number], gradient.view_as(sent[number]))
                table.grad = of_tables[number]
        return self._report(step, size, tail)

    def _gather(self, table_gradients: Sequence[FactoredGradient], counts: Tensor) -> list[FactoredGradient]:
        """Return the sum of each sparse table's gradient over all ranks.

        `counts`: the encoded sizes of each rank's messages. The host waits for them, because a receiver must know the
        size of a message.
        """
        self.traffic.bytes += (self._ranks - 1) * sum(gradient_bytes(gradient) for gradient in table_gradients)
        arrived = self._wait_for_copy(*_copy_to_host(counts)).view(len(table_gradients), -1, self._ranks).mT.long()
        return [
            gather_gradients(gradient, of_ranks, self._rank)
            for gradient, of_ranks in zip(table_gradients, arrived.tolist(), strict=True)
        ]

    def _wait_for_copy(self, numbers: Tensor, arrival: torch.cuda.Event | None) -> Tensor:
        """Wait until the copy of `numbers` to the host is complete. Return the numbers.

        Raises RuntimeError if other ranks are lost.
        """
        if arrival is not None:
            collectives.wait(arrival, collectives.backend_of(self._device))
        return numbers

    def _finish(self, dense: list[Tensor], table_gradients: Sequence[FactoredGradient]) -> Tensor:
        """Set the gradients of the sparse tables from `table_gradients`. Clip them together with the `dense` gradients.

        Returns the norm of all gradients before clipping.
        """
        summed = [sum_touched_rows(each) for each in table_gradients]
        whole = [*dense, *(each.values for each in summed)]
        norm = _norm(whole)
        if self._clip_norm:
            torch._foreach_mul_(whole, (self._clip_norm / (norm + 1e-6)).clamp(max=1.0))
        for table, rows_of_table in zip(self._sparse, summed, strict=True):
            table.grad = row_gradient(table, rows_of_table)
        return norm

    def _report(self, step: int, size: int, tail: Tensor) -> StepReport | None:
        """Keep the report of this step for the next call. Return the report of the previous step."""
        previous = self.drain()
        self._pending = (step, size, *((tail, None) if self._is_brief else _copy_to_host(tail)))
        self._timer.end_phase(PACK)
        return previous

    def drain(self) -> StepReport | None:
        """Return the report of the latest step; None if it was returned already.

        Raises TrainingError if other ranks are lost.
        """
        if self._pending is None:
            return None
        step, size, tail, arrival = self._pending
        self._pending = None
        with collectives.convert_errors(f"at step {step + 1}"):
            numbers = self._wait_for_copy(tail, arrival).to(torch.float64).numpy()
        times = numbers[_TIMES : _TIMES + _A_RANK * self._ranks].reshape(_A_RANK, self._ranks)  # (_A_RANK, ranks)
        rows, _, pieces, computed = times.astype(np.int64)
        return StepReport(
            step=step,
            size=size,
            loss=float(numbers[_LOSS]),
            norm=float(numbers[_NORM]),
            stop=bool(numbers[_STOP] > 0),
            save=bool(numbers[_SAVE] > 0),
            rows=rows,
            seconds=times[1],
            pieces=pieces,
            computed=computed,
        )


def _norm(parts: list[Tensor]) -> Tensor:
    if len(parts) > 1 and parts[0].is_cpu:  # numpy needs fewer calls, and a call takes longer than a sum
        flat = [part.numpy().reshape(-1) for part in parts]
        return torch.tensor(math.sqrt(sum(float(each @ each) for each in flat)), dtype=parts[0].dtype)
    norms = [part.norm() for part in parts]
    norm: Tensor = norms[0] if len(norms) == 1 else torch.stack(norms).norm()
    return norm


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _copy_to_host(tail: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
    """Start to copy `tail` to the host. Return the copy, and the event that marks its completion (None on a CPU)."""
    if tail.device.type != "cuda":
        return tail.clone(), None
    host = torch.empty(tail.shape, dtype=tail.dtype, pin_memory=True)
    host.copy_(tail, non_blocking=True)
    arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrival.record()
    return host, arrival
