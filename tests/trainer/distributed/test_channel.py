"""Connections between ranks: whoever does not know their secret gets none, and no message is larger than the tables."""

import os
import pickle
import socket
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from common.errors import TrainingError
from trainer.distributed import channel, collectives
from trainer.distributed.channel import Connections
from trainer.distributed.dealer import Finished
from trainer.distributed.parameter_server import ParameterServer, common_secret, joined

ROWS, COLUMNS = 5, 3
PULL, PUSH, TAKE = 1, 2, 3


class Gathering:
    """Gathers values of threads that play the ranks; a guest may look at the addresses before any rank has them."""

    def __init__(self, size: int, guest=lambda _addresses: None) -> None:
        self._values: list[Any] = [None] * size
        self._barrier = Barrier(size, lambda: guest(self._values))

    def of(self, rank: int):
        def gather(mine: Any) -> list[Any]:
            self._values[rank] = mine
            self._barrier.wait(240)
            return self._values

        return gather


def connected(secrets: Sequence[bytes], guest=lambda _addresses: None) -> list[Connections]:
    """The connections of ranks that have these secrets, in threads."""
    size, gathering = len(secrets), Gathering(len(secrets), guest)
    with ThreadPoolExecutor(size) as threads:
        running = [
            threads.submit(channel.connect, rank, size, own, host="127.0.0.1", gather=gathering.of(rank))
            for rank, own in enumerate(secrets)
        ]
        return [each.result() for each in running]


def told(by: socket.socket, message: bytes) -> bytes:
    """What comes back for a message before the connection ends."""
    by.sendall(message)
    try:
        return by.recv(1)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_that_know_the_secret_are_all_connected(size: int) -> None:
    found = connected([b"secret"] * size)
    for rank, own in enumerate(found):
        assert set(own.asked) == set(own.asking) == set(range(size)) - {rank}
        for other, connection in own.asked.items():
            assert connection._socket.gettimeout() is None  # a step may take longer than a greeting
            connection.send(struct.pack("<q", 10 * rank + other))
    for rank, own in enumerate(found):
        for other, connection in own.asking.items():
            assert connection.receive(struct.Struct("<q")) == (10 * other + rank,)
    for own in found:
        own.close()


def test_ranks_of_one_launcher_listen_on_the_loopback_interface_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(channel.SECRET, "secret")
    addresses: list[Any] = []
    gathering = Gathering(2, addresses.extend)

    def met(rank: int) -> list[int]:
        with joined(SimpleNamespace(rank=rank, world_size=2, gather=gathering.of(rank)), b"secret") as found:
            return [*found.asked, *found.asking]

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(met, range(2))) == [[1, 1], [0, 0]]
    assert {host for host, _ in addresses} == {"127.0.0.1"}


def test_a_rank_with_another_secret_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Another program than the rank answers \[rank [01] at 127.0.0.1:\d+\]"):
        connected([b"secret", b"another"])


@pytest.mark.parametrize("secret", [b"", b"guessed"])
def test_a_stranger_who_comes_first_as_a_rank_gets_nothing_and_keeps_nobody_out(secret: bytes) -> None:
    strangers: list[bytes] = []

    def guest(addresses: list[Any]) -> None:
        host, port = addresses[0]
        with socket.create_connection((host, port)) as own:
            own.sendall(channel._HELLO.pack(channel._MAGIC, 1, bytes(32)))
            answer = channel._exactly(own, 64)
            proof = channel._proof(secret, b"asker", channel._about(1, 0, (host, port), bytes(32), answer[:32]))
            strangers.append(told(own, proof + struct.pack("<BqI", PULL, 0, 1) + bytes(8)))
        with socket.create_connection((host, port)) as other:
            strangers.append(told(other, b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: everything\r\n\r\n"))

    for own in connected([b"secret", b"secret"], guest):
        own.close()
    assert strangers == [b"", b""]


def test_nobody_can_pass_a_proof_on_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "MEETING_TIMEOUT", timedelta(seconds=0.3))

    def guest(addresses: list[Any]) -> None:
        real, relay = addresses[1], socket.create_server(("127.0.0.1", 0))
        addresses[1] = relay.getsockname()

        def pass_on() -> None:
            found, _ = relay.accept()
            with relay, found, socket.create_connection(real) as to:
                to.sendall(channel._exactly(found, channel._HELLO.size))
                found.sendall(channel._exactly(to, 64))
                found.recv(32)

        relaying.submit(pass_on)

    with ThreadPoolExecutor(1) as relaying, pytest.raises(RuntimeError, match="Another program than the rank answers"):
        connected([b"secret", b"secret"], guest)


def secrets_of(monkeypatch: pytest.MonkeyPatch, handed: Sequence[str | None], trusting: Sequence[bool]) -> list[bytes]:
    """The secrets that ranks agree on, in turn: what each was handed by its launcher, and whether it trusts."""
    told = [(own and channel.fingerprint(own.encode()), trusts) for own, trusts in zip(handed, trusting, strict=True)]
    found = []
    for own, trusts in zip(handed, trusting, strict=True):
        monkeypatch.setenv(channel.SECRET, own or "")
        ranks = SimpleNamespace(world_size=len(handed), gather=lambda _mine: told, broadcast=lambda _new: "first's")
        found.append(common_secret(ranks, trusts_network=trusts))
    return found


def test_ranks_of_one_launcher_have_its_secret_and_need_trust_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert secrets_of(monkeypatch, ["s", "s"], [False, False]) == [b"s", b"s"]


@pytest.mark.parametrize("handed", [(None, None), ("a", "b"), ("a", None)])
def test_ranks_of_several_launchers_need_a_network_that_is_trusted(
    monkeypatch: pytest.MonkeyPatch, handed: tuple[str | None, ...]
) -> None:
    assert secrets_of(monkeypatch, handed, [True, True]) == [b"first's"] * 2
    for trusting in ([False, False], [True, False]):
        with pytest.raises(TrainingError, match=r"--trust-network where nobody else uses the network"):
            secrets_of(monkeypatch, handed, trusting)


def test_ranks_of_one_launcher_listen_where_no_other_machine_reaches_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert channel.own_address(here=True) == "127.0.0.1"
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    for device in ("lo", ""):
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", device)
        assert channel.own_address(here=False) == "127.0.0.1"


@pytest.fixture
def asker() -> Iterator[Any]:
    """The end of a connection at which another rank would ask for rows of a table."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    here, there = connected([b"secret", b"secret"])
    server = ParameterServer([torch.arange(ROWS * COLUMNS, dtype=torch.float32).view(ROWS, COLUMNS)], here)
    server.deal = lambda finished, stop: None if stop else 7 if finished is None else finished.step + 1
    yield SimpleNamespace(**{name: getattr(there.asked[0], name) for name in ("send", "receive")}, server=server)
    for own in (here, there):
        own.close()
    dist.destroy_process_group()


def ids(*rows: int) -> bytes:
    return struct.pack(f"<{len(rows)}q", *rows)


def test_rows_are_pulled_pushed_and_steps_are_taken(asker) -> None:
    for pulled, staleness in ((0, (1, 0, 0)), (1, (2, 0, 0)), (0, (3, 2, 2)), (2, (4, 3, 2))):
        asker.send(struct.pack("<BqI", PUSH, pulled, 2), ids(4, 1), torch.ones(2, COLUMNS).numpy())
        assert asker.receive(struct.Struct("<q")) == (0,)
        found = asker.server.staleness
        assert (found.pushes, found.total, found.most) == staleness
    asker.send(struct.pack("<BqI", PULL, 0, 2), ids(1, 0))
    assert asker.receive(struct.Struct("<q6f")) == (4, 7.0, 8.0, 9.0, 0.0, 1.0, 2.0)
    for (stop, finished, step), expected in (((False, False, 0), 7), ((False, True, 30), 31), ((True, False, 0), -1)):
        asker.send(struct.pack("<BqI", TAKE, 0, 0), struct.pack("<??qdqd", stop, finished, step, 0.5, 10, 0.1))
        assert asker.receive(struct.Struct("<q")) == (expected,)


Served = tuple[ParameterServer, list[torch.Tensor]]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Served]]:
    """Three ranks of this process, each with its copies of two tables."""
    connections, found = connected([b"secret"] * 3), list[Served]()
    for rank, own in enumerate(connections):
        monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
        monkeypatch.setattr(dist, "get_world_size", lambda: 3)
        tables = [torch.arange(14.0).view(7, 2), torch.arange(12.0).view(4, 3)]
        found.append((ParameterServer(tables, own), tables))
    yield found
    for own in connections:
        own.close()


def test_ranks_pull_what_others_pushed_and_count_its_bytes_and_staleness(servers: list[Served]) -> None:
    rows = [torch.tensor([6, 0, 2]), torch.tensor([1])]
    (first, _), (second, copies), (third, _) = servers
    assert second.pull(rows) == [0, 0, 0]
    # Rows 6 and 0 are of rank 0, row 2 of rank 2, and row 1 of the other table its own.
    assert second.traffic.bytes == 2 * (8 + 8) + (8 + 8)
    for pusher in (third, first):
        pusher.push(rows, [torch.ones(3, 2), torch.full((1, 3), 0.5)], [0, 0, 0])
    assert torch.equal(copies[0], torch.arange(14.0).view(7, 2))
    assert second.pull(rows) == [2, 2, 2]
    assert copies[0].tolist() == [[2, 3], [2, 3], [6, 7], [6, 7], [8, 9], [10, 11], [14, 15]]
    assert copies[1].tolist() == [[0, 1, 2], [4, 5, 6], [6, 7, 8], [9, 10, 11]]
    second.push(rows, [torch.ones(3, 2), torch.ones(1, 3)], [1, 2, 0])
    assert [(each.staleness.pushes, each.staleness.total, each.staleness.most) for each, _ in servers] == [
        (3, 2, 1),
        (3, 1, 1),
        (3, 3, 2),
    ]
    assert [each.traffic.steps for each, _ in servers] == [1, 1, 1]
    assert [each.traffic.bytes for each, _ in servers] == [16 + 20, 3 * 48, 2 * 16 + 20]


def test_all_ranks_gather_what_each_keeps(servers: list[Served], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [torch.tensor([6, 0, 2]), torch.tensor([1])]
    for each, _ in servers:
        each.push(rows, [torch.ones(3, 2), torch.ones(1, 3)], [0, 0, 0])
    kept = [{table.shape[1]: table.clone() for table in each._shard.tables} for each, _ in servers]
    monkeypatch.setattr(dist, "broadcast", lambda part, src: part.copy_(kept[src][part.shape[1]]))
    expected = torch.arange(14.0).view(7, 2), torch.arange(12.0).view(4, 3)
    for table, ids in zip(expected, rows, strict=True):
        table[ids] += 3
    for each, copies in servers:
        each.gather()
        assert all(map(torch.equal, copies, expected))


def test_the_first_rank_deals_the_steps_of_all(servers: list[Served]) -> None:
    asked = []
    servers[0][0].deal = lambda finished, stop: asked.append((finished, stop)) or (None if stop else len(asked))
    last = Finished(rank=2, step=7, loss=0.5, rows=9, seconds=0.25)
    found = [
        servers[rank][0].take(done, stop=stop)
        for rank, done, stop in ((0, None, False), (2, last, False), (1, None, True))
    ]
    assert found == [1, 2, None]
    assert asked == [(None, False), (last, False), (None, True)]


@pytest.mark.parametrize(
    ("request_", "content"),
    [
        ((PULL, 0, ROWS + 1), ids(*range(ROWS + 1))),
        ((PULL, 0, (1 << 32) - 1), b""),
        ((PULL, 0, 1), ids(ROWS)),
        ((PULL, 0, 2), ids(0, -1)),
        ((PUSH, 0, 1), ids(1 << 40) + bytes(4 * COLUMNS)),
        ((0, 0, 0), b""),
        ((4, 0, 0), b""),
        ((255, 0, 1), ids(0)),
    ],
)
def test_a_request_that_does_not_fit_the_tables_ends_the_connection(asker, request_, content: bytes) -> None:
    asker.send(struct.pack("<BqI", *request_), content)
    with pytest.raises(RuntimeError, match=r"rank 0"):
        asker.receive(struct.Struct("<q"))


def test_values_of_ranks_are_read_without_executing_anything(tmp_path: Path) -> None:
    class Order:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    content = BytesIO()
    torch.save(Order(), content)
    with pytest.raises(pickle.UnpicklingError):
        collectives._unpacked(torch.frombuffer(content.getbuffer(), dtype=torch.uint8))
    assert not (tmp_path / "made").exists()
    value = {"a": (1, 2.5, None, "x"), "b": [{3}, torch.ones(2)], 4: True}
    assert str(collectives._unpacked(collectives._packed(value))) == str(value)
