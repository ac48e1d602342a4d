"""Simulated trainings: their time adds up, and balancing, stragglers and failures do what they do in a real one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.prediction.communication import Links
from experiments.simulation.cluster import Cluster, Simulated, Troubles, simulate
from experiments.simulation.comparing import balancer_maker
from experiments.simulation.published import EpochModelBalancer, SpeedBalancer
from trainer.balancing.speed import TimeModel
from trainer.order import BatchOrder

QUIET = Troubles(jitter=0.0)
ORDER = BatchOrder(rows=40 * 512, global_batch=512, seed=0)
MIXED = [TimeModel(0.002, 1e-4)] * 3 + [TimeModel(0.002, 3e-4)]


def run(lines: list[TimeModel], how: str, troubles: Troubles = QUIET, *, epochs: int = 4, seed: int = 0) -> Simulated:
    links = Links(nodes=len(lines), ranks=len(lines), gbits=10)
    cluster = Cluster(lines=lines, links=links, message_bytes=1e6, step_seconds=0.001, troubles=troubles)
    return simulate(cluster, balancer_maker(how, ORDER), ORDER, epochs=epochs, seed=seed)


def test_equal_ranks_wait_for_nobody() -> None:
    found = run([MIXED[0]] * 4, "off")
    assert found.waiting == pytest.approx(0, abs=1e-9)
    assert found.seconds == pytest.approx(160 * (MIXED[0].seconds(128) + 0.001) + found.all_reduce)
    assert (found.steps, found.rows) == (160, 4 * ORDER.rows)


def test_the_balancers_of_mixed_ranks_come_in_the_order_in_which_they_learn() -> None:
    seconds = {how: run(MIXED, how, epochs=6).seconds for how in ("off", "epoch:1", "cannikin", "steps", "lb-bsp")}
    assert seconds["steps"] < seconds["cannikin"] < seconds["off"]
    assert seconds["lb-bsp"] < seconds["epoch:1"] < seconds["off"]
    assert run(MIXED, "steps", epochs=6).waiting < 0.03 * seconds["steps"]


def test_failures_and_stragglers_cost_what_checkpoints_do_not_save() -> None:
    none = run(MIXED, "steps")
    lost = run(MIXED, "steps", Troubles(jitter=0.0, failures=3000.0))
    assert lost.failures > 0
    assert lost.lost >= lost.failures * Troubles().restart_seconds
    assert lost.efficiency < none.efficiency
    often = Troubles(jitter=0.0, failures=3000.0, checkpoint_minutes=0.002)
    assert run(MIXED, "steps", often).lost < lost.lost
    slow = run(MIXED, "off", Troubles(jitter=0.0, stragglers=300.0, straggler_seconds=1.0))
    assert slow.seconds > run(MIXED, "off").seconds


LINES = st.builds(TimeModel, st.floats(0, 0.01), st.floats(1e-6, 1e-3))


@settings(max_examples=15)
@given(
    lines=st.lists(LINES, min_size=1, max_size=6),
    how=st.sampled_from(["off", "epoch:1", "steps", "lb-bsp", "cannikin"]),
    jitter=st.floats(0, 0.3),
    seed=st.integers(0, 9),
)
def test_whatever_happens_the_parts_are_not_below_zero(
    lines: list[TimeModel], how: str, jitter: float, seed: int
) -> None:
    found = run(lines, how, Troubles(jitter=jitter, stragglers=50.0, failures=5.0), epochs=1, seed=seed)
    parts = (found.ideal, found.waiting, found.all_reduce, found.others, found.checkpoints, found.lost)
    assert min(parts) >= 0
    assert 0 < found.efficiency <= 1
    assert run(lines, how, Troubles(jitter=jitter, stragglers=50.0, failures=5.0), epochs=1, seed=seed) == found


@pytest.mark.parametrize("balancer", [SpeedBalancer(ranks=3), EpochModelBalancer(ranks=3, every=2)])
def test_published_balancers_split_all_rows_also_where_times_are_not_known(
    balancer: SpeedBalancer | EpochModelBalancer,
) -> None:
    for seconds in ([0.0, 0.0, 0.0], [0.1, 0.2, 0.4], [0.1, 0.0, 0.4], [0.1, 0.2, 0.4]):
        split = balancer.split(100)
        assert split.sum() == 100
        assert split.min() >= 0
        balancer.observe(split, np.array(seconds))
