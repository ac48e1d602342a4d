"""Record of all permission checks, one JSON line each: principal, action, resource, condition keys and decision."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "permissions.jsonl"
Statement = dict[str, Any]
"""Statement of a policy: `sid`, `effect`, `actions`, `not_actions`, `resources`, `not_resources`, `conditions`."""
ALLOWED, DENIED, UNMAPPED, ROOT = "allowed", "denied", "unmapped", "root"


@dataclass(frozen=True)
class Check:
    """A permission check of a request.

    principal: ARN of the caller. action: IAM's name of the action. context: Condition keys of the request.
    """

    principal: str
    action: str
    resource: str
    decision: str
    region: str = ""
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """User, or role of the session: `user/NAME` or `assumed-role/NAME`."""
        return "/".join(self.principal.rpartition(":")[2].split("/")[:2])


def read_checks(folder: Path) -> Iterator[Check]:
    """Yield the checks that the emulator of a folder has made so far."""
    with (folder / FILE).open() as lines:
        yield from (Check(**line) for line in map(json.loads, lines) if "action" in line)


class Recorder:
    """Writer of the checks of the emulator of a folder."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / FILE, Lock()
        self._policies: dict[str, list[list[Statement]]] = {}
        self._path.touch()

    def write(self, check: Check, policies: list[list[Statement]]) -> None:
        """Append a check. Before it, append the caller's policies if they are new."""
        lines = [asdict(check)]
        with self._lock, self._path.open("a") as file:
            if self._policies.get(check.who) != policies:
                self._policies[check.who] = policies
                lines.insert(0, {"who": check.who, "policies": policies})
            file.writelines(json.dumps(line, default=str) + "\n" for line in lines)
