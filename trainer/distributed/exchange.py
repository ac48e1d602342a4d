"""What ranks send each other at a step, in one all-reduce: gradients, loss, compute times, requests to stop or save.

Of a table it carries only the rows that the global batch touches. This is why torch's DistributedDataParallel is not
used: it sends whole tables, which are most of the parameters, although a batch touches a fraction of their rows. Every
rank knows the rows, because every rank knows the whole global batch. All other gradients are zero on all ranks, so the
result is the same. To find the rows of a very large table, a rank would have to read all texts of the batch. So each
rank sends the others the ids of its own rows and one gradient for each text: less than a tenth of the rows with their
gradients (`means_of_ranks`). Every rank joins them in the order of the ranks, so that all get the same, to the last
bit. An all-gather would need messages of one size, and gloo's copies them twice.

The all-reduce sums shares that are already divided by the rows of the global batch (gradients.py). It comes after
`backward()`, so that a rank's own compute time is known apart from its wait for other ranks.

Reports are read one step late, so that a GPU's host never waits for the step that it has just queued. All ranks must
read them at the same point: otherwise they would split the next batch differently.
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
from trainer.computing.row_gradients import Means, compacted, joined, row_gradient, rows_of_means
from trainer.devices import moved_to
from trainer.distributed import collectives


@dataclass(kw_only=True)
class Traffic:
    """The bytes that a rank has sent to others for its steps since its start: not the parameters at the start, nor
    whole tables at a checkpoint."""

    bytes: float = 0.0
    steps: int = 0
    """Exchanges, or steps that it took by itself."""

    def add_sum(self, size: int, ranks: int) -> None:
        """Add a sum of `size` bytes over so many ranks, as a ring takes it: all but a rank's own part goes round
        twice."""
        self.bytes += 2 * size * (ranks - 1) / ranks


def bytes_a_step(of_ranks: Sequence[Mapping[str, float]], *, local_steps: int) -> float | None:
    """The bytes that a rank sends for a step of its own, by the fields of the ranks' Traffic; None before the first
    step. `local_steps`: how many of a rank's own steps are between two exchanges, at least 1."""
    steps = sum(each["steps"] for each in of_ranks) * local_steps
    return sum(each["bytes"] for each in of_ranks) / steps if steps else None


_HALF = 1 << 16
"""Numbers of ids are sent as two numbers, the lower one below this: float32 has no odd numbers above 2**24."""


def counts_of(own: Means) -> tuple[int, int, int]:
    """Three numbers below 2**24: how much this rank sends."""
    return (*divmod(len(own.ids), _HALF), len(own.lengths))


def of_counts(counts: Sequence[int]) -> tuple[int, int]:
    """The numbers of ids and of means of a rank with these `counts_of`."""
    high, low, means = counts
    return high * _HALF + low, means


def bytes_of(own: Means) -> int:
    """The bytes that this rank sends each of the others."""
    return own.ids.nbytes + own.lengths.nbytes + own.gradients.nbytes


def means_of_ranks(own: Means, counts: Sequence[Sequence[int]], rank: int) -> Means:
    """What the gradient of one table is made of over the ranks of the default group, whose `counts_of` are `counts`
    (ranks, 3); this is `rank`.

    Raises RuntimeError if other ranks are gone.
    """
    columns = own.gradients.shape[1]
    sent = own._replace(gradients=own.gradients.contiguous())
    of_ranks = {
        other: Means(sent.ids.new_empty(ids), sent.lengths.new_empty(n), sent.gradients.new_empty((n, columns)))
        for other, (ids, n) in enumerate(map(of_counts, counts))
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
            if len(own.lengths) and other != rank
            for tag, tensor in enumerate(sent)
        ),
    ]
    for each in dist.batch_isend_irecv(operations) if operations else ():
        each.wait()
    of_ranks[rank] = sent
    return joined([of_ranks[other] for other in sorted(of_ranks)])


_SHORT_ROW = 8
"""Ranks send the sums of rows of at most so many numbers: means have these rows so often that they are fewer."""
_MOST_TOUCHED = 0.8
"""If batches touch a larger share of a table, finding the rows takes longer than sending all."""

_LOSS, _STOP, _SAVE, _NORM, _TIMES = 0, 1, 2, 3, 4
_A_RANK = len(ComputeStats._fields) + 2  # numbers per rank: its statistics, rows of a piece, rows of this step


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What all ranks know about a step, the same on each."""

    step: int
    """Steps of the run before this one."""
    size: int
    """Rows of the global batch."""
    loss: float
    """The mean over the global batch."""
    norm: float
    """The norm of the gradient, before it was clipped."""
    stop: bool
    """Whether any rank was asked to stop."""
    save: bool
    """Whether any rank wants a checkpoint."""
    rows: IntArray
    """(ranks,): the rows that each rank computed in `seconds` (on a GPU, those of two steps before)."""
    seconds: npt.NDArray[np.float64]
    """(ranks,): each rank's own compute time; 0 while none is known."""
    pieces: IntArray
    """(ranks,): the rows of the pieces in which a rank computes its share if it does not fit into memory; else 0."""
    computed: IntArray
    """(ranks,): the rows of this step that each rank computed."""

    @property
    def is_complete(self) -> bool:
        """Whether the computed rows add up to the global batch.

        If not, the ranks split differently: rows are missing, or computed twice. The check does not show which, nor
        does it find wrong rows of the right number. The numbers are sent in float32, which rounds numbers of rows from
        2**24 on, by one in 2**24 at most.
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
        """Also give every rank the parameters, and the masks of dropout, of rank 0.

        `tables`: the parameters (rows, ...) of which batches may touch few rows. `clip_norm`: shorten longer gradients
        to this; 0: never. `timer`: this rank's times, which all ranks are sent. `sparse_tables`: those
        whose gradients have touched rows alone (row_gradients.py); each rank knows only its own.
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
        """Whether nothing is sent, and steps are so short that packing would be most of them."""
        self._pending: tuple[int, int, Tensor, collectives.DeviceEvent | None] | None = None
        with collectives.convert_errors("at the start"):
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, src=0)

    def is_sparse_cheaper(self, touched: Sequence[IntArray]) -> bool:
        """Whether it is cheaper to send only the rows (m,) that batches like this one touch in each table."""
        return all(len(rows) <= _MOST_TOUCHED * len(table) for rows, table in zip(touched, self._tables, strict=True))

    def reduce(
        self,
        *,
        step: int,
        size: int,
        touched: Sequence[IntArray] | None,
        means: Sequence[Means] = (),
        loss: Tensor,
        rows: int,
        piece: int = 0,
        stop: bool,
        save: bool,
    ) -> StepReport | None:
        """Replace the gradients by their sum over ranks; returns the report of the step before.

        `size`: rows of the global batch. `touched`: for each table the rows (m,) that the batch touches, the same on
        all ranks; None: send all rows. `means`: what this rank's gradient of each sparse table is made of. `loss`: this
        rank's part of the mean, over `rows` rows, computed in pieces of `piece` rows, or at once (0). Raises
        TrainingError if other ranks are gone.
        """
        self.traffic.steps += 1
        if self._ranks > 1:
            means = [compacted(each) if each.gradients.shape[1] <= _SHORT_ROW else each for each in means]
        own_counts = [number for each in means for number in counts_of(each)]
        message = np.zeros(_TIMES + (_A_RANK + len(own_counts)) * self._ranks)
        message[_STOP], message[_SAVE] = stop, save
        message[_TIMES + self._rank :: self._ranks] = (*self._timer.latest_stats(), piece, rows, *own_counts)
        if self._is_brief:
            tail = torch.from_numpy(message)
            tail[_LOSS], tail[_NORM] = loss, self._finish(list(map(_gradient, (*self._dense, *self._tables))), means)
            return self._report(step, size, tail)
        of_tables = [_gradient(table) for table in self._tables]
        places = None if touched is None else [moved_to(rows, self._device) for rows in touched]
        sent = of_tables if places is None else [each[at] for each, at in zip(of_tables, places, strict=True)]
        tail = moved_to(message, self._device).to(self._dtype)
        tail[_LOSS] = loss
        parts = [*(gradient.flatten() for gradient in (*map(_gradient, self._dense), *sent)), tail]
        flat = torch.cat(parts)
        self._timer.end_phase(PACK)
        if self._ranks > 1:
            with collectives.convert_errors(f"at step {step + 1}"):
                self.traffic.add_sum(flat.nbytes, self._ranks)
                dist.all_reduce(flat, op=dist.ReduceOp.SUM)
                if means:
                    means = self._of_ranks(means, flat[-len(own_counts) * self._ranks :])
        self._timer.end_phase(ALL_REDUCE)
        flat[-len(tail) + _NORM] = self._finish([flat[: -len(tail)]], means)
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

    def _of_ranks(self, means: Sequence[Means], counts: Tensor) -> list[Means]:
        """What the gradients of the sparse tables are made of over all ranks. The host waits for `counts`, of what each
        rank sends, because no rank can receive messages whose size it does not know."""
        self.traffic.bytes += (self._ranks - 1) * sum(bytes_of(own) for own in means)
        arrived = self._arrived(*_on_its_way(counts)).view(len(means), -1, self._ranks).mT.long()
        return [
            means_of_ranks(own, of_ranks, self._rank) for own, of_ranks in zip(means, arrived.tolist(), strict=True)
        ]

    def _arrived(self, numbers: Tensor, arrival: collectives.DeviceEvent | None) -> Tensor:
        """Numbers that are on their way to the host, when they are there. Raises RuntimeError if other ranks are
        gone."""
        if arrival is not None:
            collectives.wait(arrival, collectives.backend_of(self._device))
        return numbers

    def _finish(self, dense: list[Tensor], means: Sequence[Means]) -> Tensor:
        """Set the gradients of the sparse tables, which are made of `means`, and shorten them and the `dense` ones if
        they are too long; returns the norm of all before that."""
        summed = [rows_of_means(each) for each in means]
        whole = [*dense, *(each.values for each in summed)]
        norm = _norm(whole)
        if self._clip_norm:
            torch._foreach_mul_(whole, (self._clip_norm / (norm + 1e-6)).clamp(max=1.0))
        for table, rows_of_table in zip(self._sparse, summed, strict=True):
            table.grad = row_gradient(table, rows_of_table)
        return norm

    def _report(self, step: int, size: int, tail: Tensor) -> StepReport | None:
        """Keep what ranks reported in this step; returns the report of the step before."""
        previous = self.drain()
        self._pending = (step, size, *((tail, None) if self._is_brief else _on_its_way(tail)))
        self._timer.end_phase(PACK)
        return previous

    def drain(self) -> StepReport | None:
        """The report of the last step that was reduced, unless it was returned already.

        Raises TrainingError if other ranks are gone.
        """
        if self._pending is None:
            return None
        step, size, tail, arrival = self._pending
        self._pending = None
        with collectives.convert_errors(f"at step {step + 1}"):
            numbers = self._arrived(tail, arrival).to(torch.float64).numpy()
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
    if len(parts) > 1 and parts[0].is_cpu:  # in fewer calls, which take longer than the sums
        flat = [part.numpy().reshape(-1) for part in parts]
        return torch.tensor(math.sqrt(sum(float(each @ each) for each in flat)), dtype=parts[0].dtype)
    norms = [part.norm() for part in parts]
    found: Tensor = norms[0] if len(norms) == 1 else torch.stack(norms).norm()
    return found


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _on_its_way(tail: Tensor) -> tuple[Tensor, collectives.DeviceEvent | None]:
    """A copy on the host, and the event after which it is complete."""
    if tail.device.type != "cuda":
        return tail.clone(), None
    host = torch.empty(tail.shape, dtype=tail.dtype, pin_memory=True)
    host.copy_(tail, non_blocking=True)
    arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrival.record()
    return host, arrival
