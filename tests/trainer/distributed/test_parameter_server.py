"""Tables that ranks keep for each other: what is pulled is what was pushed, and each byte and push is counted."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from trainer.distributed.parameter_server import Finished, ParameterServer

Served = tuple[ParameterServer, list[torch.Tensor]]
RANKS = 3


@pytest.fixture
def servers() -> Iterator[list[Served]]:
    """Three ranks of this process, each with its copies of two tables."""
    store = dist.HashStore()

    def of(rank: int) -> Served:
        groups = [
            dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, RANKS, timedelta(seconds=60))
            for name in ("requests", "answers")
        ]
        tables = [torch.arange(14.0).view(7, 2), torch.arange(12.0).view(4, 3)]
        return ParameterServer(tables, *groups), tables

    with ThreadPoolExecutor(RANKS) as threads:
        found = list(threads.map(of, range(RANKS)))
        yield found
        list(threads.map(lambda served: served[0].close(), found))
    assert not any(thread.is_alive() for server, _ in found for thread in server._threads)


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
    ("error", "ended"),
    [
        (RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer"), []),
        (RuntimeError("shape mismatch"), [1]),
        (IndexError("index 7 is out of bounds"), [1]),
    ],
)
def test_an_owner_that_fails_ends_its_rank_and_a_lost_asker_does_not(
    error: Exception, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        raise error

    statuses = list[int]()
    monkeypatch.setattr(ParameterServer, "_answer", answer)
    monkeypatch.setattr(os, "_exit", statuses.append)
    ParameterServer._serve(ParameterServer.__new__(ParameterServer), 1)
    assert statuses == ended
