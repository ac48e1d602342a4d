r"""The lines of a socket, and what is sent back: from which line on to send, and which lines the sender may forget.

On connecting the reader sends `from N\n`: it has taken N lines. After each part it sends `safe N\n`: N lines are in
parts, and no crash loses them. A sender that can begins with line N, counted from 0, and keeps all lines that are not
safe. Do not send more than that: what a sender does not read fills its buffers, and resets the connection at its end.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf

from common.errors import DataError
from corpus.reading.compression import BLOCK_BYTES
from corpus.reading.lines import split_lines
from corpus.stream.lines import Batch, batch_of_lines
from corpus.stream.stream_settings import host_and_port

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_PATIENCE_S = 60.0
"""How long a sender that was not there yet may take to come."""
_CONNECT_S = 10.0
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6))


class Socket:
    """A line socket, which connects to a sender, and again where the connection is lost."""

    def __init__(self, address: str, *, follow: bool, clock: Callable[[], float]) -> None:
        self.address = address
        self._follow, self._clock = follow, clock
        self._connection: socket.socket | None = None
        self._was_connected = self._ended = False
        self._offset = 0
        self._wait, self._next_try = _FIRST_WAIT_S, -inf

    def batches(self, offset: int) -> Iterator[Batch | None]:
        """Its lines from this one on; None where there is nothing for now.

        They end where the sender ends the connection, but with `follow` never. Raises DataError where no sender comes.
        """
        self._offset = offset
        while not self._ended:
            yield from self._connect()
            yield from self._lines()

    def tell_safe(self, lines: int) -> None:
        """Report to the sender that so many lines are in parts, if it is there and listens."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send(b"safe %d\n" % lines)

    def _connect(self) -> Iterator[None]:
        since = self._clock()
        while self._connection is None:
            while self._clock() < self._next_try:
                yield None
            try:
                self._connection = self._connected()
                self._was_connected = True
            except OSError as error:
                if self._clock() - since >= _PATIENCE_S and not (self._follow and self._was_connected):
                    raise DataError(
                        f"cannot connect to {self.address} since a minute: {error.strerror or error}; start its "
                        "sender, or check the address"
                    ) from error
                self._wait_longer()

    def _connected(self) -> socket.socket:
        made = socket.create_connection(host_and_port(self.address), timeout=_CONNECT_S)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEP_ALIVE:
                made.setsockopt(socket.IPPROTO_TCP, option, value)
            made.sendall(b"from %d\n" % self._offset)
            made.setblocking(False)
        except OSError:
            made.close()
            raise
        return made

    def _wait_longer(self) -> None:
        self._next_try = self._clock() + self._wait
        self._wait = min(2 * self._wait, _LONGEST_WAIT_S)

    def _lines(self) -> Iterator[Batch | None]:
        """The lines of a connection. Of a line that was cut by the connection's loss nothing is taken."""
        assert self._connection is not None
        with self._connection as connection, suppress(_LostError):
            for found in split_lines(self._blocks(connection)):
                if not found:
                    yield None
                    continue
                batch = batch_of_lines(self.address, found, self._offset, by_lines=True)
                batch = batch._replace(first_line=self._offset + 1)
                self._offset = batch.ends[-1]
                yield batch
            self._ended = True
        self._connection = None
        self._wait_longer()

    def _blocks(self, connection: socket.socket) -> Iterator[bytes]:
        """What has arrived; an empty block where there is nothing for now."""
        while True:
            try:
                block = connection.recv(BLOCK_BYTES)
            except BlockingIOError:
                yield b""
                continue
            except OSError as error:
                raise _LostError from error
            if block:
                self._wait = _FIRST_WAIT_S
                yield block
            elif self._follow:
                raise _LostError
            else:
                return


class _LostError(Exception):
    """A connection that ended although more lines are to come."""
