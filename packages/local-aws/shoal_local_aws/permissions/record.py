"""Record of all permission checks, one JSON line per check: principal, action, resource, condition keys and
decision."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "permissions.jsonl"
Statement = dict[str, Any]
"""Policy statement: `sid`, `effect`, `actions`, `not_actions`, `resources`, `not_resources`, `conditions`."""
ALLOWED, DENIED, UNMAPPED, ROOT = "allowed", "denied", "unmapped", "root"


@dataclass(frozen=True)
class Check:
    """The permission check for one request. `principal` is the caller's ARN, and `context` has the condition keys."""

    principal: str
    action: str
    resource: str
    decision: str
    region: str = ""
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """The caller: `user/NAME`, or for a session `assumed-role/NAME` with the name of the role."""
        return "/".join(self.principal.rpartition(":")[2].split("/")[:2])


def read_checks(folder: Path) -> Iterator[Check]:
    """Yield the permission checks that the emulator in `folder` has made so far."""
    with (folder / FILE).open() as lines:
        yield from (Check(**line) for line in map(json.loads, lines) if "action" in line)


class Recorder:
    """Writes the permission checks of an emulator to a file in its folder."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / FILE, Lock()
        self._policies: dict[str, list[list[Statement]]] = {}
        self._path.touch()

    def write(self, check: Check, policies: list[list[Statement]]) -> None:
        """Append a check to the file. If the caller's policies are new, append these first."""
        lines = [asdict(check)]
        with self._lock, self._path.open("a") as file:
            if self._policies.get(check.who) != policies:
                self._policies[check.who] = policies
                lines.insert(0, {"who": check.who, "policies": policies})
            file.writelines(json.dumps(line, default=str) + "\n" for line in lines)
