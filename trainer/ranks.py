"""The process group: who this process is, what it computes on, and how ranks fail and stop together.

The easy mistake is an error on one rank alone: the others then wait in a collective until a time-out. What can
fail before the first step is done inside `agreement()`, after which all ranks go on or none does.
"""

import os
import platform
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from corpus.display import plural
from corpus.errors import DataError
from trainer import collectives, devices, faults
from trainer.claims import Store
from trainer.config import NEEDS_GPU
from trainer.errors import LostError, TrainingError
from trainer.threads import Threads, cores

_ERROR_FILE = re.compile(r"(.+)/attempt_\d+/\d+/error\.json")
"""Of a rank, in the folder of its torchrun (torch/distributed/elastic/multiprocessing/api.py, `DefaultLogsSpecs`)."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """This process among `size` ranks."""

    rank: int
    size: int
    device: torch.device
    here: int = 1
    """How many of the ranks are on this machine."""
    threads: Threads
    """Those that compute on a CPU; on a GPU this one alone."""
    store: Store
    """Where all ranks can count."""
    loading_group: dist.ProcessGroup | None = None
    """All ranks once more, to wait for each other as long as reading a dataset may take."""
    launchers: frozenset[str] = frozenset()
    """The torchrun processes that started the ranks, one a machine; none for a rank that was started without."""

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and speaks to the user."""
        return self.rank == 0

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"

    @contextmanager
    def agreement(self, *, loading: bool = False) -> Iterator[None]:
        """Turn an error of any rank inside this block into the same error on all ranks.

        `loading`: ranks may differ by collectives.LOADING_TIMEOUT, and not by collectives.TIMEOUT alone, in the time
        that they take for it.
        """
        mine: tuple[str, str] | None = None
        try:
            yield
        except (TrainingError, DataError) as error:
            mine = faults.who(self.rank), str(error)
        told = self.gather(mine, self.loading_group if loading else None)
        for rank, failed in enumerate(told):
            if failed is not None:
                who, sentence = failed
                raise TrainingError(sentence if rank == 0 else f"{who}: {sentence}")

    def gather(self, mine: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
        """What each rank passed, in the order of ranks; `group`, of all ranks, has another time-out."""
        everyone: list[Any] = [None] * self.size
        with collectives.reporting("between two steps"):
            dist.all_gather_object(everyone, mine, group)
        return everyone

    def from_first(self, value: Any) -> Any:
        """What rank 0 passed."""
        box = [value]
        with collectives.reporting("between two steps"):
            dist.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def threads_as_batch() -> Iterator[None]:
    """Have threads that this one starts inside this block take no core from another when they wake.

    Gloo's thread for sockets (gloo/transport/tcp/pair.cc, `handleEvents`) wakes, tries a lock, and tries it again and
    again. Where it took the core of the thread that holds the lock, it does so until its time slice ends: some 4 ms,
    several times an all-reduce, if there are hardly more cores than ranks. Threads that compute are not among them:
    where other programs run, one that waits for another's part would wait for a time slice, too. Linux alone schedules
    so.
    """
    _schedule(getattr(os, "SCHED_BATCH", None))
    try:
        yield
    finally:
        _schedule(getattr(os, "SCHED_OTHER", None))


def _schedule(policy: int | None) -> None:
    if policy is not None:
        with suppress(OSError):  # a sandbox may forbid it, and then ranks are slower
            os.sched_setscheduler(0, policy, os.sched_param(0))


@contextmanager
def join(threads: int | None) -> Iterator[Ranks]:
    """Join the process group that torchrun's environment describes; without torchrun, a group of one.

    `threads` of a rank; None: the cores that this process may use, shared among the ranks on its machine, whichever
    torchrun started them.

    After an error the group on GPUs is left as it is, because its end would wait for collectives that never end: the
    process must end then, without cleaning up. Raises TrainingError when this machine has too few GPUs, and when the
    other ranks are not found.
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
        # Newer GPUs would round float32 products to 10 bits where older ones cannot: ranks of different kinds would
        # compute different gradients, and a result would depend on how the rows were split.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    elif os.environ.get(NEEDS_GPU):
        raise TrainingError(f"{faults.who(rank)}: {devices.missing()}")
    store = _met(rank)  # its thread answers the others at once: it is none of those that are scheduled next
    failed = True
    with threads_as_batch() if device.type == "cpu" else nullcontext():
        dist.init_process_group(backend, timeout=collectives.TIMEOUT, store=store, rank=rank, world_size=size)
        loading_group = dist.new_group(backend="gloo", timeout=collectives.LOADING_TIMEOUT)
    try:
        ranks = Ranks(rank=rank, size=size, device=device, threads=Threads(1), store=store, loading_group=loading_group)
        machines, launchers = zip(*ranks.gather((_machine(), _launcher())), strict=True)
        here = machines.count(machines[rank])
        torch.set_num_threads(1)
        yield replace(
            ranks,
            here=here,
            threads=Threads(1 if device.type == "cuda" else threads or max(1, cores() // here)),
            launchers=frozenset(filter(None, launchers)),
        )
        failed = False
    finally:
        if device.type == "cpu" or not failed:
            dist.destroy_process_group()


def _met(rank: int) -> Any:
    """The store, as torch calls it, where the ranks find each other's addresses."""
    if "RANK" not in os.environ:
        return dist.HashStore()  # type: ignore[attr-defined]
    try:
        store, *_ = next(dist.rendezvous("env://", timeout=collectives.MEETING_TIMEOUT))  # type: ignore[attr-defined]
        store.set_timeout(collectives.MEETING_TIMEOUT)
    except dist.DistError as error:
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        sentence = collectives.no_rendezvous(faults.who(rank), place, error)
        raise (LostError(sentence, "", "") if faults.lost_before() else TrainingError(sentence)) from error
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return store  # of these ranks alone, whose machines need not have started them equally often
    # Torchrun keeps its store over restarts: ranks would read the addresses of those before them.
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"start-{restart}", store)  # type: ignore[attr-defined]


def _launcher() -> str | None:
    """The torchrun process that started this rank, by the folder of its logs, whose name it drew at random; None
    without one."""
    found = _ERROR_FILE.fullmatch(os.environ.get("TORCHELASTIC_ERROR_FILE", ""))
    return found[1] if found else None


def _machine() -> str:
    """The same for all processes of one running kernel, also where each has a host name of its own."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text() if boot.exists() else platform.node()


class StopRequest:
    """Remembers that this process was asked to stop, by SIGTERM or SIGINT, instead of dying of it."""

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
