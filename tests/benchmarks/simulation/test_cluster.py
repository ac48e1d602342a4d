"""Simulated trainings: their time adds up, and balancing, stragglers and failures do what they do in a real one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation.cluster import Cluster, Simulated, Troubles, simulate
from benchmarks.simulation.comparing import balancer_maker, growing
from benchmarks.simulation.making import cluster_of_nodes
from benchmarks.simulation.published import EpochModelBalancer, SpeedBalancer
from experiments.forecast.communication import Links
from trainer.balancing.speed import TimeModel
from trainer.order import BatchOrder

QUIET = Troubles(jitter=0.0)
ORDER = BatchOrder(rows=40 * 512, global_batch=512, seed=0)
MIXED = [TimeModel(0.002, 1e-4)] * 3 + [TimeModel(0.002, 3e-4)]


def run(
    lines: list[TimeModel],
    how: str,
    troubles: Troubles = QUIET,
    *,
    epochs: int = 4,
    seed: int = 0,
    all_reduce: float = 0.002,
    overlapping: bool = False,
) -> Simulated:
    cluster = Cluster(
        lines=lines,
        all_reduce=all_reduce,
        overlapping=overlapping,
        others=TimeModel(0.0005, 1e-6),
        troubles=troubles,
    )
    return simulate(cluster, balancer_maker(how, ORDER), ORDER, epochs=epochs, seed=seed)


def test_equal_ranks_wait_for_nobody() -> None:
    found = run([MIXED[0]] * 4, "off")
    assert found.waiting == pytest.approx(0, abs=1e-9)
    assert found.all_reduce == pytest.approx(160 * 0.002)
    assert found.others == pytest.approx(160 * (0.0005 + 512e-6))
    assert found.seconds == pytest.approx(160 * MIXED[0].seconds(128) + found.all_reduce + found.others)
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


def test_a_sum_that_overlaps_costs_what_is_longer_than_the_backward_pass() -> None:
    backward = MIXED[0].seconds(128) * 2 / 3
    hidden, seen = (run([MIXED[0]] * 4, "off", all_reduce=took, overlapping=True) for took in (0.009, 0.012))
    assert hidden.all_reduce == 0
    assert seen.all_reduce == pytest.approx(160 * (0.012 - backward))
    assert run([MIXED[0]] * 4, "off", all_reduce=0.012).all_reduce == pytest.approx(160 * 0.012)


def test_shares_by_the_last_epoch_are_equal_for_just_one_epoch() -> None:
    equal, one, many = (run(MIXED, how, epochs=epochs) for how, epochs in (("off", 1), ("epoch:1", 1), ("epoch:1", 9)))
    assert one == equal
    assert many.waiting < 1.5 * one.waiting


def test_a_failure_repeats_only_what_was_done_since_the_checkpoint() -> None:
    found = run(MIXED, "steps", Troubles(jitter=0.0, failures=30_000.0))
    plain = run(MIXED, "steps")
    assert found.failures > 10
    assert found.lost <= found.failures * (plain.seconds + Troubles().restart_seconds)


def test_a_cluster_of_the_catalogue_has_its_gpus_and_sends_less_of_small_batches() -> None:
    of = {"gradients": None, "troubles": QUIET}
    small, large = (
        cluster_of_nodes(["g5.12xlarge"] * 2, global_batch=batch, overlapping=False, **of) for batch in (256, 65_536)
    )
    whole = cluster_of_nodes(["g5.12xlarge"] * 2, global_batch=256, overlapping=True, **of)
    assert len(small.lines) == 8
    assert small.all_reduce < large.all_reduce == whole.all_reduce


GOYAL = TimeModel(0.0, 0.18 / 32)
"""A P100 takes 120 ms for the backward pass of 32 images, and half as long for the forward pass."""


@pytest.mark.parametrize(("overlapping", "low", "high"), [(True, 0.90, 0.98), (False, 0.70, 0.85)])
def test_256_gpus_train_a_resnet_nearly_as_efficiently_as_was_published(
    overlapping: bool, low: float, high: float
) -> None:
    """Goyal et al. (2017) reached about 90% from 8 to 256 GPUs, with 100 MB of gradients over 50 Gbit Ethernet."""
    rates = []
    for nodes in (1, 32):
        order = BatchOrder(rows=8 * nodes * 32 * 40, global_batch=8 * nodes * 32, seed=0)
        took = Links(nodes=nodes, ranks=8 * nodes, gbits=50).all_reduce_seconds(100e6) if nodes > 1 else 0.0
        cluster = Cluster(
            lines=[GOYAL] * 8 * nodes,
            all_reduce=took,
            overlapping=overlapping,
            others=TimeModel(0.001, 0.0),
            troubles=Troubles(),
        )
        found = simulate(cluster, balancer_maker("off", order), order, epochs=1)
        rates.append(found.rows / found.seconds)
    assert low < rates[1] / (32 * rates[0]) < high


def test_sizes_double_up_to_the_one_that_is_asked_for() -> None:
    assert growing(2) == [1, 2]
    assert growing(256) == [1 << power for power in range(9)]
    assert growing(100) == [1, 2, 4, 8, 16, 32, 64, 100]


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
