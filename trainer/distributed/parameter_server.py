"""Tables of vectors of which every rank keeps some rows for all: rank r those with the numbers r, r + ranks, and so on.

A rank pulls the rows that it needs, and pushes what is to be added to them. The owner adds up what comes, a push at a
time, and counts the pushes: so each knows how many came between its pull and its push (`Staleness`).

Owners answer in threads, one for each rank that asks. What is asked is a pull, a push, or the next step of the dealer
(dealer.py), in messages whose size follows from their beginning (channel.py): whatever does not fit the tables ends the
connection. Do not use gloo's or NCCL's messages for this: both sides would have to know when the other sends.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock, Thread
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from common.errors import TrainingError
from trainer.distributed import channel, collectives
from trainer.distributed.channel import Connection, Connections
from trainer.distributed.dealer import Finished
from trainer.distributed.ranks import Ranks
from trainer.distributed.traffic import Traffic

_NUMBER = struct.Struct("<q")
_TAKE = struct.Struct("<??qdqd")
_NONE = -1

Take = Callable[[Finished | None, bool], int | None]
"""Takes the next step for a rank: `Dealer.take`, with whether the rank was asked to stop."""


class _Kind(IntEnum):
    PULL = 1
    PUSH = 2
    TAKE = 3


@dataclass(kw_only=True)
class Staleness:
    """How many pushes of others came between a pull and its push."""

    pushes: int = 0
    total: int = 0
    most: int = 0

    def add(self, between: int) -> None:
        self.pushes, self.total, self.most = self.pushes + 1, self.total + between, max(self.most, between)


class _Shard:
    """The rows of this rank, which one thread at a time reads or changes."""

    def __init__(self, tables: list[Tensor]) -> None:
        self.tables = tables
        self.staleness = Staleness()
        self._version = 0
        self._lock = Lock()

    def require(self, rows: Sequence[Tensor]) -> None:
        """Raise ValueError unless it has these rows of each table."""
        for own, table in zip(rows, self.tables, strict=True):
            if len(own) and not 0 <= int(own.min()) <= int(own.max()) < len(table):
                raise ValueError("a row is asked for that there is not")

    def pull(self, rows: Sequence[Tensor]) -> tuple[int, list[Tensor]]:
        """The number of pushes until now, and rows of each table."""
        with self._lock:
            return self._version, [table[own] for table, own in zip(self.tables, rows, strict=True)]

    def push(self, rows: Sequence[Tensor], values: Sequence[Tensor], pulled: int) -> None:
        """Add values to rows of each table, pulled after so many pushes."""
        with self._lock:
            for table, own, each in zip(self.tables, rows, values, strict=True):
                table.index_add_(0, own, each)
            self.staleness.add(self._version - pulled)
            self._version += 1


def common_secret(ranks: Ranks, *, trusts_network: bool) -> bytes:
    """What all ranks know and nobody else does: what their launcher handed to them, or, on a network that is trusted, a
    secret of the first rank. Raises TrainingError on all ranks if there is neither."""
    own = channel.launcher_secret()
    known, trusting = zip(*ranks.gather((own and channel.fingerprint(own), trusts_network)), strict=True)
    if own and len(set(known)) == 1:
        return own
    if not all(trusting) and ranks.world_size > 1:
        raise TrainingError(
            "--mode async on ranks that have no launcher in common: whoever finds their ports could change what is "
            "learnt; give --trust-network where nobody else uses the network between them, or take --mode average:K"
        )
    return str(ranks.broadcast(channel.new_secret())).encode()


@contextmanager
def joined(ranks: Ranks, secret: bytes) -> Iterator[Connections]:
    """Inside this block all ranks are connected with each other."""
    host = channel.own_address(here=secret == channel.launcher_secret())
    with collectives.convert_errors("at the start"):
        found = channel.connect(ranks.rank, ranks.world_size, secret, host=host, gather=ranks.gather)
    try:
        yield found
    finally:
        found.close()


class ParameterServer:
    """The rows of all ranks, as one of them uses them. All ranks create it at once, with equal tables."""

    def __init__(self, tables: Sequence[Tensor], connections: Connections) -> None:
        """`tables` (rows, columns) of float32: this rank's copies of the whole tables, in which pulled rows are
        written."""
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._copies = list(tables)
        self.traffic = Traffic()
        """Also what is sent to this rank: each byte is counted by the rank that pulls or pushes it."""
        self._shard = _Shard([each[self._rank :: self._ranks].cpu().clone() for each in tables])
        self._asked = connections.asked
        self._request = struct.Struct(f"<Bq{len(tables)}I")
        self.deal: Take | None = None
        """What deals the steps, on the first rank."""
        for each in connections.asking.values():
            Thread(target=self._answer, args=(each,), daemon=True).start()

    def pull(self, rows: Sequence[Tensor]) -> list[int]:
        """Write the newest rows (n,) of each table to this rank's copies; returns each owner's number of pushes."""
        parts = [self._of_owner(rows, owner) for owner in range(self._ranks)]
        for owner, connection in self._asked.items():
            self._send(connection, _Kind.PULL, parts[owner][1])
        answers = [self._shard.pull(local) if owner == self._rank else None for owner, (_, local) in enumerate(parts)]
        for owner, connection in self._asked.items():
            version, values = bytearray(_NUMBER.size), self._room(list(map(len, parts[owner][1])))
            connection.receive_into(version, *map(_bytes, values))
            answers[owner] = *_NUMBER.unpack(version), values
        found = [each for each in answers if each is not None]
        for (_, values), (places, _) in zip(found, parts, strict=True):
            for copy, place, own in zip(self._copies, places, values, strict=True):
                copy[place] = own.to(copy.device)
        self._count([[*local, *values] for (_, local), (_, values) in zip(parts, found, strict=True)])
        return [version for version, _ in found]

    def push(self, rows: Sequence[Tensor], values: Sequence[Tensor], versions: Sequence[int]) -> None:
        """Add `values` (n, columns) to the rows (n,) of each table, pulled at these `versions`."""
        asked = []
        for owner in range(self._ranks):
            local, mine = [], []
            for ids, each in zip(rows, values, strict=True):
                chosen = ids % self._ranks == owner
                local.append((ids[chosen] // self._ranks).cpu())
                mine.append(each[chosen].cpu())
            asked.append((local, mine))
        for owner, connection in self._asked.items():
            self._send(connection, _Kind.PUSH, *asked[owner], version=versions[owner])
        self._shard.push(*asked[self._rank], versions[self._rank])
        for connection in self._asked.values():
            connection.receive(_NUMBER)
        self._count([[*local, *mine] for local, mine in asked])
        self.traffic.steps += 1

    def take(self, finished: Finished | None, *, stop: bool) -> int | None:
        """The next step for this rank, from the first one, which deals them; see `Dealer.take`."""
        if self._rank == 0:
            assert self.deal is not None
            return self.deal(finished, stop)
        last = (finished.step, finished.loss, finished.rows, finished.seconds) if finished else (0, 0.0, 0, 0.0)
        self._send(self._asked[0], _Kind.TAKE, [], more=_TAKE.pack(stop, finished is not None, *last))
        (step,) = self._asked[0].receive(_NUMBER)
        return None if step == _NONE else int(step)

    def gather(self) -> None:
        """Make this rank's copies equal to the tables. All ranks call it at once, when no push is under way."""
        for number, copy in enumerate(self._copies):
            for owner in range(self._ranks):
                part = copy[owner :: self._ranks].cpu().contiguous()
                if owner == self._rank:
                    part = self._shard.tables[number]
                dist.broadcast(part, src=owner)
                copy[owner :: self._ranks] = part.to(copy.device)

    @property
    def staleness(self) -> Staleness:
        """That of the pushes to this rank."""
        return self._shard.staleness

    def _of_owner(self, rows: Sequence[Tensor], owner: int) -> tuple[list[Tensor], list[Tensor]]:
        """Of the rows of each table those of this owner, by their numbers in the table, and in its shard."""
        own = [ids[ids % self._ranks == owner] for ids in rows]
        return own, [(ids // self._ranks).cpu() for ids in own]

    def _count(self, of_owners: Sequence[Sequence[Tensor]]) -> None:
        """Count the tensors that go to each owner, or come from it."""
        self.traffic.bytes += sum(
            each.nbytes for owner, tensors in enumerate(of_owners) if owner != self._rank for each in tensors
        )

    def _send(
        self,
        connection: Connection,
        kind: _Kind,
        rows: Sequence[Tensor],
        values: Sequence[Tensor] = (),
        *,
        version: int = 0,
        more: bytes = b"",
    ) -> None:
        counts = list(map(len, rows)) or [0] * len(self._copies)
        connection.send(self._request.pack(kind, version, *counts), *map(_bytes, (*rows, *values)), more)

    def _room(self, counts: Sequence[int]) -> list[Tensor]:
        """Of each table so many rows, to be filled."""
        return [torch.empty((count, copy.shape[1])) for count, copy in zip(counts, self._copies, strict=True)]

    def _answer(self, connection: Connection) -> None:
        """Answer what another rank asks, until it is gone, or asks what no rank does."""
        try:
            while True:
                self._answer_one(connection, *connection.receive(self._request))
        except (RuntimeError, ValueError):
            pass  # whoever waits at the other end notices that the connection has ended
        finally:
            connection.close()

    def _answer_one(self, connection: Connection, kind: int, version: int, *counts: int) -> None:
        if kind == _Kind.TAKE:
            connection.send(_NUMBER.pack(self._taken(connection.rank, *connection.receive(_TAKE))))
            return
        if any(count > len(table) for count, table in zip(counts, self._shard.tables, strict=True)):
            raise ValueError("more rows are asked for than there are")
        rows = [torch.empty(count, dtype=torch.int64) for count in counts]
        if kind == _Kind.PULL:
            connection.receive_into(*map(_bytes, rows))
            self._shard.require(rows)
            now, values = self._shard.pull(rows)
            connection.send(_NUMBER.pack(now), *map(_bytes, values))
        elif kind == _Kind.PUSH:
            values = self._room(counts)
            connection.receive_into(*map(_bytes, (*rows, *values)))
            self._shard.require(rows)
            self._shard.push(rows, values, version)
            connection.send(_NUMBER.pack(0))
        else:
            raise ValueError(f"there is no request {kind}")

    def _taken(self, rank: int, stop: bool, has_finished: bool, step: int, loss: float, rows: int, took: float) -> int:
        if self.deal is None:
            raise ValueError("this rank does not deal")
        last = Finished(rank=rank, step=step, loss=loss, rows=rows, seconds=took) if has_finished else None
        found = self.deal(last, stop)
        return _NONE if found is None else found


def _bytes(tensor: Tensor) -> Any:
    """The bytes of a tensor in a CPU's memory, as a connection takes them."""
    return tensor.contiguous().view(-1).numpy().view("u1").data
