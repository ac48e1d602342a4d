"""Process group of a run: the rank and the device of this process, and errors and stop requests that all ranks share.

If one rank fails, the other ranks wait in a collective until it times out. So all code that can fail before the first
step runs inside `agreement()`. After such a block, either all ranks continue, or none does.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from common.cores import cores
from common.display import plural
from common.errors import DataError, TrainingError
from trainer import devices
from trainer.computing.threads import Threads
from trainer.config import NEEDS_GPU
from trainer.distributed import collectives, failures
from trainer.rank_errors import LostError


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Rank and device of this process among `world_size` ranks, and collectives of all ranks."""

    rank: int
    world_size: int
    device: torch.device
    local_size: int = 1
    """Number of ranks on this machine."""
    threads: Threads
    """Threads that compute on a CPU. With a GPU, this is only the main thread."""
    loading_group: dist.ProcessGroup | None = None
    """Second process group of all ranks, with a time-out that suffices for reading a dataset."""

    @property
    def is_first(self) -> bool:
        """True if this rank writes files and reports to the user."""
        return self.rank == 0

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"

    @contextmanager
    def agreement(self, *, loading: bool = False) -> Iterator[None]:
        """If any rank has an error in this block, raise it on all ranks.

        `loading`: wait up to collectives.LOADING_TIMEOUT for the slowest rank, instead of collectives.TIMEOUT.
        """
        failure: tuple[str, str] | None = None
        try:
            yield
        except (TrainingError, DataError) as error:
            failure = failures.rank_name(self.rank), str(error)
        errors = self.gather(failure, self.loading_group if loading else None)
        for rank, failed in enumerate(errors):
            if failed is not None:
                who, sentence = failed
                raise TrainingError(sentence if rank == 0 else f"{who}: {sentence}")

    def gather(self, value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
        """Return the `value` of each rank, in rank order.

        `group`: a process group of all ranks with a different time-out (default: the default group).
        """
        with collectives.convert_errors("between two steps"):
            return collectives.gather(value, self.world_size, group)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's `value` on every rank."""
        with collectives.convert_errors("between two steps"):
            return collectives.broadcast(value, self.rank)


@contextmanager
def batch_scheduling() -> Iterator[None]:
    """Use Linux's batch scheduling for threads that are started in this block.

    When such a thread wakes, it does not preempt another thread. Gloo's socket thread (gloo/transport/tcp/pair.cc,
    `handleEvents`) wakes and spins on a lock. If it preempted the thread that holds the lock, it would spin until its
    time slice ends. With hardly more cores than ranks, that costs some 4 ms, several times per all-reduce.

    Do not use this block for compute threads: a thread that waits for another thread would lose a time slice, too.
    """
    _schedule(os.SCHED_BATCH)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER)


def _schedule(policy: int) -> None:
    with suppress(OSError):  # a sandbox can forbid the call; ranks are then slower
        os.sched_setscheduler(0, policy, os.sched_param(0))


@contextmanager
def join_process_group(threads: int | None) -> Iterator[Ranks]:
    """Join the process group that torchrun's environment variables describe; without torchrun, a group of one rank.

    `threads`: the number of CPU threads of a rank. If None, the ranks on a machine share the cores of this process.
    Raises TrainingError if this machine has too few GPUs, or if the other ranks are not found.

    After an error, the process group of GPUs is not destroyed, because its destruction would wait for collectives that
    never complete. The process must then exit without cleanup.
    """
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local_rank, local_size = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    device, backend = torch.device("cpu"), "gloo"
    if torch.cuda.is_available():
        if local_size > torch.cuda.device_count():
            raise TrainingError(
                f"{local_size} ranks were started on a machine with {plural(torch.cuda.device_count(), 'GPU')}; "
                "start one rank per GPU, or hide the GPUs with CUDA_VISIBLE_DEVICES="
            )
        device, backend = torch.device("cuda", local_rank), "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(device)
        # With TF32, newer GPUs round float32 products to 10 bits, but older ones do not: gradients would differ between
        # GPUs, and the result would depend on the split.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    elif os.environ.get(NEEDS_GPU):
        raise TrainingError(f"{failures.rank_name(rank)}: {devices.no_gpu_message()}")
    store = _rendezvous(rank)  # before batch scheduling, because the store's thread must answer immediately
    failed = True
    with batch_scheduling() if device.type == "cpu" else nullcontext():
        dist.init_process_group(backend, timeout=collectives.TIMEOUT, store=store, rank=rank, world_size=size)
        loading_group = dist.new_group(backend="gloo", timeout=collectives.LOADING_TIMEOUT)
    try:
        ranks = Ranks(rank=rank, world_size=size, device=device, threads=Threads(1), loading_group=loading_group)
        here = ranks.gather(_machine()).count(_machine())
        torch.set_num_threads(1)
        yield replace(
            ranks,
            local_size=here,
            threads=Threads(1 if device.type == "cuda" else threads or max(1, cores() // here)),
        )
        failed = False
    finally:
        if device.type == "cpu" or not failed:
            dist.destroy_process_group()


def _rendezvous(rank: int) -> Any:
    """Return the store through which the ranks find each other's addresses."""
    if "RANK" not in os.environ:
        return dist.HashStore()  # type: ignore[attr-defined]
    try:
        store, *_ = next(dist.rendezvous("env://", timeout=collectives.RENDEZVOUS_TIMEOUT))  # type: ignore[attr-defined]
        store.set_timeout(collectives.RENDEZVOUS_TIMEOUT)
    except dist.DistError as error:
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        sentence = collectives.rendezvous_message(failures.rank_name(rank), place, error)
        raise (LostError(sentence, "", "") if failures.previous_failure() else TrainingError(sentence)) from error
    return store


def _machine() -> str:
    """Return the identifier of this machine's running kernel, which is the same in all containers."""
    return Path("/proc/sys/kernel/random/boot_id").read_text()


class StopSignals:
    """Context in which SIGTERM and SIGINT do not terminate the process, but set `requested`."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> "StopSignals":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
