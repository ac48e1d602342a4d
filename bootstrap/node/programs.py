"""Programs of a node in an attempt: the launcher of its ranks, and the readers of a stream."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bootstrap.node.assignment import READER, Assignment
from bootstrap.node.machine import device_of
from bootstrap.node.processes import Restarts
from common.errors import DataError
from corpus.stream.parts import part_numbers
from corpus.stream.progress import reader_folder
from trainer.command_line import as_arguments, from_option_values
from trainer.config import NEEDS_GPU, TrainConfig
from trainer.distributed import failures
from trainer.rank_processes import OPTIONS


def rank_arguments(assignment: Assignment) -> list[str]:
    attempt, me = assignment.attempt, assignment.me
    trainers = attempt.trainers
    return [
        *("-m", "trainer.launch", f"--nnodes={len(trainers)}", f"--node-rank={trainers.index(me)}"),
        *(f"--nproc-per-node={me.gpus}", f"--master-addr={trainers[0].address}"),
        *(f"--master-port={attempt.port}", *OPTIONS, "-m", "trainer", *as_arguments(_config(assignment))),
    ]


def rank_environment(assignment: Assignment) -> Mapping[str, str]:
    me = assignment.me
    environment = {failures.NODE: me.instance, failures.MEETING: str(assignment.meeting_file)}
    if assignment.node.machine.root == Path("/"):
        # Without this variable, a rank that finds no GPU would compute on the CPU of an expensive GPU node. A node
        # with another root has no GPU.
        environment[NEEDS_GPU] = "1"
    if len(assignment.attempt.trainers) > 1 and (device := device_of(me.address)):
        # Gloo binds to the address of the host name. That address can belong to the loopback interface or to Docker's
        # bridge, which other nodes cannot reach (nss-myhostname(8)). NCCL ignores both interfaces by itself.
        environment |= {f"{library}_SOCKET_IFNAME": device for library in ("GLOO", "NCCL")}
    return environment


def _config(assignment: Assignment) -> TrainConfig:
    """Return the options of the trainer. An attempt after the first resumes the run, with the ranks that are left."""
    request, attempt = assignment.request, assignment.attempt
    places = {"data": assignment.data, "output": assignment.folder, "cache": assignment.node.machine.cache}
    endless = request.stream is not None and request.stream.follow
    config = from_option_values(request.options, endless=endless, **places)
    if attempt.number == 1:
        return config
    ranks = sum(each.gpus for each in attempt.trainers)  # the rank that a `slow` option names can be lost
    slow = {rank: factor for rank, factor in config.slow.items() if rank < ranks}
    return replace(config, slow=slow, resume=True, force=False)


class ReaderPrograms:
    """Readers that run on a node."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._restarts = {reader: Restarts() for reader in assignment.readers}

    def start(self) -> None:
        """Start the readers that were never started."""
        for reader in self._restarts:
            if self._assignment.state(f"{READER}{reader}") is None:
                self._start(reader)

    def check(self, *, stop: bool) -> bool:
        """Return whether any reader still runs. With `stop`, ask the readers to stop, else restart readers that died.

        Raises DataError if a reader died repeatedly without progress.
        """
        running = [self._check(reader, stop=stop) for reader in self._restarts]
        return any(running)

    def _check(self, reader: int, *, stop: bool) -> bool:
        program = f"{READER}{reader}"
        state = self._assignment.state(program)
        if state == "running":
            if stop:
                self._assignment.stop(program)
            return True
        if state == 0 or stop:
            return False
        parts = part_numbers(reader_folder(self._assignment.data, reader))
        if not self._restarts[reader].may_restart(max(parts, default=-1)):
            last, instance = self._assignment.last_line(program), self._assignment.me.instance
            raise DataError(f"reader {reader} on the node {instance} died repeatedly: {last}")
        with suppress(OSError), self._assignment.log(program).open("a") as log:
            log.write(f"reader {reader} ended with status {state}, and is started again\n")
        self._assignment.forget(program)
        self._start(reader)
        return True

    def _start(self, reader: int) -> None:
        stream = self._assignment.request.stream
        which = f"{reader}/{stream.readers if stream else 0}"
        program = ["-m", "corpus.stream", "--stream", str(self._assignment.data), "--reader", which]
        self._assignment.start(f"{READER}{reader}", program, {"OMP_NUM_THREADS": "1"})
