"""Steps that are dealt to ranks one by one: each once, none too far ahead, and none after an end."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import PATIENCE
from trainer.distributed.parameter_server import Dealer, Finished


def done(rank: int, step: int) -> Finished:
    return Finished(rank, step, loss=1.0, rows=4, seconds=0.1)


def dealer(last: int, *, bound: int = 100, first: int = 0) -> Dealer:
    return Dealer(first=first, last=last, bound=bound, is_due=lambda _: False)


def next_of(made: Dealer, rank: int, held: int | None) -> int | None:
    return made.take(None if held is None else done(rank, held), stop=False)


@given(
    st.integers(1, 5).flatmap(lambda ranks: st.tuples(st.just(ranks), st.lists(st.integers(0, ranks - 1)))),
    st.integers(1, 6),
    st.integers(0, 40),
)
def test_each_step_is_dealt_once_and_as_stale_as_the_bound_allows_at_most(
    turns: tuple[int, list[int]], bound: int, first: int
) -> None:
    ranks, order = turns
    last = first + 30
    made = dealer(last, bound=bound, first=first)
    held: dict[int, int | None] = dict.fromkeys(range(ranks))
    since: dict[int, int] = {}
    finished, dealt = 0, []
    for rank in order:
        others = [step for own, step in held.items() if own != rank and step is not None]
        if others and len(dealt) + first - min(others) > bound and first + len(dealt) < last:
            continue  # it would wait
        if held[rank] is not None:
            assert finished - since[rank] <= bound + ranks - 1
            finished += 1
        held[rank] = next_of(made, rank, held[rank])
        since[rank] = finished
        if held[rank] is not None:
            dealt.append(held[rank])
    assert dealt == list(range(first, first + len(dealt)))
    assert len(made.take_reports()) == finished
    assert made.take_reports() == []


@pytest.fixture
def threads() -> Iterator[list[threading.Thread]]:
    """Threads that have ended when the test has."""
    started: list[threading.Thread] = []
    yield started
    for each in started:
        each.join(30)
        assert not each.is_alive()


def test_who_asks_for_a_step_too_far_ahead_waits_for_the_oldest_one(threads: list[threading.Thread]) -> None:
    looks = threading.Semaphore(0)

    def is_due(_: int) -> bool:
        looks.release()
        return False

    made = Dealer(first=0, last=9, bound=2, is_due=is_due)
    assert next_of(made, 0, None) == 0
    assert [next_of(made, 1, held) for held in (None, 1)] == [1, 2]
    while looks.acquire(blocking=False):
        pass
    got: list[int | None] = []
    threads.append(threading.Thread(target=lambda: got.append(next_of(made, 1, 2))))
    threads[0].start()
    for _ in range(3):  # it has looked again and again
        assert looks.acquire(timeout=PATIENCE)
    assert got == []
    assert next_of(made, 0, 0) in (3, 4)
    threads[0].join(30)
    assert len(got) == 1
    assert got[0] in (3, 4)


@pytest.mark.parametrize("how", ["stop", "end", "due"])
def test_an_end_is_for_all_ranks_also_for_those_that_wait(threads: list[threading.Thread], how: str) -> None:
    due = threading.Event()
    made = Dealer(first=0, last=9, bound=1, is_due=lambda _: due.is_set())
    assert [next_of(made, rank, None) for rank in (0, 1)] == [0, 1]
    got: list[int | None] = []
    threads.append(threading.Thread(target=lambda: got.append(next_of(made, 1, 1))))
    threads[0].start()
    if how == "stop":
        assert made.take(done(0, 0), stop=True) is None
    elif how == "end":
        made.end()
    else:
        due.set()
    threads[0].join(30)
    assert got == [None]
    assert made.take(None, stop=False) is None
    assert made.ended


def test_after_the_last_step_there_is_none_for_now_and_no_end_was_asked_for() -> None:
    made = dealer(5, first=3)
    assert [next_of(made, 0, None), next_of(made, 1, None), next_of(made, 0, 3)] == [3, 4, None]
    assert next_of(made, 1, 4) is None
    assert not made.ended
    assert [each.step for each in made.take_reports()] == [3, 4]
