"""The process group: which rank this process is, its device, and how ranks fail and stop together.

An error on one rank alone makes the others wait in a collective until a time-out. So whatever can fail before the first
step is done inside `agreement()`: after it all ranks continue, or none does.
"""

import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

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
    """This process among `world_size` ranks."""

    rank: int
    world_size: int
    device: torch.device
    local_size: int = 1
    """The number of ranks on this machine."""
    threads: Threads
    """The threads that compute on a CPU; on a GPU only the main thread."""
    loading_group: dist.ProcessGroup | None = None
    """A second group of all ranks, with a time-out as long as reading a dataset may take."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes files and reports to the user."""
        return self.rank == 0

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"

    @contextmanager
    def agreement(self, *, loading: bool = False) -> Iterator[None]:
        """Convert an error of any rank inside this block to the same error on all ranks.

        `loading`: allow ranks to differ by collectives.LOADING_TIMEOUT in the time that they take, not only by
        collectives.TIMEOUT.
        """
        mine: tuple[str, str] | None = None
        try:
            yield
        except (TrainingError, DataError) as error:
            mine = failures.rank_name(self.rank), str(error)
        errors = self.gather(mine, self.loading_group if loading else None)
        for rank, failed in enumerate(errors):
            if failed is not None:
                who, sentence = failed
                raise TrainingError(sentence if rank == 0 else f"{who}: {sentence}")

    def gather(self, mine: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
        """The value that each rank passed, in the order of ranks; `group`: a group of all ranks with another
        time-out."""
        with collectives.convert_errors("between two steps"):
            return collectives.gather(mine, self.world_size, group)

    def broadcast(self, value: Any) -> Any:
        """The value that rank 0 passed."""
        with collectives.convert_errors("between two steps"):
            return collectives.broadcast(value, self.rank)


@contextmanager
def batch_scheduling() -> Iterator[None]:
    """Start threads inside this block under Linux's batch scheduling, so that they take no core from another thread
    when they wake.

    Gloo's thread for sockets (gloo/transport/tcp/pair.cc, `handleEvents`) wakes, tries a lock, and tries it again and
    again. If it took the core of the thread that holds the lock, it does so until its time slice ends: some 4 ms,
    several times per all-reduce, if there are hardly more cores than ranks. Threads that compute are excluded: if other
    programs run, a thread that waits for another would wait for a time slice, too.
    """
    _schedule(getattr(os, "SCHED_BATCH", None))
    try:
        yield
    finally:
        _schedule(getattr(os, "SCHED_OTHER", None))


def _schedule(policy: int | None) -> None:
    if policy is not None:
        with suppress(OSError):  # a sandbox may forbid it; ranks are then slower
            os.sched_setscheduler(0, policy, os.sched_param(0))


@contextmanager
def join_process_group(threads: int | None) -> Iterator[Ranks]:
    """Join the process group of torchrun's environment; without torchrun, a group of one.

    `threads` of a rank; None: the cores that this process may use, shared among the ranks on its machine, whichever
    torchrun started them.

    After an error the group on GPUs is left as it is, because destroying it would wait for collectives that never end:
    the process must then end without cleaning up. Raises TrainingError if this machine has too few GPUs, or if
    the other ranks are not found.
    """
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local_rank, local_size = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    device, backend = torch.device("cpu"), "gloo"
    if torch.cuda.is_available():
        if local_size > torch.cuda.device_count():
            raise TrainingError(
                f"{local_size} ranks were started on a machine with {plural(torch.cuda.device_count(), 'GPU')}; "
                "start one a GPU, or hide the GPUs by CUDA_VISIBLE_DEVICES="
            )
        device, backend = torch.device("cuda", local_rank), "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(device)
        # With TF32, newer GPUs round float32 products to 10 bits, and older ones do not: different GPUs would compute
        # different gradients, and the result would depend on the split.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    elif os.environ.get(NEEDS_GPU):
        raise TrainingError(f"{failures.rank_name(rank)}: {devices.missing()}")
    store = _rendezvous(rank)  # before batch scheduling: the store's thread must answer at once
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
    """The store in which the ranks find each other's addresses."""
    if "RANK" not in os.environ:
        return dist.HashStore()  # type: ignore[attr-defined]
    try:
        store, *_ = next(dist.rendezvous("env://", timeout=collectives.MEETING_TIMEOUT))  # type: ignore[attr-defined]
        store.set_timeout(collectives.MEETING_TIMEOUT)
    except dist.DistError as error:
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        sentence = collectives.rendezvous_message(failures.rank_name(rank), place, error)
        raise (LostError(sentence, "", "") if failures.previous_failure() else TrainingError(sentence)) from error
    return store


def _machine() -> str:
    """An identifier of this machine, the same for all processes of one running kernel, even if each has its own host
    name."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text() if boot.exists() else platform.node()


class Stop(Protocol):
    @property
    def made(self) -> bool: ...


class StopRequest:
    """Notes a SIGTERM or SIGINT, instead of ending the process."""

    def __init__(self) -> None:
        self.made = False

    def __enter__(self) -> "StopRequest":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.made = True
