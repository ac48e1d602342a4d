"""Part of one node in an attempt: its role, its folders and the logs of its programs."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.node_documents import Attempt, Member
from common import names

STAGE, TRAIN, READER = "stage", "train", "reader-"
"""Names of an attempt's programs on a node. The name of a reader ends with its number."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    request: RunRequest
    """Request at the beginning of the attempt. A later request of the same launch can differ in `stop`."""
    attempt: Attempt
    node: Node

    @cached_property
    def me(self) -> Member:
        (me,) = (each for each in self.attempt.members if each.instance == self.node.instance)
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
    def state(self) -> Path:
        """Folder with the state of the attempt's programs."""
        return self.node.machine.programs / self.attempt.name

    @property
    def meeting_file(self) -> Path:
        """File that exists while this node's ranks wait for ranks of other nodes."""
        return self.state / "meeting"

    def log(self, program: str) -> Path:
        """Return the path of a program's log."""
        if program == STAGE:
            return self.state / "stage.log"
        if program == TRAIN:
            name = names.log_name(f"node-{self.attempt.trainers.index(self.me)}", self.attempt.number)
            return self.node.machine.logs(self.request) / name
        return self.folder / names.log_name(program, self.attempt.number)
