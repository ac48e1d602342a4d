"""Parameter server and step queue: each row, byte, push and step is counted once."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.runs import raising
from tests.waiting import PATIENCE
from trainer.distributed.parameter_server import FinishedStep, ParameterServer, StepQueue

Served = tuple[ParameterServer, list[torch.Tensor]]
RANKS = 3


@pytest.fixture
def servers():
    """Three ranks in this process, each with copies of two tables."""
    store = dist.HashStore()

    def of(rank):
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


def test_ranks_pull_pushed_rows_and_count_bytes_and_staleness(servers):
    rows = [torch.tensor([6, 0, 2]), torch.tensor([1])]
    (first, _), (second, copies), (third, _) = servers
    assert second.pull(rows) == [0, 0, 0]
    # Rank 0 owns rows 6 and 0, rank 2 owns row 2, and rank 1 owns row 1 of the other table.
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


def test_gather_gives_all_ranks_the_whole_tables(servers, monkeypatch):
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


def test_all_ranks_take_steps_from_the_first(servers):
    asked = []
    servers[0][0].take_step = lambda finished, stop: asked.append((finished, stop)) or (None if stop else len(asked))
    last = FinishedStep(rank=2, step=7, loss=0.5, rows=9, seconds=0.25)
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
def test_a_failed_owner_ends_its_rank_but_a_lost_peer_does_not(error, ended, monkeypatch):
    statuses = list[int]()
    monkeypatch.setattr(ParameterServer, "_answer", raising(error))
    monkeypatch.setattr(os, "_exit", statuses.append)
    ParameterServer._serve(ParameterServer.__new__(ParameterServer), 1)
    assert statuses == ended


def done(rank: int, step: int) -> FinishedStep:
    return FinishedStep(rank, step, loss=1.0, rows=4, seconds=0.1)


def step_queue(last: int, *, bound: int = 100, first: int = 0) -> StepQueue:
    return StepQueue(first=first, last=last, bound=bound, is_due=lambda _: False)


def take_next(queue: StepQueue, rank: int, held: int | None) -> int | None:
    return queue.take(None if held is None else done(rank, held), stop=False)


@given(
    st.integers(1, 5).flatmap(lambda ranks: st.tuples(st.just(ranks), st.lists(st.integers(0, ranks - 1)))),
    st.integers(1, 6),
    st.integers(0, 40),
)
def test_each_step_is_taken_once_within_the_staleness_bound(turns, bound, first):
    ranks, order = turns
    last = first + 30
    queue = step_queue(last, bound=bound, first=first)
    held: dict[int, int | None] = dict.fromkeys(range(ranks))
    since: dict[int, int] = {}
    finished, taken = 0, []
    for rank in order:
        others = [step for own, step in held.items() if own != rank and step is not None]
        if others and len(taken) + first - min(others) > bound and first + len(taken) < last:
            continue  # it would wait
        if held[rank] is not None:
            assert finished - since[rank] <= bound + ranks - 1
            finished += 1
        held[rank] = take_next(queue, rank, held[rank])
        since[rank] = finished
        if held[rank] is not None:
            taken.append(held[rank])
    assert taken == list(range(first, first + len(taken)))
    assert len(queue.take_reports()) == finished
    assert queue.take_reports() == []


def test_a_request_too_far_ahead_waits_for_the_oldest_step():
    looks = threading.Semaphore(0)

    def is_due(_):
        looks.release()
        return False

    queue = StepQueue(first=0, last=9, bound=2, is_due=is_due)
    assert take_next(queue, 0, None) == 0
    assert [take_next(queue, 1, held) for held in (None, 1)] == [1, 2]
    while looks.acquire(blocking=False):
        pass
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(take_next, queue, 1, 2)
        for _ in range(3):  # it has polled several times
            assert looks.acquire(timeout=PATIENCE)
        assert not request.done()
        assert {take_next(queue, 0, 0), request.result(PATIENCE)} == {3, 4}


@pytest.mark.parametrize("cause", ["stop", "end", "due"])
def test_closing_the_queue_also_ends_waiting_requests(cause):
    due = threading.Event()
    queue = StepQueue(first=0, last=9, bound=1, is_due=lambda _: due.is_set())
    assert [take_next(queue, rank, None) for rank in (0, 1)] == [0, 1]
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(take_next, queue, 1, 1)
        if cause == "stop":
            assert queue.take(done(0, 0), stop=True) is None
        elif cause == "end":
            queue.close()
        else:
            due.set()
        assert request.result(PATIENCE) is None
    assert queue.take(None, stop=False) is None
    assert queue.closed


def test_an_empty_queue_is_not_closed():
    queue = step_queue(5, first=3)
    assert [take_next(queue, 0, None), take_next(queue, 1, None), take_next(queue, 0, 3)] == [3, 4, None]
    assert take_next(queue, 1, 4) is None
    assert not queue.closed
    assert [each.step for each in queue.take_reports()] == [3, 4]
