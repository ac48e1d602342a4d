"""The connections to the hosts of a file."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from bootstrap.hosts.connection import Connection, LostError
from bootstrap.hosts.hosts_file import Host, HostsFile
from common.errors import ShoalError

Result = TypeVar("Result")


class HostGroup:
    """Hosts that train together; a context manager, which ends its connections."""

    def __init__(self, file: HostsFile) -> None:
        self.file, self._connections = file, dict[Host, Connection]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def connect(self, host: Host) -> Connection:
        """The connection to a host. Raises ShoalError where it is refused, and LostError where nobody answers."""
        found = self._connections.get(host)
        if found is None or not found.is_open:
            found = self._connections[host] = Connection(host)
        return found

    def is_connected(self, host: Host) -> bool:
        """Whether there is a connection to a host, as far as is known here."""
        found = self._connections.get(host)
        return found is not None and found.is_open

    def drop(self, host: Host) -> None:
        """End the connection to a host, if there is one."""
        if found := self._connections.pop(host, None):
            found.close()

    def each(self, work: Callable[[Connection], Result]) -> list[Result]:
        """Do something on all hosts at once. Raises ShoalError for the first that refuses it or does not answer."""

        def one(host: Host) -> Result:
            try:
                return work(self.connect(host))
            except LostError as error:
                raise ShoalError(f"{error}; check that it runs, or take it out of {self.file.path}") from error

        with ThreadPoolExecutor(min(32, len(self.file.hosts))) as pool:
            return list(pool.map(one, self.file.hosts))
