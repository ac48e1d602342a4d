"""Connections between ranks, by which bytes of known sizes travel, and nothing that could be executed.

torch.distributed.rpc calls whatever function a peer names, and whoever finds its port is a peer. Here both ends of a
connection prove first that they know the secret of the run, by a challenge (HMAC) that also names the address: so
nobody between them can pass it on. A rank listens only until all others are connected.

The launcher makes the secret and hands it to its ranks in their environment, which other users cannot read. Do not pass
it by the store or on a command line, which they can. Where ranks have several launchers, they have no secret in common
beforehand; then the network has to be one that nobody else uses (--trust-network).
"""

import fcntl
import hmac
import os
import secrets
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event, Lock, Thread
from typing import Any

from trainer.distributed import collectives

SECRET = "SHOAL_SECRET"  # noqa: S105
"""The environment variable in which the launcher of all ranks hands them the secret of their run."""

_LOOPBACK, _GET_ADDRESS = "127.0.0.1", 0x8915
_BYTES = 32
"""Of a secret, a challenge and an answer."""
_HELLO = struct.Struct(f"!8sI{_BYTES}s")
_MAGIC = b"shoal-1\n"
_GREETING_SECONDS = 30.0
"""How long a peer may take for its proof."""
_LOOK_SECONDS = 0.2

Buffer = Any
"""What has the buffer protocol."""
Gather = Callable[[Any], list[Any]]
"""Gathers a value of each rank, such as `Ranks.gather`."""


class Connection:
    """A connection to another rank. Its methods raise RuntimeError if that is gone."""

    def __init__(self, to: socket.socket, rank: int) -> None:
        # Time-outs of the kernel's, not Python's: with those each piece that arrives would take a call, and between two
        # of them the thread would wait for the interpreter.
        to.settimeout(None)
        limit = struct.pack("ll", int(collectives.TIMEOUT.total_seconds()), 0)
        for each in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            to.setsockopt(socket.SOL_SOCKET, each, limit)
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self.rank = to, rank

    def send(self, *parts: Buffer) -> None:
        with self._named_errors():
            left = _of_content(parts)
            while left:
                left = _behind(left, self._socket.sendmsg(left))

    def receive_into(self, *buffers: Buffer) -> None:
        """Receive as many bytes as the buffers have."""
        with self._named_errors():
            left = _of_content(buffers)
            while left:
                count, *_ = self._socket.recvmsg_into(left, 0, socket.MSG_WAITALL)
                if not count:
                    raise ConnectionError("Connection closed by peer")
                left = _behind(left, count)

    def receive(self, form: struct.Struct) -> tuple[Any, ...]:
        found = bytearray(form.size)
        self.receive_into(found)
        return form.unpack(found)

    def close(self) -> None:
        """End the connection, also for those who wait at either end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RuntimeError(f"{error or type(error).__name__} [rank {self.rank}]") from error


def _of_content(buffers: Sequence[Buffer]) -> list[memoryview]:
    return [view for each in buffers if (view := memoryview(each)).nbytes]


def _behind(views: Sequence[memoryview], count: int) -> list[memoryview]:
    """What is left of views of bytes behind so many."""
    left = []
    for view in views:
        if count < view.nbytes:
            left.append(view[count:])
        count = max(0, count - view.nbytes)
    return left


@dataclass(frozen=True)
class Connections:
    """Those of a rank with all others."""

    asked: dict[int, Connection] = field(default_factory=dict)
    """By the rank that this one asks."""
    asking: dict[int, Connection] = field(default_factory=dict)
    """By the rank that asks this one."""

    def close(self) -> None:
        for each in (*self.asked.values(), *self.asking.values()):
            each.close()


def connect(rank: int, size: int, secret: bytes, *, host: str, gather: Gather) -> Connections:
    """Connect this rank, at its address `host`, with all others, which call this at once. Raises RuntimeError if one
    of them is not found, or does not know the secret."""
    if size == 1:
        return Connections()
    with _Listener(rank, size, secret, host) as listener:
        addresses = gather(listener.address)
        found = Connections({}, listener.connections)
        try:
            for other, address in enumerate(addresses):
                if other != rank:
                    found.asked[other] = _dial(rank, other, secret, address)
            if not listener.complete.wait(collectives.MEETING_TIMEOUT.total_seconds()):
                raise RuntimeError("not all ranks have connected")
        except BaseException:
            found.close()
            raise
    return found


def own_address(*, here: bool) -> str:
    """The address at which this rank listens: that of the loopback interface, if all ranks are `here`, of one launcher;
    else that of the device that gloo uses, or by which this machine reaches the first one."""
    if here:
        return _LOOPBACK
    if device := os.environ.get("GLOO_SOCKET_IFNAME"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
            answer = fcntl.ioctl(found, _GET_ADDRESS, struct.pack("256s", device.partition(",")[0].encode()))
        return socket.inet_ntoa(answer[20:24])
    family, kind, _, _, place = socket.getaddrinfo(os.environ["MASTER_ADDR"], 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as found:
        found.connect(place)  # sends nothing
        return str(found.getsockname()[0])


def launcher_secret() -> bytes | None:
    found = os.environ.get(SECRET)
    return found.encode() if found else None


def fingerprint(secret: bytes) -> str:
    """A proof that ranks have the same secret, which does not reveal it."""
    return sha256(secret).hexdigest()


def new_secret() -> str:
    """A secret that nobody guesses, as an environment variable may have it."""
    return secrets.token_hex(_BYTES)


class _Listener:
    """Accepts a connection of each other rank, until it has them all."""

    def __init__(self, rank: int, size: int, secret: bytes, host: str) -> None:
        self._rank, self._size, self._secret, self._lock = rank, size, secret, Lock()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=128)
        self._socket.settimeout(_LOOK_SECONDS)
        self._closed = False
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.connections: dict[int, Connection] = {}
        self.complete = Event()
        self._thread = Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "_Listener":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not (self._closed or self.complete.is_set()):
            with suppress(OSError):  # nobody came meanwhile, or one who went away again
                found, _ = self._socket.accept()
                Thread(target=self._greet, args=(found,), daemon=True).start()

    def _greet(self, found: socket.socket) -> None:
        """Keep a connection if it is of a rank that is not connected yet and knows the secret; else close it."""
        try:
            found.settimeout(_GREETING_SECONDS)
            peer, kept = self._proven(found), False
            with self._lock:
                if peer is not None and not self.complete.is_set() and peer not in self.connections:
                    self.connections[peer], kept = Connection(found, peer), True
                    if len(self.connections) == self._size - 1:
                        self.complete.set()
            if not kept:
                found.close()
        except OSError:
            found.close()

    def _proven(self, found: socket.socket) -> int | None:
        """The rank that is at the other end; None where it is none."""
        magic, peer, theirs = _HELLO.unpack(_exactly(found, _HELLO.size))
        if magic != _MAGIC or peer >= self._size or peer == self._rank:
            return None
        ours = secrets.token_bytes(_BYTES)
        about = _about(peer, self._rank, self.address, theirs, ours)
        found.sendall(ours + _proof(self._secret, b"owner", about))
        known = hmac.compare_digest(_exactly(found, _BYTES), _proof(self._secret, b"asker", about))
        return int(peer) if known else None


def _dial(rank: int, owner: int, secret: bytes, address: Sequence[Any]) -> Connection:
    """Connect to a rank that listens at this address, HOST and PORT."""
    host, port = address
    try:
        found = socket.create_connection((host, port), timeout=_GREETING_SECONDS)
    except OSError as error:
        raise RuntimeError(f"{error} [rank {owner} at {host}:{port}]") from error
    try:
        ours = secrets.token_bytes(_BYTES)
        found.sendall(_HELLO.pack(_MAGIC, rank, ours))
        theirs, proof = _exactly(found, _BYTES), _exactly(found, _BYTES)
        about = _about(rank, owner, (host, port), ours, theirs)
        if not hmac.compare_digest(proof, _proof(secret, b"owner", about)):
            raise ConnectionError("Another program than the rank answers")
        found.sendall(_proof(secret, b"asker", about))
    except OSError as error:
        found.close()
        raise RuntimeError(f"{error} [rank {owner} at {host}:{port}]") from error
    return Connection(found, owner)


def _about(asker: int, owner: int, address: tuple[str, int], *challenges: bytes) -> bytes:
    """What both ends of a connection have to know alike."""
    host, port = address
    return struct.pack("!IIH", asker, owner, port) + b"".join(challenges) + host.encode()


def _proof(secret: bytes, role: bytes, about: bytes) -> bytes:
    return hmac.digest(secret, role + about, sha256)


def _exactly(found: socket.socket, count: int) -> bytes:
    """So many bytes of somebody of whom nothing is known yet."""
    content = b""
    while len(content) < count:
        more = found.recv(count - len(content))
        if not more:
            raise ConnectionError("Connection closed by peer")
        content += more
    return content
