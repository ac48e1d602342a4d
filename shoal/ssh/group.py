"""Connections to all hosts of a hosts file."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import RLock
from typing import Any, TypeVar

from bootstrap.node.folder import Files
from common.errors import ShoalError
from shoal.ssh.connection import Connection, LostError
from shoal.ssh.hosts_file import Host, HostsFile

Result = TypeVar("Result")


class HostGroup:
    """Hosts that train together."""

    def __init__(self, file: HostsFile) -> None:
        self.file, self._connections, self._one_at_a_time = file, dict[Host, Connection](), RLock()

    def close(self) -> None:
        """Close all connections. A later call connects again."""
        for connection in self._connections.values():
            connection.close()

    def connect(self, host: Host) -> Connection:
        """Return a connection to a host. Raises ShoalError if the connection is refused, and LostError if the host does
        not answer."""
        connection = self._connections.get(host)
        if connection is None or not connection.is_open:
            connection = self._connections[host] = Connection(host)
        return connection

    def use_files(self, work: Callable[[Files], Any]) -> Any:
        """Call `work` with the files of a host that answers and can use the shared folder. Return the result of `work`.

        Connected hosts are tried first. If the connection to the first host breaks, this host is tried again over a new
        connection. Raises LostError if no host answers, or if the first host that answers cannot use the folder.
        """
        lost: LostError | None = None
        with self._one_at_a_time:
            connected = sorted(self.file.hosts, key=lambda each: not self._is_connected(each))
            for host in (*connected[:1], *connected):
                try:
                    connection = self.connect(host)
                    with connection.answering():
                        return work(connection.files)
                except LostError as error:
                    lost = error
                    self._drop(host)
                except OSError as error:
                    raise LostError(
                        f"{host.label} cannot use {self.file.folder}: {error.strerror or error}; give the host's user "
                        f"write permission, free some space, or choose a different folder in {self.file.path}"
                    ) from error
                except BaseException:  # after an interrupt, the connection can contain an incomplete message
                    self._drop(host)
                    raise
        raise LostError(f"no host of {self.file.path} answers; the last error: {lost}")

    def _is_connected(self, host: Host) -> bool:
        connection = self._connections.get(host)
        return connection is not None and connection.is_open

    def _drop(self, host: Host) -> None:
        if connection := self._connections.pop(host, None):
            connection.close()

    def on_all(self, work: Callable[[Connection], Result]) -> list[Result]:
        """Call `work` with the connections to all hosts in parallel, and return the results in the order of the hosts.
        Raises ShoalError if a host fails."""

        def one(host: Host) -> Result:
            try:
                return work(self.connect(host))
            except LostError as error:
                raise ShoalError(
                    f"{error}; check that the host is running, or remove it from {self.file.path}"
                ) from error

        with ThreadPoolExecutor(min(32, len(self.file.hosts))) as pool:
            return list(pool.map(one, self.file.hosts))
