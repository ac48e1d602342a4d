"""Part of one node in an attempt: its role, its folders, and the supervision of its programs."""

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node, last_line
from bootstrap.node.node_documents import Attempt, Member
from bootstrap.node.processes import Processes, State
from common import names
from common.files import read_tail
from trainer.rank_processes import STOP_SECONDS

STAGE, TRAIN, READER = "stage", "train", "reader-"
"""Names of an attempt's programs on a node. The name of a reader ends with its number."""
_LOG_TAIL_BYTES = 4096
STOPPED_FROM_OUTSIDE = ("lost", -signal.SIGTERM, 128 + signal.SIGTERM)
"""States of programs that another process stopped, for example when the machine shuts down."""


class Supervisor:
    """Stops programs of this node, and kills those that do not stop in time."""

    def __init__(self, processes: Processes, clock: Callable[[], float]) -> None:
        self._processes, self._clock = processes, clock
        self._asked: dict[tuple[str, float], float] = {}
        """For each program and patience, the time at which the program was first asked to stop."""

    def stop(self, name: str, patience: float = STOP_SECONDS) -> None:
        """Ask a program to stop, and kill it if it still runs after twice `patience` seconds.

        Call this method until the program has exited: a program that is still starting receives no signal yet.
        """
        asked = self._asked.get((name, patience), self._clock())
        if self._processes.stop(name, kill=self._clock() - asked > 2 * patience):
            self._asked[name, patience] = asked

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
        return any(name == asked for asked, _ in self._asked)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    request: RunRequest
    """Request at the beginning of the attempt. A later request of the same launch can differ in `stop`."""
    attempt: Attempt
    node: Node
    supervisor: Supervisor

    @cached_property
    def me(self) -> Member:
        (me,) = (each for each in self.attempt.members if each.instance == self.node.member.instance)
        return me

    @property
    def is_first(self) -> bool:
        """True for the node that serves the shared folder and copies the results."""
        return self.me == self.attempt.members[0]

    @property
    def readers(self) -> list[int]:
        """Numbers of the readers that run on this node."""
        return self.attempt.readers_on(self.me.instance, self.request)

    @property
    def folder(self) -> Path:
        """Folder of the run's results."""
        return self.node.machine.run(self.request)

    @property
    def data(self) -> Path:
        """Path of the run's dataset or stream."""
        return self.node.machine.data(self.request)

    @property
    def programs_folder(self) -> Path:
        """Folder with the state of the attempt's programs."""
        return self.node.machine.programs / self.attempt.name

    @property
    def meeting_file(self) -> Path:
        """File that exists while this node's ranks wait for ranks of other nodes."""
        return self.programs_folder / "meeting"

    def log(self, program: str) -> Path:
        """Return the path of a program's log."""
        if program == STAGE:
            return self.programs_folder / "stage.log"
        if program == TRAIN:
            name = names.log_name(f"node-{self.attempt.trainers.index(self.me)}", self.attempt.number)
            return self.node.machine.logs(self.request) / name
        return self.folder / names.log_name(program, self.attempt.number)

    def start(self, program: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        """Start a program that was never started or was forgotten. `arguments` are those of the Python interpreter."""
        self.node.processes.start(self._name(program), arguments, self.log(program), environment)

    def state(self, program: str) -> State:
        return self.node.processes.state(self._name(program))

    def forget(self, program: str) -> None:
        self.node.processes.forget(self._name(program))

    def stop(self, program: str) -> None:
        self.supervisor.stop(self._name(program))

    def was_asked_to_stop(self, program: str) -> bool:
        """Return whether this agent has asked a program to stop."""
        return self.supervisor.was_asked(self._name(program))

    def last_line(self, program: str) -> str:
        """Return the last line of a program's log."""
        output = ""
        with suppress(OSError):
            output = read_tail(self.log(program), _LOG_TAIL_BYTES)
        return last_line(output)

    def _name(self, program: str) -> str:
        return f"{self.attempt.name}/{program}"
