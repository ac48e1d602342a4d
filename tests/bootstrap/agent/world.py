"""A folder in the place of the data bucket, programs that do what a test says, and a clock of their own."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from bootstrap.agent.channel import Document
from bootstrap.agent.processes import LOST, State


class Folder:
    """A folder in the place of the data bucket."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, key: str, known: Document | None = None) -> Document | None:
        """As in `Channel`."""
        path = self._root / key
        try:
            tag = _tag(path)
            return known if known and known.tag == tag else Document(path.read_text("utf-8", "replace"), tag)
        except FileNotFoundError:
            return None

    def write(self, key: str, text: str) -> None:
        """As in `Channel`."""
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text)
        partial.replace(path)

    def write_new(self, key: str, text: str) -> bool:
        """As in `Channel`."""
        if (self._root / key).exists():
            return False
        self.write(key, text)
        return True

    def list(self, prefix: str) -> Mapping[str, str]:
        """As in `Channel`."""
        paths = (path for path in sorted((self._root / prefix).parent.rglob("*")) if path.is_file())
        keys = {path.relative_to(self._root).as_posix(): _tag(path) for path in paths if path.name[0] != "."}
        return {key: tag for key, tag in keys.items() if key.startswith(prefix)}

    def get(self, key: str, path: Path) -> None:
        """As in `Channel`."""
        _copy(self._root / key, path)

    def put(self, path: Path, key: str) -> None:
        """As in `Channel`."""
        _copy(path, self._root / key)

    def remove(self, key: str) -> None:
        """As in `Channel`."""
        with suppress(FileNotFoundError):
            (self._root / key).unlink()


def _tag(path: Path) -> str:
    return str((path.stat().st_mtime_ns, path.stat().st_ino))


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(source.read_bytes())
    partial.replace(path)


class Programs:
    """The programs of a node, which end when a test says so."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.started: list[str] = []
        self.stopped: set[str] = set()

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        del program, environment
        assert self.states.get(name) is None, f"{name} is started twice"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self.states[name] = "running"
        self.started.append(name)

    def state(self, name: str) -> State:
        return self.states.get(name)

    def stop(self, name: str, *, kill: bool = False) -> bool:
        if self.states.get(name) != "running":
            return False
        self.stopped.add(name)
        if kill:
            self.states[name] = LOST
        return True

    def names(self) -> list[str]:
        return sorted(self.states)

    def forget(self, name: str) -> None:
        assert self.states[name] != "running"
        del self.states[name]

    def running(self) -> list[str]:
        return [name for name, state in self.states.items() if state == "running"]


class AtOnce(Executor):
    """An executor that does what it is given before it returns."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done
