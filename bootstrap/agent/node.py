"""A node, and by what its agent reaches the rest of the world."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from bootstrap.agent.machine import Machine
from bootstrap.agent.processes import Processes
from bootstrap.agent.store import Store


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node, and by what its agent reaches the rest of the world."""

    instance: str
    address: str
    """Its private IPv4 address."""
    gpus: int
    store: str
    """The address of what `channel` reaches."""
    machine: Machine
    processes: Processes
    channel: Store
    clock: Callable[[], float]
    time: Callable[[], float]
    """Seconds since 1970."""
    notice: Callable[[], str]
    """Whether AWS is about to end the node: one of LEAVES."""
    pool: Executor
    """Copies results beside all else."""
    say: Callable[[str], None]
    """Writes a line to the agent's log."""
