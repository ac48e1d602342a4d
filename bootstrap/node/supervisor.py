"""Stop of this node's programs."""

import signal
from collections.abc import Callable

from bootstrap.node.processes import Processes
from trainer.rank_processes import STOP_SECONDS

STOPPED_FROM_OUTSIDE = ("lost", -signal.SIGTERM, 128 + signal.SIGTERM)
"""States of programs that another process stopped, for example when the machine shuts down."""


class Supervisor:
    """Stops programs of this node, and kills those that do not stop in time."""

    def __init__(self, processes: Processes, clock: Callable[[], float]) -> None:
        self._processes, self._clock = processes, clock
        self._asked: dict[str, float] = {}
        """For each program, the time at which it was first asked to stop."""

    def stop(self, name: str, patience: float = STOP_SECONDS) -> None:
        """Ask a program to stop, and kill it if it still runs after twice `patience` seconds.

        Call this method until the program has exited: a program that is still starting receives no signal yet.
        """
        late = name in self._asked and self._clock() - self._asked[name] > 2 * patience
        if self._processes.stop(name, kill=late):
            self._asked.setdefault(name, self._clock())

    def stop_others(self, folder: str | None, patience: float = STOP_SECONDS) -> bool:
        """Stop the programs of all attempts except the one with this folder, and return whether all of them have
        exited."""
        others = [name for name in self._processes.names() if name.partition("/")[0] != folder]
        running = [name for name in others if self._processes.state(name) == "running"]
        for name in running:
            self.stop(name, patience)
        return not running

    def was_asked(self, name: str) -> bool:
        """Return whether this agent has asked a program to stop."""
        return name in self._asked
