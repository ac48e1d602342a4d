"""`python -m trainer.launch ARGUMENTS`: runs torchrun with these arguments, and also reports why ranks failed.

The launcher prints one line per failed attempt, in a format that failures.py parses. With `--max-restarts` it restarts
the ranks with `--resume`. It does so only if training steps had started, the error can be transient, and the error did
not recur at the same step. Plain torchrun restarts the ranks after any error, with the original arguments. The launcher
also sets the environment variables of ranks.

The ranks of all machines fail together and restart together, so all machines count the same attempts. Each attempt uses
a different port. Do not reuse a port, because late ranks of the previous attempt can still connect to it.

Exit status: 0, 1 if the run failed, or 128 plus the signal number if the run was asked to stop.
"""

import os
import signal
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import torch.distributed as dist
from torch.distributed import run
from torch.distributed.elastic.agent.server.api import _TERMINAL_STATE_SYNC_ID, RunResult, WorkerGroup
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import api as processes
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import (
    RendezvousError,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from torch.distributed.elastic.utils import store as elastic_store
from torch.distributed.launcher import api

from common.display import printable
from common.private_folders import temporary_folder
from common.starter import end_with_starter, ends_with_this_process
from trainer.config import RANK_ENVIRONMENT
from trainer.distributed import collectives, failures
from trainer.distributed.failures import Failure, FailureKind
from trainer.rank_processes import LAUNCHER_ENVIRONMENT

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_RESTART_RENDEZVOUS_SECONDS = int(collectives.TIMEOUT.total_seconds()) + 120
"""Time limit for the rendezvous after a restart.

A machine's ranks exit only after they notice that other ranks are lost.
"""
_OWN_KILL_SECONDS = 20
"""Seconds after the first failure. A rank that a signal kills later than this did not fail itself.

Torchrun kills ranks that do not exit within 30 seconds after the first failure.
"""

_LOCAL, _LOOPBACK = "here", "127.0.0.1"

_BARRIER_SECONDS = 15
"""Seconds that a stopping launcher waits for the launchers of other machines after its own ranks have exited.

A short time is enough, because all ranks stop at the same step.
"""


class _Agent(LocalElasticAgent):
    """Torchrun's agent. Its ranks end with this launcher. It marks the time in which it waits for the agents of other
    machines.

    An agent that is asked to stop still informs the other agents that its ranks have exited. Otherwise an agent that
    was not asked to stop would wait five minutes for the stopped agent, and ignore signals.
    """

    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        with failures.mark_rendezvous():
            super()._rendezvous(worker_group)

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the ranks. A request to stop waits until torchrun knows all of them, or it would not stop them."""
        requests: list[tuple[int, FrameType | None]] = []

        def defer(signum: int, frame: FrameType | None) -> None:
            requests.append((signum, frame))

        processes._terminate_process_handler = defer
        starter = ends_with_this_process()
        os.environ.update(starter)
        started: dict[int, Any] = super()._start_workers(worker_group)
        for name in starter:
            del os.environ[name]
        for number in _STOP_SIGNALS:
            signal.signal(number, _stop)
        if requests:
            _stop(*requests[0])
        return started

    def run(self, role: str = "default") -> RunResult:
        try:
            return super().run(role)  # type: ignore[no-any-return]
        except SignalException:
            ranks, done = self._worker_group.group_world_size or 1, _TERMINAL_STATE_SYNC_ID
            with suppress(dist.DistError):  # other agents failed, their ranks do not exit, or the store is gone
                elastic_store.barrier(self._store, ranks, done, _BARRIER_SECONDS)
            raise


class _LocalRendezvous(StaticTCPRendezvous):
    """Rendezvous for a run on this machine alone, with a store that other machines cannot reach.

    Torchrun's own store listens on all addresses, and torchrun regularly unpickles state from this store. So anyone who
    finds the port could execute code on this machine.
    """

    def get_backend(self) -> str:
        return _LOCAL

    def next_rendezvous(self) -> RendezvousInfo:
        listening = socket.create_server((_LOOPBACK, 0))
        self.master_port = listening.getsockname()[1]
        self._store = dist.TCPStore(  # type: ignore[attr-defined]
            _LOOPBACK, self.master_port, None, True, self.timeout, master_listen_fd=listening.detach()
        )
        info = RendezvousStoreInfo(_LOOPBACK, self.master_port)
        store = dist.PrefixStore(self.run_id, self._store)  # type: ignore[attr-defined]
        return RendezvousInfo(store, 0, 1, info)


def _use_local_rendezvous(parsed: Namespace) -> None:
    """Configure the communication of this machine's ranks so that no other machine can reach them."""
    parsed.standalone, parsed.rdzv_backend, parsed.rdzv_endpoint = False, _LOCAL, f"{_LOOPBACK}:0"
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{library}_SOCKET_IFNAME", "lo")


def _create_local_rendezvous(parameters: RendezvousParameters) -> _LocalRendezvous:
    return _LocalRendezvous(_LOOPBACK, 0, 0, 1, parameters.run_id, int(collectives.RENDEZVOUS_TIMEOUT.total_seconds()))


def _stop(signum: int, _frame: FrameType | None) -> None:
    """Ask the ranks to stop, and ignore further signals: torchrun's threads would then run forever.

    If a parent process with several threads is killed, Linux sends a signal for each thread that adopted this process.
    """
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise SignalException(f"got {signal.Signals(signum).name}", signal.Signals(signum))


def main(arguments: Sequence[str] | None = None) -> int:
    api.LocalElasticAgent = _Agent  # type: ignore[attr-defined]
    rendezvous_handler_registry.register(_LOCAL, _create_local_rendezvous)
    os.environ.update(RANK_ENVIRONMENT)
    os.environ.update(LAUNCHER_ENVIRONMENT)
    parsed = run.parse_args(sys.argv[1:] if arguments is None else arguments)  # type: ignore[no-untyped-call]
    if parsed.standalone:
        _use_local_rendezvous(parsed)
    previous: Failure | None = None
    end_with_starter()
    handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    try:
        for attempt in range(parsed.max_restarts + 1):
            ended, started = _attempt(parsed, attempt)
            if not ended:
                return 0
            failure = failures.root_cause(ended)
            _report(failure.line())
            repeated = previous is not None and _is_repeated(failure, previous)
            if failure.kind is FailureKind.FINAL or repeated or not started or attempt == parsed.max_restarts:
                break
            previous = failure
            # Torchrun's own signal handlers would act only after the rendezvous.
            for number, handler in handlers.items():
                signal.signal(number, handler)
            _report(f"{failure.short}; starting again ({attempt + 1} of {parsed.max_restarts})")
            os.environ[failures.LOST] = failure.line()
            parsed.training_script_args = [*parsed.training_script_args, "--resume"]
    except SignalException as stop:
        return 128 + stop.sigval
    return 1


def _is_repeated(failure: Failure, previous: Failure) -> bool:
    """Return whether `failure`, a cause and not a consequence, repeats `previous` at the same step."""
    at_a_step = (failure.where or "").startswith("at step ")
    return at_a_step and failure.kind is FailureKind.CAUSE and failure.short == previous.short


def _attempt(parsed: Namespace, attempt: int) -> tuple[list[Failure], bool]:
    """Run this machine's ranks until they exit. Return their failures, and whether they had started training steps."""
    with temporary_folder("shoal-launch-") as folder:
        adapted = Namespace(**vars(parsed))
        adapted.max_restarts, adapted.log_dir = 0, str(folder)
        os.environ[failures.FOLDER] = str(folder)
        if adapted.master_port is not None:
            adapted.master_port += attempt
            seconds = _RESTART_RENDEZVOUS_SECONDS if attempt else int(collectives.RENDEZVOUS_TIMEOUT.total_seconds())
            adapted.rdzv_conf = ",".join(filter(None, (f"timeout={seconds}", adapted.rdzv_conf)))
        ended: list[Failure] = []
        try:
            run.run(adapted)  # type: ignore[no-untyped-call]
        except ChildFailedError as error:
            ended = _failures_of(error, failures.read_failures(folder))
        except (RendezvousError, dist.DistError) as error:
            node = os.environ.get(failures.NODE)
            sentence = collectives.rendezvous_message(
                node or f"node {adapted.node_rank}", f"{adapted.master_addr}:{adapted.master_port}", error
            )
            kind = FailureKind.CONSEQUENCE if attempt else FailureKind.FINAL
            ended = [Failure(kind=kind, time=time.time(), what=sentence)]
        return [replace(failure, attempt=attempt) for failure in ended], failures.has_started(folder)


def _failures_of(error: ChildFailedError, reported: dict[int, Failure]) -> list[Failure]:
    start = min(failed.timestamp for failed in error.failures.values())
    return [reported.get(rank) or _failure_of(rank, failed, start) for rank, failed in error.failures.items()]


def _failure_of(rank: int, failed: ProcessFailure, start: float) -> Failure:
    kind, what, then = FailureKind.FINAL, f"{failures.rank_name(rank)} exited with status {failed.exitcode}", ""
    if failed.exitcode < 0:
        ended_here = failed.exitcode == -signal.SIGTERM or failed.timestamp > start + _OWN_KILL_SECONDS
        kind = FailureKind.CONSEQUENCE if ended_here else FailureKind.CAUSE
        what = f"{failures.rank_name(rank)} was killed by signal {-failed.exitcode} ({failed.signal_name()})"
        then = "; restart with --resume"
        if failed.exitcode == -signal.SIGKILL:
            then = (
                ", as the operating system does when memory is full; "
                "restart with --resume, and with fewer ranks on this machine"
            )
    return Failure(kind=kind, time=failed.timestamp, what=what, then=then)


def _report(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
