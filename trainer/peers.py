"""The other ranks, when they are gone: how a rank notices, and the sentence that it has for its user.

Gloo raises as soon as a connection breaks. A collective of NCCL is work on the GPU, and with a peer gone it never ends:
the easy mistake is to wait for it plainly, until torch's watchdog thread kills the process without a word that a user
understands. So the wait here asks what the watchdog has found, which leaves some seconds before it kills.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist

from trainer.errors import TrainingError

TIMEOUT = timedelta(minutes=10)
"""Without a sign of life from a peer for so long, a collective fails. Ranks may differ by this much in reading the
dataset, and rank 0 may take this long to write a checkpoint."""

_PAUSE_SECONDS = 0.0002


class Arrival(Protocol):
    """An event in a GPU's queue of work, such as torch.cuda.Event."""

    def query(self) -> bool:
        """Whether all work before it is done."""
        ...


class Health(Protocol):
    """What carries out collectives, and knows when one has failed, such as torch's ProcessGroupNCCL."""

    def get_error(self) -> Any:
        """A member of torch's ErrorType."""
        ...


@contextmanager
def needed(where: str) -> Iterator[None]:
    """Turn the failure of a collective inside this block into a TrainingError that says so."""
    try:
        yield
    except RuntimeError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise TrainingError(
            f"rank {dist.get_rank()} lost the other ranks {where} ({reason}); start again with --resume"
        ) from error


def health(device: torch.device) -> Health:
    """Of the default group's collectives on this GPU."""
    found: Health = dist.distributed_c10d._get_default_group()._get_backend(device)
    return found


def wait(arrival: Arrival, of: Health) -> None:
    """Wait until all work before `arrival` is done. Raises RuntimeError when it never will be."""
    while not arrival.query():
        error = of.get_error()
        if error.name != "SUCCESS":
            raise RuntimeError(f"NCCL: {error.name.lower().replace('_', ' ')}")
        time.sleep(_PAUSE_SECONDS)
