"""Faults that somebody puts into the embedded AWS on purpose: what fails, where, and how often.

Whoever started the emulator writes them to one file of its folder (`FaultFile`), and the server looks there before it
does what a fault is about (`Faults`). The one thing that is easy to get wrong is the counting: a fault that happens a
number of times is counted by the server, where it happens, and never written back.
"""

import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar, get_args

_NAME = "faults.json"


@dataclass(frozen=True, kw_only=True)
class NoCapacity:
    """No instance of a type starts in a zone, on one market (`on-demand`, `spot`); `*` stands for any."""

    zone: str = "*"
    instance_type: str = "*"
    market: str = "*"


@dataclass(frozen=True, kw_only=True)
class NotOffered:
    """A zone does not have a type at all: DescribeInstanceTypeOfferings leaves it out, and none starts."""

    instance_type: str
    zone: str = "*"


@dataclass(frozen=True, kw_only=True)
class SilentBoot:
    """Instances of a type run, but their user data does not: they never report anything."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class StaysPending:
    """Instances of a type are given, and never begin to run."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A service quota's value, in its unit: `L-DB2E81BA` are the vCPUs of on-demand G and VT instances."""

    code: str
    value: float


@dataclass(frozen=True, kw_only=True)
class CreateFails:
    """CloudFormation cannot create a resource; `times`: how often, None always."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeleteFails:
    """CloudFormation cannot delete a resource; `times`: how often, None always."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """An operation of a service (its name as in IAM: `cloudformation`, `elasticmapreduce`) is asked too often.

    `share` is of its requests, chosen by chance.
    """

    service: str
    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A share of S3's answers to an operation is `500 InternalError`: nothing was done."""

    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The connection ends in the middle of a share of S3's answers to GetObject of at least so many bytes."""

    least: int = 1 << 16
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Unruly:
    """Hadoop kills a share of the attempts and starts a second attempt of a share of the tasks beside the first.

    `within`: seconds from an attempt's start in which it is killed, or doubled. `seed`: of all that chance decides,
    the order of a key's values included.
    """

    seed: int = 0
    killed: float = 0.0
    doubled: float = 0.0
    within: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Denied:
    """The user may not call an operation (as its API names it) of a service (as IAM does)."""

    service: str
    operation: str = "*"


Fault = (
    NoCapacity
    | NotOffered
    | SilentBoot
    | StaysPending
    | Quota
    | CreateFails
    | DeleteFails
    | Throttled
    | Broken
    | Cut
    | Unruly
    | Denied
)
_F = TypeVar(
    "_F",
    NoCapacity,
    NotOffered,
    SilentBoot,
    StaysPending,
    Quota,
    CreateFails,
    DeleteFails,
    Throttled,
    Broken,
    Cut,
    Unruly,
    Denied,
)
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Fault)}


class FaultFile:
    """Where the faults of an emulator are written down.

    Args:
        folder: the emulator's.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._faults: dict[str, Fault] = {}

    def add(self, fault: Fault) -> str:
        """Let a fault happen from now on; returns the name by which it is lifted."""
        name = uuid.uuid4().hex
        self._faults[name] = fault
        self._write()
        return name

    def lift(self, name: str) -> None:
        """End a fault; one that was lifted before stays so."""
        self._faults.pop(name, None)
        self._write()

    @contextmanager
    def during(self, *faults: Fault) -> Iterator[None]:
        """Faults that happen within a `with` block."""
        names = [self.add(fault) for fault in faults]
        try:
            yield
        finally:
            for name in names:
                self.lift(name)

    def _write(self) -> None:
        entries = [
            {"name": name, "kind": type(fault).__name__, "fields": asdict(fault)}
            for name, fault in self._faults.items()
        ]
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(entries))
        new.replace(self._path)


class Faults:
    """What the server knows of its faults: what the file says at the moment.

    Args:
        folder: the emulator's.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._seen: tuple[int, int] | None = None
        self._faults: list[tuple[str, Fault]] = []
        self._happened: Counter[str] = Counter()
        self._chance = random.Random(0)  # noqa: S311
        self._lock = threading.Lock()

    def find(self, kind: type[_F], **what: str) -> _F | None:
        """The first fault of a kind whose fields match `what`, each by its pattern; it does not count as happening."""
        with self._lock:
            found = self._matching(kind, what)
        return found[1] if found else None

    def strike(self, kind: type[_F], **what: str) -> _F | None:
        """As `find`, for a fault that happens now: one that happened as often as it may is not found.

        A fault that strikes a share of what it is about is left to chance.
        """
        with self._lock:
            found = self._matching(kind, what)
            if found is None or self._chance.random() >= getattr(found[1], "share", 1.0):
                return None
            self._happened[found[0]] += 1
            return found[1]

    def expects(self, kind: type[_F]) -> bool:
        """Whether there is any fault of a kind."""
        with self._lock:
            return self._matching(kind, {}) is not None

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
            self._faults = [(entry["name"], _KINDS[entry["kind"]](**entry["fields"])) for entry in entries]
            self._seen = (state.st_ino, state.st_mtime_ns)
