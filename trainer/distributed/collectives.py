"""Collectives of Python values, and the handling of failed collectives.

A value is a number, a string, None, a tensor, or a tuple, list, set or dictionary of these. Do not use torch's
`all_gather_object` and `broadcast_object_list`: they unpickle received bytes, so a peer could execute any code, and
gloo does not authenticate peers. `torch.load` with `weights_only` accepts only the types named above.

A collective fails if other ranks are lost. Gloo raises an error as soon as a connection breaks. An NCCL collective is
work on the GPU, and never completes if a peer is lost. Do not simply wait for it: torch's watchdog thread would kill
the process without a message that a user understands. So `wait` polls for the error that the watchdog detects some
seconds before it kills the process.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.distributed import failures
from trainer.distributed.memory import is_full
from trainer.rank_errors import LostError

TIMEOUT = timedelta(minutes=10)
"""Time-out of a collective with an unresponsive peer. Rank 0 must write a checkpoint within this time."""
LOADING_TIMEOUT = timedelta(hours=6)
"""Time for which a rank that has read the dataset waits for the slowest rank. A rank might have to unpack the dataset,
or read it from a slow shared file system. A process that dies is noticed earlier, because its connections break."""
RENDEZVOUS_TIMEOUT = timedelta(minutes=5)
"""Time for which a rank or a machine waits for the other ranks or machines at the start."""

_PAUSE_SECONDS = 0.0002


def gather(value: Any, size: int, group: dist.ProcessGroup | None) -> list[Any]:
    """Return the `value` of each of the `size` ranks, in rank order. Raises RuntimeError if other ranks are lost."""
    packed = _packed(value)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([len(packed)]), group)
    longest = int(max(lengths))
    arrived = [packed.new_empty(longest) for _ in range(size)]
    dist.all_gather(arrived, torch.cat((packed, packed.new_zeros(longest - len(packed)))), group)
    return [_unpacked(content[: int(length)]) for content, length in zip(arrived, lengths, strict=True)]


def broadcast(value: Any, rank: int) -> Any:
    """Return rank 0's `value` on every rank. Raises RuntimeError if other ranks are lost."""
    packed = _packed(value) if rank == 0 else torch.empty(0, dtype=torch.uint8)
    length = torch.tensor([len(packed)])
    dist.broadcast(length, src=0)
    content = packed if rank == 0 else packed.new_empty(int(length))
    dist.broadcast(content, src=0)
    return _unpacked(content)


@contextmanager
def convert_errors(where: str) -> Iterator[None]:
    """Convert the failure of a collective in this block to a LostError. `where`: the position, such as `at step 5`."""
    try:
        yield
    except RuntimeError as error:
        if is_full(error) or str(error).startswith("CUDA error"):
            raise  # not a lost rank: an error of this rank alone
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        what, then = (
            f"{failures.rank_name(dist.get_rank())} lost the other ranks",
            f" ({reason}); restart with --resume",
        )
        raise LostError(what, where, then) from error


def rendezvous_message(who: str, place: str, error: Exception) -> str:
    """Return the error message for a rank or machine `who` that did not meet the other ranks at `place` (HOST:PORT)."""
    reason = next(iter((str(error.__cause__ or error)).splitlines()), type(error).__name__)
    if "EADDRINUSE" in str(error) or "address already in use" in str(error).lower():
        return (
            f"{who} cannot listen at {place}, because another program listens there; start all ranks again with a "
            "different --master-port"
        )
    return (
        f"{who} did not meet the other ranks at {place} ({reason}); start all machines at once, with the same "
        "--master-addr and --master-port, and check that they can reach this address"
    )


def backend_of(device: torch.device) -> Any:
    """Return the backend, such as ProcessGroupNCCL, that executes collectives of the default process group on this
    GPU."""
    return dist.distributed_c10d._get_default_group()._get_backend(device)


def wait(arrival: torch.cuda.Event, backend: Any) -> None:
    """Wait until all work before the event `arrival` is done. Raises RuntimeError if `backend` has an error."""
    while not arrival.query():  # type: ignore[no-untyped-call]
        error = backend.get_error()
        if error.name != "SUCCESS":
            raise RuntimeError(f"NCCL: {error.name.lower().replace('_', ' ')}")
        time.sleep(_PAUSE_SECONDS)


def _packed(value: Any) -> Tensor:
    content = BytesIO()
    torch.save(value, content)
    return torch.frombuffer(content.getbuffer(), dtype=torch.uint8)


def _unpacked(content: Tensor) -> Any:
    return torch.load(BytesIO(content.numpy().tobytes()), map_location="cpu", weights_only=True)
