"""Arguments and environment of the program that runs a node's ranks in an attempt."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bootstrap.node.assignment import Assignment
from bootstrap.node.machine import device_of
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
