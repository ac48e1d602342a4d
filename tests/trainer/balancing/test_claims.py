"""Ranks that claim pieces compute every row once, and claim only if it makes steps shorter."""

import heapq
from collections.abc import Sequence

import numpy as np
import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.balancing.claims import ClaimPlanner, StepPlan, StepTimes, piece_sizes
from trainer.balancing.split import proportional_split
from trainer.step_planner import ClaimCounter


@given(st.integers(0, 3000), st.integers(1, 20), st.floats(0, 500))
def test_pieces_are_the_pool_and_become_smaller_down_to_the_smallest(pool: int, ranks: int, smallest: float) -> None:
    sizes = piece_sizes(pool, ranks, smallest)
    assert sum(sizes) == pool
    assert list(sizes) == sorted(sizes, reverse=True)
    assert all(size >= max(1, smallest) for size in sizes[:-1])
    if pool:
        assert sizes[0] <= max(smallest, pool / (2 * ranks)) + 1


def made(pool: float, smallest: float = 2.0) -> ClaimPlanner:
    """Claims that were found to be worth while."""
    claims = ClaimPlanner()
    claims._pool, claims._smallest = pool, smallest
    return claims


@settings(max_examples=200)
@given(
    splits=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any), min_size=1, max_size=3),
    pool=st.floats(0, 0.2),
    smallest=st.floats(0.5, 20),
    seed=st.integers(0, 2**32),
)
def test_whoever_comes_when_every_row_of_every_step_is_computed_once(
    splits: list[list[int]], pool: float, smallest: float, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    store = dist.HashStore()
    store.add("claimed", 17)  # of ranks before these
    ranks = len(splits[0])
    counters = [ClaimCounter(store, ClaimCounter.position(store)) for _ in range(ranks)]
    claims = [made(pool, smallest) for _ in range(ranks)]
    for split in splits:
        split = (split * ranks)[:ranks]
        if not any(split):
            continue
        lengths = chance.integers(1, 30, sum(split)).astype(np.uint16)
        plans = [each.plan(np.array(split)) for each in claims]
        computed = [plan.own_rows(lengths, rank) for rank, plan in enumerate(plans)]
        assert [len(rows) for rows in computed] == plans[0].share.tolist()
        asking = {rank: counters[rank].claim_pieces(plan, rank, "at step 1") for rank, plan in enumerate(plans)}
        while asking:  # any of them may be the next to come free
            rank = int(chance.choice(list(asking)))
            number = next(asking[rank], None)
            if number is None:
                del asking[rank]
                continue
            computed.append(plans[rank].piece_rows(lengths, number))
            assert len(computed[-1]) == plans[rank].pieces[number]
        assert sorted(np.concatenate(computed).tolist()) == list(range(sum(split)))


def test_pieces_get_the_same_mixture_of_lengths_as_shares() -> None:
    lengths = np.random.default_rng(0).integers(1, 101, 4000).astype(np.uint16)
    plan = made(0.2, 50).plan(np.array([2000, 2000]))
    for rows in (
        plan.own_rows(lengths, 0),
        plan.own_rows(lengths, 1),
        *(plan.piece_rows(lengths, n) for n in range(len(plan.pieces))),
    ):
        assert lengths[rows].mean() == pytest.approx(lengths.mean(), abs=2.5)


def test_a_much_slower_rank_keeps_its_share_and_claims_nothing() -> None:
    plan = made(0.2).plan(np.array([1000, 1000, 499, 0]))
    assert [plan.may_claim(rank) for rank in range(4)] == [True, True, False, False]
    assert plan.share[2:].tolist() == [499, 0]
    assert abs(plan.share[0] - plan.share[1]) <= 1
    assert sum(plan.pieces) == int(0.2 * 2499) == 2000 - plan.share[:2].sum()
    assert plan.counter_steps == len(plan.pieces) + 2


@pytest.mark.parametrize("split", [[100], [100, 20], [9, 8], [300, 0]])
def test_where_there_are_not_two_to_claim_or_not_enough_to_claim_there_is_no_pool(split: list[int]) -> None:
    plan = made(0.2).plan(np.array(split))
    assert (plan.share.tolist(), plan.pieces, plan.counter_steps) == (split, (), 0)


def test_where_claims_are_not_wanted_there_is_never_a_pool() -> None:
    claims = ClaimPlanner(enabled=False)
    for _ in range(100):
        assert claims.plan(np.array([50, 50])).pieces == ()
        claims.observe(step(claims_plan := StepPlan(share=np.array([50, 50])), [1.0, 3.0], 0.0))
        assert claims_plan.counter_steps == 0


def step(plan: StepPlan, per_row: Sequence[float], cost: float) -> StepTimes:
    """Ranks that need so long for a row, and `cost` for their share and each piece, in a step; they claim."""
    ranks = len(per_row)
    seconds = np.array([cost + per_row[rank] * plan.share[rank] for rank in range(ranks)])
    free = [(seconds[rank], rank) for rank in range(ranks) if plan.may_claim(rank)]
    heapq.heapify(free)
    claimed, count, claiming = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64), np.zeros(ranks)
    for size in plan.pieces:
        when, rank = heapq.heappop(free)
        spent = cost + per_row[rank] * size
        claimed[rank] += size
        count[rank] += 1
        claiming[rank] += spent
        heapq.heappush(free, (when + spent, rank))
    return StepTimes(rows=plan.share, seconds=seconds, claimed=claimed, pieces=count, claiming=claiming)


def simulated(speeds: Sequence[float], jitter: float, cost: float, *, steps: int = 600) -> tuple[float, float]:
    """How long steps of 1,000 rows take, of which balanced ones without noise take 1 and `cost`; and what share of
    them had a pool."""
    chance, claims, took, pools = np.random.default_rng(0), ClaimPlanner(), 0.0, 0
    split = proportional_split(1000, np.array(speeds))
    for _ in range(steps):
        plan = claims.plan(split)
        noise = np.maximum(0.3, chance.normal(1.0, jitter, len(speeds)))
        found = step(plan, (noise * sum(speeds) / np.array(speeds) / 1000).tolist(), cost)
        claims.observe(found)
        took += float((found.seconds + found.claiming).max())
        pools += bool(plan.pieces)
    return took / steps, pools / steps


@pytest.mark.parametrize(
    ("speeds", "jitter", "without"),
    [
        ([1, 1], 0.05, 1.028),
        ([1, 1], 0.08, 1.046),
        ([1, 1], 0.12, 1.068),
        ([1, 1, 1, 0.56], 0.05, 1.052),
        ([1] * 4, 0.12, 1.123),
    ],
)
def test_ranks_of_jittery_speed_wait_less_by_claims(speeds: list[float], jitter: float, without: float) -> None:
    cost = 0.002
    took, pools = simulated(speeds, jitter, cost)
    assert took < 1 + cost + 0.45 * (without - 1)
    assert pools > 0.9


@pytest.mark.parametrize(("speeds", "jitter"), [([1, 1], 0.01), ([1, 0.3], 0.0), ([1] * 4, 0.01)])
def test_ranks_of_steady_speed_claim_nothing(speeds: list[float], jitter: float) -> None:
    assert simulated(speeds, jitter, 0.002)[1] == 0


def test_what_costs_more_than_it_brings_is_tried_less_and_less_often() -> None:
    took, pools = simulated([1, 1], 0.08, 0.1, steps=4000)
    assert took == pytest.approx(simulated([1, 1], 0.08, 0.1, steps=20)[0], rel=0.03)
    assert 0 < pools < 0.1


@given(st.lists(st.integers(0, 100), min_size=2, max_size=30).filter(any), st.integers(0, 99))
def test_a_pool_leaves_its_ranks_half_of_their_rows_or_more(split: list[int], seed: int) -> None:
    claims, chance = ClaimPlanner(), np.random.default_rng(seed)
    for _ in range(30):
        plan = claims.plan(np.array(split))
        assert (2 * plan.share + len(split) >= np.array(split)).all()
        assert plan.share.sum() + sum(plan.pieces) == sum(split)
        claims.observe(step(plan, chance.uniform(0.001, 0.004, len(split)).tolist(), 0.0))


def test_ranks_that_begin_to_be_jittery_begin_to_claim() -> None:
    claims, chance = ClaimPlanner(), np.random.default_rng(1)
    found = []
    for number in range(200):
        plan = claims.plan(np.array([500, 500]))
        found.append(bool(plan.pieces))
        jitter = 0.12 if number >= 100 else 0.01
        claims.observe(step(plan, chance.normal(0.002, 0.002 * jitter, 2).tolist(), 0.002))
    assert not any(found[:100])
    assert all(found[120:])


def test_ranks_that_know_the_same_plan_the_same() -> None:
    chance, several = np.random.default_rng(2), [ClaimPlanner() for _ in range(3)]
    for number in range(300):
        split = np.array([400 + number % 7, 600 - number % 7])
        first, *others = [each.plan(split) for each in several]
        for other in others:
            assert (other.pieces, other.share.tolist()) == (first.pieces, first.share.tolist())
        told = step(first, chance.normal(0.002, 0.0003, 2).tolist(), 0.002)
        for each in several:
            each.observe(told)
