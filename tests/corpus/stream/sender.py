"""A sender of lines over a socket, which runs in a thread, and goes wrong on request."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self


class Sender:
    """Sends `lines` to whoever connects; a context manager.

    `cuts`: after how many bytes each of the first connections is lost. `resumes`: whether it begins at the line that it
    is asked for, and not after what it has sent. `stays`: whether it keeps the last connection open.
    """

    def __init__(
        self, lines: Sequence[bytes], *, cuts: Sequence[int] = (), resumes: bool = True, stays: bool = False
    ) -> None:
        self.received: list[str] = []
        """What readers have said."""
        self.sent = 0
        """Bytes of all connections."""
        self._lines, self._cuts, self._resumes, self._stays = lines, list(cuts), resumes, stays
        self._passed = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        """As a source."""
        self._thread = Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        listeners = []
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                break
            self._open.append(connection)
            asked = connection.makefile("r")
            self.received.append(asked.readline())
            listeners.append(Thread(target=self._listen, args=(asked,)))
            listeners[-1].start()
            with suppress(OSError):
                self._send(connection)
        for each in listeners:
            each.join()
        for connection in self._open:
            connection.close()

    def _listen(self, asked: "socket.SocketIO") -> None:
        with suppress(OSError):
            for line in asked:
                self.received.append(line)

    def _send(self, connection: socket.socket) -> None:
        begin = int(self.received[-1].split()[1]) if self._resumes else self._passed
        content = b"".join(line + b"\n" for line in self._lines[begin:])
        cut = self._cuts.pop(0) if self._cuts else None
        for start in range(0, len(content[:cut]), 1 << 16):
            block = content[:cut][start : start + (1 << 16)]
            connection.sendall(block)
            self.sent += len(block)
        self._passed += content[:cut].count(b"\n")
        if cut is not None or not self._stays:
            connection.shutdown(socket.SHUT_WR)
