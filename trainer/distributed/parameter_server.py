"""Tables of vectors of which every rank keeps some rows for all: rank r those with the numbers r, r + ranks, and so on.

A rank pulls the rows that it needs, and pushes what is to be added to them. The owner adds up what comes, a push at a
time, and counts the pushes: so each knows how many came between its pull and its push (`Staleness`).

It is built on torch.distributed.rpc, which calls functions of other ranks in threads there, and carries tensors without
copies of its own. Do not use gloo's or NCCL's messages for this: both sides would have to know when the other sends.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed import rpc

from trainer.distributed import collectives
from trainer.distributed.traffic import Traffic

_DEVICE, _GET_ADDRESS = "TP_SOCKET_IFNAME", 0x8915
"""torch.distributed.rpc listens at the address of this device. Without it, at the one that the name of the machine has,
which may be one that other nodes do not reach."""
_THREADS_BESIDE = 4
"""Threads for pulls and pushes, besides one for each rank that waits for a step."""

_TRANSPORTS = ["uv"]
"""Sockets, between ranks of one machine, too: the thread for shared memory never sleeps, so it takes a part of the core
on which a rank computes, half of one where ranks have a core each."""


@dataclass(kw_only=True)
class Staleness:
    """How many pushes of others came between a pull and its push."""

    pushes: int = 0
    total: int = 0
    most: int = 0

    def add(self, between: int) -> None:
        self.pushes, self.total, self.most = self.pushes + 1, self.total + between, max(self.most, between)


@dataclass
class _Shard:
    """The rows of this rank."""

    tables: list[Tensor]
    version: int = 0
    staleness: Staleness = field(default_factory=Staleness)
    lock: Lock = field(default_factory=Lock)


_shard: _Shard | None = None
_answer: Callable[..., Any] | None = None


@contextmanager
def joined() -> Iterator[None]:
    """Inside this block all ranks of the default group can call each other."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        yield
        return
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=size + _THREADS_BESIDE,
        rpc_timeout=collectives.TIMEOUT.total_seconds(),
        init_method="env://",
        _transports=_TRANSPORTS,
    )
    if device := os.environ.get("GLOO_SOCKET_IFNAME") or _device_to(os.environ["MASTER_ADDR"]):
        os.environ.setdefault(_DEVICE, device)
    with collectives.convert_errors("at the start"):
        rpc.init_rpc(_name(rank), rank=rank, world_size=size, rpc_backend_options=options)  # type: ignore[no-untyped-call]
    try:
        yield
    except BaseException:
        rpc.shutdown(graceful=False)
        raise
    rpc.shutdown()


class ParameterServer:
    """The rows of all ranks, as one of them uses them. All ranks create it at once, with equal tables."""

    def __init__(self, tables: Sequence[Tensor]) -> None:
        """`tables` (rows, columns): this rank's copies of the whole tables, in which pulled rows are written."""
        global _shard
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._copies = list(tables)
        self.traffic = Traffic()
        """Also what is sent to this rank: each byte is counted by the rank that pulls or pushes it."""
        _shard = _Shard([each[self._rank :: self._ranks].cpu().clone() for each in tables])

    def pull(self, rows: Sequence[Tensor]) -> list[int]:
        """Write the newest rows (n,) of each table to this rank's copies; returns each owner's number of pushes."""
        parts = [self._of_owner(rows, owner) for owner in range(self._ranks)]
        answers = self._ask(_pull, [(local,) for _, local in parts])
        versions = []
        for (version, values), (places, _) in zip(answers, parts, strict=True):
            versions.append(version)
            for copy, place, own in zip(self._copies, places, values, strict=True):
                copy[place] = own.to(copy.device)
        self._count([[*local, *values] for (_, local), (_, values) in zip(parts, answers, strict=True)])
        return versions

    def push(self, rows: Sequence[Tensor], values: Sequence[Tensor], versions: Sequence[int]) -> None:
        """Add `values` (n, columns) to the rows (n,) of each table, pulled at these `versions`."""
        asked = []
        for owner, version in enumerate(versions):
            local, mine = [], []
            for ids, each in zip(rows, values, strict=True):
                chosen = ids % self._ranks == owner
                local.append((ids[chosen] // self._ranks).cpu())
                mine.append(each[chosen].cpu())
            asked.append((local, mine, version))
        self._ask(_push, asked)
        self._count([[*local, *mine] for local, mine, _ in asked])
        self.traffic.steps += 1

    def gather(self) -> None:
        """Make this rank's copies equal to the tables. All ranks call it at once, when no push is under way."""
        assert _shard is not None
        for number, copy in enumerate(self._copies):
            for owner in range(self._ranks):
                part = copy[owner :: self._ranks].cpu().contiguous()
                if owner == self._rank:
                    part = _shard.tables[number]
                dist.broadcast(part, src=owner)
                copy[owner :: self._ranks] = part.to(copy.device)

    @property
    def staleness(self) -> Staleness:
        """That of the pushes to this rank."""
        assert _shard is not None
        return _shard.staleness

    def _of_owner(self, rows: Sequence[Tensor], owner: int) -> tuple[list[Tensor], list[Tensor]]:
        """Of the rows of each table those of this owner, by their numbers in the table, and in its shard."""
        own = [ids[ids % self._ranks == owner] for ids in rows]
        return own, [(ids // self._ranks).cpu() for ids in own]

    def _count(self, of_owners: Sequence[Sequence[Tensor]]) -> None:
        """Count the tensors that go to each owner, or come from it."""
        self.traffic.bytes += sum(
            each.nbytes for owner, tensors in enumerate(of_owners) if owner != self._rank for each in tensors
        )

    def _ask(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function of each owner with its arguments; returns what they return."""
        found = [
            rpc.rpc_async(_name(owner), function, args=own) if owner != self._rank else None
            for owner, own in enumerate(arguments)
        ]
        mine = function(*arguments[self._rank])
        return [each.wait() if each is not None else mine for each in found]


def _device_to(host: str) -> str:
    """The network device by which this machine reaches a host; empty where none has an IPv4 address of its own."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
            found.connect((host, 1))  # sends nothing
            own = socket.inet_aton(found.getsockname()[0])
            for _, name in socket.if_nameindex():
                with suppress(OSError):  # a device without an address
                    if fcntl.ioctl(found, _GET_ADDRESS, struct.pack("256s", name.encode()))[20:24] == own:
                        return name
    except OSError:
        pass
    return ""


def answer_by(function: Callable[..., Any] | None) -> None:
    """Let this rank answer `ask_first` by this function."""
    global _answer
    _answer = function


def ask_first(*arguments: Any) -> Any:
    """What the first rank answers to these arguments."""
    return _answered(*arguments) if dist.get_rank() == 0 else rpc.rpc_sync(_name(0), _answered, args=arguments)


def _answered(*arguments: Any) -> Any:
    assert _answer is not None
    return _answer(*arguments)


def _pull(rows: Sequence[Tensor]) -> tuple[int, list[Tensor]]:
    assert _shard is not None
    with _shard.lock:
        return _shard.version, [table[own] for table, own in zip(_shard.tables, rows, strict=True)]


def _push(rows: Sequence[Tensor], values: Sequence[Tensor], pulled: int) -> None:
    assert _shard is not None
    with _shard.lock:
        for table, own, each in zip(_shard.tables, rows, values, strict=True):
            table.index_add_(0, own, each)
        _shard.staleness.add(_shard.version - pulled)
        _shard.version += 1


def _name(rank: int) -> str:
    return f"rank-{rank}"
