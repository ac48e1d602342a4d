"""Stores the faults that a test requests from the emulator: which action fails, where, and how often.

The process that started the emulator writes the faults to a file in the emulator's folder (`FaultFile`). The server
reads this file before each action that a fault may affect (`Faults`). It never writes the file, but counts in memory
how often a fault has happened.
"""

import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from shoal_local_aws.faults import kinds
from shoal_local_aws.faults.kinds import Fault

_NAME = "faults.json"
_F = TypeVar("_F", bound=Fault)


class FaultFile:
    """File with the active faults of the emulator in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._faults: dict[str, Fault] = {}

    def add(self, fault: Fault) -> str:
        """Activate a fault, and return its name."""
        name = uuid.uuid4().hex
        self._faults[name] = fault
        self._write()
        return name

    @contextmanager
    def during(self, *faults: Fault) -> Iterator[None]:
        """Activate faults for the duration of a `with` block."""
        names = [self.add(fault) for fault in faults]
        try:
            yield
        finally:
            for name in names:
                del self._faults[name]
            self._write()

    def _write(self) -> None:
        entries = [
            {"name": name, "kind": type(fault).__name__, "fields": asdict(fault)}
            for name, fault in self._faults.items()
        ]
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(entries))
        new.replace(self._path)


class Faults:
    """Active faults of an emulator, as the server reads them from the file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._seen: tuple[int, int] | None = None
        self._faults: list[tuple[str, Fault]] = []
        self._happened: Counter[str] = Counter()
        self._chance = random.Random(0)  # noqa: S311
        self._lock = threading.Lock()

    def find(self, kind: type[_F], **what: str) -> _F | None:
        """Return the first fault of a kind with patterns that match the fields `what`, or None. The fault does not
        count as having happened."""
        with self._lock:
            found = self._matching(kind, what)
        return found[1] if found else None

    def trigger(self, kind: type[_F], **what: str) -> _F | None:
        """Return a matching fault as `find` does, and count that it has happened. After `times` times it is not found
        again. A fault with a `share` is found at random."""
        with self._lock:
            found = self._matching(kind, what)
            if found is None or self._chance.random() >= getattr(found[1], "share", 1.0):
                return None
            self._happened[found[0]] += 1
            return found[1]

    def _matching(self, kind: type[_F], what: dict[str, str]) -> tuple[str, _F] | None:
        self._read()
        for name, fault in self._faults:
            times = getattr(fault, "times", None)
            if not isinstance(fault, kind) or (times is not None and self._happened[name] >= times):
                continue
            if all(fnmatchcase(value, getattr(fault, field)) for field, value in what.items()):
                return name, fault
        return None

    def _read(self) -> None:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return
        if self._seen != (state.st_ino, state.st_mtime_ns):
            entries = json.loads(self._path.read_text())
            self._faults = [(entry["name"], getattr(kinds, entry["kind"])(**entry["fields"])) for entry in entries]
            self._seen = (state.st_ino, state.st_mtime_ns)
