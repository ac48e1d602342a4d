"""The record of all checks of requests, a line each: who asked for what, with which keys, and the decision."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "permissions.jsonl"
ALLOWED, DENIED, UNMAPPED, ROOT = "allowed", "denied", "unmapped", "root"


@dataclass(frozen=True)
class Check:
    """The check of a request.

    principal: the ARN of who asked. action: as IAM has it. context: the condition keys of the request.
    """

    principal: str
    action: str
    resource: str
    decision: str
    region: str = ""
    context: dict[str, Any] = field(default_factory=dict)


def read_checks(folder: Path) -> Iterator[Check]:
    """The checks that the emulator of a folder has made so far."""
    with (folder / FILE).open() as lines:
        for line in lines:
            yield Check(**json.loads(line))


class Recorder:
    """Writes the checks of the emulator of a folder."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / FILE, Lock()
        self._path.touch()

    def write(self, check: Check) -> None:
        """Add a check."""
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(asdict(check), default=str) + "\n")
