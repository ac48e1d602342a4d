"""Supervision of this node's programs: which of them run, and which were asked to stop and when."""

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from bootstrap.node.assignment import Assignment
from bootstrap.node.processes import Processes, State
from common.files import read_tail
from trainer.rank_processes import STOP_SECONDS

STOPPED_FROM_OUTSIDE = ("lost", -signal.SIGTERM, 128 + signal.SIGTERM)
"""States of programs that another process stopped, for example when the machine shuts down."""
_LOG_TAIL_BYTES = 4096


class Supervisor:
    """Stops programs of this node, and kills those that do not stop in time."""

    def __init__(self, processes: Processes, clock: Callable[[], float]) -> None:
        self.processes, self._clock = processes, clock
        self._asked: dict[str, float] = {}
        """For each program, the time at which it was first asked to stop."""

    def stop(self, name: str, patience: float = STOP_SECONDS) -> None:
        """Ask a program to stop, and kill it if it still runs after twice `patience` seconds.

        Call this method until the program has exited: a program that is still starting receives no signal yet.
        """
        late = name in self._asked and self._clock() - self._asked[name] > 2 * patience
        if self.processes.stop(name, kill=late):
            self._asked.setdefault(name, self._clock())

    def stop_others(self, folder: str | None, patience: float = STOP_SECONDS) -> bool:
        """Stop the programs of all attempts except the one with this folder, and return whether all of them have
        exited."""
        others = [name for name in self.processes.names() if name.partition("/")[0] != folder]
        running = [name for name in others if self.processes.state(name) == "running"]
        for name in running:
            self.stop(name, patience)
        return not running

    def was_asked(self, name: str) -> bool:
        """Return whether this agent has asked a program to stop."""
        return name in self._asked


class AttemptPrograms:
    """Programs of one attempt on this node."""

    def __init__(self, assignment: Assignment, supervisor: Supervisor) -> None:
        self._assignment, self._supervisor, self._processes = assignment, supervisor, supervisor.processes

    def start(self, program: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        """Start a program that was never started or was forgotten. `arguments` are those of the Python interpreter."""
        self._processes.start(self._name(program), arguments, self._assignment.log(program), environment)

    def state(self, program: str) -> State:
        return self._processes.state(self._name(program))

    def forget(self, program: str) -> None:
        self._processes.forget(self._name(program))

    def stop(self, program: str) -> None:
        self._supervisor.stop(self._name(program))

    def was_asked(self, program: str) -> bool:
        return self._supervisor.was_asked(self._name(program))

    def last_line(self, program: str) -> str:
        """Return the last line of a program's log."""
        with suppress(OSError):
            log = read_tail(self._assignment.log(program), _LOG_TAIL_BYTES)
            if lines := [line for line in log.splitlines() if line.strip()]:
                return lines[-1]
        return "it printed nothing"

    def _name(self, program: str) -> str:
        return f"{self._assignment.attempt.name}/{program}"
