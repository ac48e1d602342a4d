"""Parameter server: tables that are sharded over all ranks. With n ranks, rank r owns the rows r, r + n, r + 2n, ...

A rank pulls the rows that it needs, and pushes additive updates. An owner applies one push at a time and counts the
pushes. So it knows how many pushes it applied between a rank's pull and the same rank's push (`Staleness`).

An owner answers each other rank in a separate thread. A request is a pull, a push, or the taking of the next step from
the queue. Gloo sends the messages, and a receiver must know their sizes: a request begins with its kind and with the
number of its rows in each table. Requests and answers have separate process groups with different time-outs: an owner
can wait for a request as long as the run lasts, but an answer arrives soon.
"""

import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.distributed import collectives
from trainer.distributed.exchange import Traffic
from trainer.distributed.ranks import Ranks, batch_scheduling

_POLL_SECONDS = 0.5


class FinishedStep(NamedTuple):
    """Report of a step that a rank finished."""

    rank: int
    step: int
    loss: float
    rows: int
    seconds: float
    """Compute time in seconds."""


class StepQueue:
    """Hands out the steps [first, last) of an epoch to ranks, one at a time, until it is closed.

    The queue is on the first rank, which handles the requests of each rank in a separate thread. A request waits while
    its step would be more than `bound` steps ahead of the oldest unfinished step. So the staleness of a gradient is at
    most `bound` plus the number of steps that other ranks had already started.
    """

    def __init__(self, *, first: int, last: int, bound: int, is_due: Callable[[int], bool]) -> None:
        """`is_due`: returns whether to close the queue after a given number of finished steps."""
        self._next, self._last, self._bound, self._is_due = first, last, bound, is_due
        self._finished = first
        self._open: set[int] = set()
        self._reports: list[FinishedStep] = []
        self._changed = Condition()
        self.closed = False
        """True if the queue hands out no more steps."""

    def take(self, finished: FinishedStep | None, stop: bool) -> int | None:
        """Return the next step for a rank; None if the queue is closed or empty.

        `finished`: the report of the rank's previous step, if any. `stop`: whether the rank was asked to stop, which
        closes the queue.
        """
        with self._changed:
            if finished is not None:
                self._open.remove(finished.step)
                self._finished += 1
                self._reports.append(finished)
            self.closed = self.closed or stop
            self._changed.notify_all()
            # A lost rank finishes no step and notifies nobody, so waiting ranks also poll.
            while not self._changed.wait_for(lambda: self._is_ready, timeout=_POLL_SECONDS):
                pass
            if self.closed or self._next == self._last:
                return None
            self._open.add(self._next)
            self._next += 1
            return self._next - 1

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def take_reports(self) -> list[FinishedStep]:
        """Return the reports of the steps that were finished since the last call."""
        with self._changed:
            reports, self._reports = self._reports, []
            return reports

    @property
    def _is_ready(self) -> bool:
        self.closed = self.closed or self._is_due(self._finished)
        is_near = not self._open or self._next - min(self._open) <= self._bound
        return self.closed or self._next == self._last or is_near


_REQUEST_TIMEOUT = timedelta(days=365)
"""Time-out of an owner that waits for a request. It is long, because an unbounded stream can be without text for days.
A dead rank is noticed earlier, because its connections break."""
_NO_STEP = -1

TakeStep = Callable[[FinishedStep | None, bool], int | None]
"""Function such as `StepQueue.take`: it takes a rank's previous report and whether the rank was asked to stop, and
returns the next step for this rank."""


class _MessageKind(IntEnum):
    PULL = 1
    PUSH = 2
    TAKE = 3
    END = 4


@dataclass(kw_only=True)
class Staleness:
    """Statistics of staleness: the number of pushes from other ranks between a rank's pull and the matching push.

    `pushes`: the number of pushes. `total` and `most`: the sum and the largest of their staleness values.
    """

    pushes: int = 0
    total: int = 0
    most: int = 0

    def add(self, between: int) -> None:
        self.pushes, self.total, self.most = self.pushes + 1, self.total + between, max(self.most, between)


class _Shard:
    """Rows that this rank owns. Only one thread at a time reads or changes them."""

    def __init__(self, tables: list[Tensor]) -> None:
        self.tables = tables
        self.staleness = Staleness()
        self._version = 0
        self._lock = Lock()

    def pull(self, rows: Sequence[Tensor]) -> tuple[int, list[Tensor]]:
        """Return the number of pushes so far, and the values of `rows` (indices into this shard) of each table."""
        with self._lock:
            return self._version, [table[indices] for table, indices in zip(self.tables, rows, strict=True)]

    def push(self, rows: Sequence[Tensor], values: Sequence[Tensor], pulled: int) -> None:
        """Add `values` to `rows` of each table. `pulled`: the number of pushes at the time of the matching pull."""
        with self._lock:
            for table, indices, each in zip(self.tables, rows, values, strict=True):
                table.index_add_(0, indices, each)
            self.staleness.add(self._version - pulled)
            self._version += 1


@contextmanager
def serve_tables(ranks: Ranks, tables: Sequence[Tensor]) -> Iterator["ParameterServer"]:
    """Run a parameter server of `tables` during this block. The tables must be equal on all ranks.

    All ranks must enter and leave the block at the same time. After an error the threads are left running, so the
    process must then exit without cleanup.
    """
    scheduling = batch_scheduling() if ranks.device.type == "cpu" else nullcontext()
    with collectives.convert_errors("at the start"), scheduling:
        requests = dist.new_group(backend="gloo", timeout=_REQUEST_TIMEOUT)
        answers = dist.new_group(backend="gloo", timeout=collectives.TIMEOUT)
    server = ParameterServer(tables, requests, answers)
    yield server
    with collectives.convert_errors("at the end"):
        server.close()


class ParameterServer:
    """Tables that are sharded over all ranks: access to all rows, and threads that serve the rows of this rank.

    All ranks must create this object at the same time, with equal tables.
    """

    def __init__(self, tables: Sequence[Tensor], requests: Any, answers: Any) -> None:
        """`tables` (rows, columns), float32: this rank's copies of the whole tables. A pull writes rows into them.

        `requests`, `answers`: two gloo process groups of all ranks.
        """
        self._rank, self._ranks = requests.rank(), requests.size()
        self._others = [rank for rank in range(self._ranks) if rank != self._rank]
        self._requests, self._answers = requests, answers
        self._copies = list(tables)
        self.traffic = Traffic()
        """Traffic of this rank. It includes received rows, because the rank that pulls or pushes a row counts it."""
        self._shard = _Shard([each[self._rank :: self._ranks].cpu().clone() for each in tables])
        self.take_step: TakeStep | None = None
        """Function that hands out the steps; it is set on the first rank only."""
        self._threads = [Thread(target=self._serve, args=(other,), daemon=True) for other in self._others]
        for each in self._threads:
            each.start()

    def pull(self, rows: Sequence[Tensor]) -> list[int]:
        """Copy the latest values of `rows` to this rank's copies of the tables.

        `rows`: the row numbers (n,) for each table. Returns the number of pushes that each owner has applied (ranks,).
        """
        parts = [self._rows_of_owner(rows, owner) for owner in range(self._ranks)]
        for owner in self._others:
            self._request(owner, _MessageKind.PULL, parts[owner][1])
        versions = []
        for owner, (places, local) in enumerate(parts):
            if owner == self._rank:
                version, values = self._shard.pull(local)
            else:
                version = self._receive_integer(owner)
                values = self._receive_rows(self._answers, owner, list(map(len, local)))
            for copy, place, new_rows in zip(self._copies, places, values, strict=True):
                copy[place] = new_rows.to(copy.device)
            self._count(owner, [*local, *values])
            versions.append(version)
        return versions

    def push(self, rows: Sequence[Tensor], values: Sequence[Tensor], versions: Sequence[int]) -> None:
        """Add `values` (n, columns) to the rows (n,) of each table. `versions` (ranks,): the result of `pull`."""
        for owner in range(self._ranks):
            chosen = [ids % self._ranks == owner for ids in rows]
            local = [(ids[is_owned] // self._ranks).cpu() for ids, is_owned in zip(rows, chosen, strict=True)]
            owner_values = [each[is_owned].cpu() for each, is_owned in zip(values, chosen, strict=True)]
            if owner == self._rank:
                self._shard.push(local, owner_values, versions[owner])
            else:
                self._request(owner, _MessageKind.PUSH, local, _flatten(owner_values), version=versions[owner])
            self._count(owner, [*local, *owner_values])
        for owner in self._others:
            self._receive_integer(owner)
        self.traffic.steps += 1

    def take(self, finished: FinishedStep | None, *, stop: bool) -> int | None:
        """Return the next step for this rank from the queue on the first rank; see `StepQueue.take`."""
        if self._rank == 0:
            assert self.take_step is not None
            return self.take_step(finished, stop)
        last = finished or FinishedStep(_NO_STEP, 0, 0.0, 0, 0.0)
        self._request(0, _MessageKind.TAKE, [], torch.tensor([stop, *last], dtype=torch.float64))
        step = self._receive_integer(0)
        return None if step == _NO_STEP else step

    def gather(self) -> None:
        """Copy the latest values of all rows to this rank's copies of the tables.

        All ranks must call this method at the same time, when no push is under way.
        """
        for number, copy in enumerate(self._copies):
            for owner in range(self._ranks):
                part = copy[owner :: self._ranks].cpu().contiguous()
                if owner == self._rank:
                    part = self._shard.tables[number]
                dist.broadcast(part, src=owner)
                copy[owner :: self._ranks] = part.to(copy.device)

    def close(self) -> None:
        """Stop the threads of all ranks. All ranks must call this method at the same time."""
        for owner in self._others:
            self._request(owner, _MessageKind.END, [])
        for each in self._threads:
            each.join()

    @property
    def staleness(self) -> Staleness:
        """Staleness of the pushes to this rank."""
        return self._shard.staleness

    def _rows_of_owner(self, rows: Sequence[Tensor], owner: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return the rows that `owner` owns, as indices into each table, and as indices into the owner's shard."""
        owned = [ids[ids % self._ranks == owner] for ids in rows]
        return owned, [(ids // self._ranks).cpu() for ids in owned]

    def _count(self, owner: int, tensors: Sequence[Tensor]) -> None:
        """Count the bytes of `tensors`, which this rank exchanges with `owner`, unless this rank is the owner."""
        if owner != self._rank:
            self.traffic.bytes += sum(each.nbytes for each in tensors)

    def _request(
        self, owner: int, kind: _MessageKind, rows: Sequence[Tensor], values: Tensor | None = None, *, version: int = 0
    ) -> None:
        counts = list(map(len, rows)) or [0] * len(self._copies)
        messages = [torch.tensor([kind, version, *counts]), _flatten(rows), values]
        _send(self._requests, owner, *(each for each in messages if each is not None))

    def _receive_integer(self, owner: int) -> int:
        """Receive the integer at the start of an answer from `owner`."""
        return int(_receive(self._answers, owner, torch.empty(1, dtype=torch.int64)))

    def _receive_rows(self, group: Any, rank: int, counts: Sequence[int]) -> list[Tensor]:
        """Receive rows of each table from a rank. `counts`: the number of rows for each table."""
        columns = [copy.shape[1] for copy in self._copies]
        sizes = [count * width for count, width in zip(counts, columns, strict=True)]
        parts = torch.split(_receive(group, rank, torch.empty(sum(sizes))), sizes)
        return [part.view(-1, width) for part, width in zip(parts, columns, strict=True)]

    def _serve(self, requester: int) -> None:
        """Answer the requests of rank `requester` until that rank sends END or is lost.

        After an error of its own, this process exits, so that no other rank waits for an answer.
        """
        try:
            self._answer(requester)
        except Exception as error:
            if isinstance(error, RuntimeError) and "gloo" in str(error):
                return  # the next rank that sends a request to the lost requester will report the loss
            traceback.print_exc()
            os._exit(1)

    def _answer(self, requester: int) -> None:
        head = torch.empty(2 + len(self._copies), dtype=torch.int64)
        while _receive(self._requests, requester, head)[0] != _MessageKind.END:
            kind, version, *counts = head.tolist()
            if kind == _MessageKind.TAKE:
                message = _receive(self._requests, requester, torch.empty(6, dtype=torch.float64))
                stop, rank, step, loss, rows_done, seconds = message.tolist()
                last = None if rank == _NO_STEP else FinishedStep(int(rank), int(step), loss, int(rows_done), seconds)
                assert self.take_step is not None
                taken = self.take_step(last, bool(stop))
                answers = [torch.tensor([_NO_STEP if taken is None else taken])]
            else:
                ids = _receive(self._requests, requester, torch.empty(sum(counts), dtype=torch.int64))
                rows = torch.split(ids, counts)
                if kind == _MessageKind.PUSH:
                    self._shard.push(rows, self._receive_rows(self._requests, requester, counts), version)
                    answers = [torch.zeros(1, dtype=torch.int64)]
                else:
                    now, values = self._shard.pull(rows)
                    answers = [torch.tensor([now]), _flatten(values)]
            _send(self._answers, requester, *answers)


def _flatten(parts: Sequence[Tensor]) -> Tensor:
    """Return one flat tensor with the numbers of all `parts`."""
    return torch.cat([each.flatten() for each in parts]) if parts else torch.empty(0)


def _send(group: Any, rank: int, *messages: Tensor) -> None:
    """Send all messages that are not empty. Raises RuntimeError if the rank is lost, or if a message times out."""
    for each in messages:
        if len(each):
            group.send([each], rank, 0).wait(collectives.TIMEOUT)


def _receive(group: Any, rank: int, message: Tensor) -> Tensor:
    """Receive a message from a rank into the tensor `message`, unless that tensor is empty. Return the tensor.

    Raises RuntimeError if the rank is lost.
    """
    if len(message):
        group.recv([message], rank, 0).wait()
    return message
