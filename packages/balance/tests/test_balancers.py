import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shoal_balance.balancers import EpochBalancer, StepBalancer, make_balancer, parse_balance

EVERY = 10

speeds = st.lists(st.tuples(st.floats(0, 0.1), st.floats(1e-5, 0.1)), min_size=1, max_size=12)


class SimulatedCluster:
    """Simulated ranks. A step takes fixed + per_row * rows seconds, with relative noise."""

    def __init__(self, fixed, per_row, noise=0.03):
        self.fixed, self.per_row = np.array(fixed), np.array(per_row)
        self.noise = noise
        self.generator = np.random.default_rng(0)

    def seconds(self, rows):
        times = (self.fixed + self.per_row * rows) * (1 + self.noise * self.generator.standard_normal(len(rows)))
        return np.where(rows > 0, times, 0.0)

    def run(self, balancer, steps, total=256):
        splits = []
        for _ in range(steps):
            splits.append(balancer.split(total))
            balancer.observe(splits[-1], self.seconds(splits[-1]))
        return splits

    def idle(self, split):
        """Return the fraction of the step time that ranks wait for the last rank, as a mean over the ranks."""
        times = self.fixed + self.per_row * split
        return float(1 - times.mean() / times.max())


def cluster_and_balancer(fixed, per_row, rates, *, every=EVERY, total=256, noise=0.03):
    return SimulatedCluster(fixed, per_row, noise), StepBalancer(rates=np.array(rates), every=every, total=total)


FITS_AND_SPLITS = """
import hashlib
import numpy as np
from shoal_balance.balancers import StepBalancer, fit_time_model
from shoal_balance.split import equal_finish_split, proportional_split
chance, found = np.random.default_rng(0), hashlib.sha256()
for case in range(300):
    rows = chance.integers(1, 400, 3 + case % 18).astype(float)
    times = (rows * chance.uniform(1e-4, 1e-2, len(rows))).tolist()
    found.update(np.array(fit_time_model(list(zip(rows.tolist(), times)))))
    fixed, weights = chance.uniform(0, 0.1, (2, 1 + case % 64))
    found.update(proportional_split(1000, weights))
    found.update(equal_finish_split(1000, fixed, weights))
balancer = StepBalancer(rates=chance.uniform(1e3, 2e3, 24), every=10, total=4096)
for step in range(60):
    split = balancer.split(4096)
    found.update(split)
    balancer.observe(split, split / 1500 * chance.uniform(0.9, 1.1, 24))
print(found.hexdigest())
"""
UNLIKE_PROCESSORS = (
    {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4,AVX512_ICL,AVX512_SPR"},
    {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4,AVX512_ICL,AVX512_SPR"},
    {"OPENBLAS_CORETYPE": "SkylakeX"},
)
"""Environment variables with which NumPy and its BLAS compute as on older and newer x86 processors. Processors of other
architectures ignore them."""


def test_different_processors_compute_identical_splits():
    found = {
        subprocess.check_output(
            [sys.executable, "-W", "ignore", "-c", FITS_AND_SPLITS],
            cwd=Path(__file__).parents[1],
            env={**os.environ, **processor},
        )
        for processor in UNLIKE_PROCESSORS
    }
    assert len(found) == 1


@given(speeds, st.lists(st.integers(1, 600), min_size=1, max_size=40), st.integers(1, 15))
def test_every_split_has_the_sum_of_the_batch(ranks, totals, every):
    fixed, per_row = zip(*ranks, strict=True)
    rates = np.ones(len(ranks))
    cluster, balancer = cluster_and_balancer(fixed, per_row, rates, every=every, total=max(totals), noise=0.2)
    for total in totals:
        split = balancer.split(total)
        assert split.sum() == total
        assert (split >= 0).all()
        balancer.observe(split, np.abs(cluster.seconds(split)))


@pytest.mark.parametrize("fixed", [0.0, 0.001, 0.01, 0.02, 0.03])
@pytest.mark.parametrize("rate", [1.0, 20.0, 200.0])
def test_a_long_fixed_time_does_not_count_as_a_low_speed(fixed, rate):
    cluster, balancer = cluster_and_balancer([fixed] * 2, [1e-4] * 2, [1e4, rate], total=512)
    splits = cluster.run(balancer, 8 * EVERY, total=512)
    assert cluster.idle(splits[-1]) < 0.05


def made(how, rates, *, every=EVERY, steps_per_epoch=20):
    return make_balancer(how, np.array(rates), every=every, steps_per_epoch=steps_per_epoch, total=256)


@pytest.mark.parametrize(("how", "shares"), [("off", (128, 128)), ("5,3", (160, 96))])
def test_off_keeps_equal_shares_and_fixed_shares_do_not_change(how, shares):
    splits = SimulatedCluster([0, 0], [1e-3, 2e-3]).run(made(how, [2.0, 1.0]), 50)
    assert {tuple(split) for split in splits} == {shares}


def test_epoch_x_rebalances_every_x_epochs():
    cluster = SimulatedCluster([0, 0], [1e-3, 3e-3], noise=0)
    for how, steps in (("epoch:1", 20), ("epoch:0.5", 10), ("epoch:2", 40)):
        splits = cluster.run(made(how, [3.0, 1.0]), 41)
        assert [tuple(split) for split in splits] == [(128, 128)] * steps + [(192, 64)] * (41 - steps)


def test_the_epoch_balancer_keeps_the_share_of_a_rank_without_rows():
    shares = EpochBalancer(ranks=3, every=1)
    shares.observe(np.array([100, 100, 100]), np.array([1.0, 1.0, 1000.0]))
    assert shares.split(64).tolist() == [32, 32, 0]
    shares.observe(np.array([32, 32, 0]), np.array([1.0, 3.0, 0.0]))
    assert shares.split(64).tolist() == [48, 16, 0]


def test_a_single_rank_gets_all_rows():
    for how in ("steps", "off", "epoch:1", "1"):
        assert made(how, [3.0]).split(7).tolist() == [7]


def test_balance_options_are_parsed_or_refused(messages):
    assert parse_balance("steps") == parse_balance("off") == ([], None)
    assert parse_balance("epoch:0.5") == ([], 0.5)
    assert parse_balance("3,1,.5") == ([3.0, 1.0, 0.5], None)
    for text in ("", "epoch", "epoch:", "epoch:0", "epoch:-1", "epoch:x", "epoch:nan", "3,x", "0,0", "-1,2", "inf,1"):
        with messages.raises(ValueError):
            parse_balance(text)
    with messages.raises(ValueError):
        made("1,2", [1.0] * 3)


def test_the_split_is_nearly_balanced_after_the_first_steps():
    cluster = SimulatedCluster([0.005] * 4, [0.001, 0.001, 0.001, 0.001 / 0.56])
    for rates, steps in ((np.array([1.0, 1.0, 1.0, 0.56]), 0), (np.ones(4), 3)):
        splits = cluster.run(StepBalancer(rates=rates, every=EVERY, total=512), 40, total=512)
        assert cluster.idle(splits[steps]) < 0.06
        assert max(cluster.idle(split) for split in splits[10:]) < 0.04


def test_slow_first_steps_do_not_outweigh_the_initial_rates():
    balancer = StepBalancer(rates=np.array([1000.0, 560.0]), every=EVERY, total=256)
    first = balancer.split(256)
    for seconds in ([0.164, 0.4], [0.164, 0.3], [0.164, 0.164]):
        balancer.observe(first, np.array(seconds))
    assert np.abs(balancer.split(256) - first).max() <= 2


def test_initial_rates_count_also_if_times_arrive_late():
    balancer = StepBalancer(rates=np.array([1000.0, 500.0]), every=EVERY, total=300)
    first = balancer.split(300)
    for rows, seconds in (([0, 100], [0.0, 0.2]), ([0, 100], [0.0, 0.2]), ([200, 100], [0.6, 0.2])):
        balancer.observe(np.array(rows), np.array(seconds))
    assert balancer.split(300).tolist() == first.tolist() == [200, 100]


@pytest.mark.parametrize("short", [1, 10, 40])
def test_short_last_batches_do_not_hide_a_change_of_speed(short):
    cluster, balancer = cluster_and_balancer([0.3, 0.3], [3.5e-4, 3.5e-4], [2000.0] * 2, total=4000, noise=0.01)
    for step in range(400):
        if step == 50:
            cluster.per_row[1] *= 1.12
            cluster.fixed[1] *= 1.12
        split = balancer.split(short if step % EVERY == EVERY - 1 else 4000)
        balancer.observe(split, cluster.seconds(split))
    assert cluster.idle(balancer.split(4000)) < 0.015


def test_an_equal_slowdown_of_all_ranks_causes_no_extra_rebalances():
    cluster, balancer = cluster_and_balancer([0.0, 0.0], [1.3e-3, 1.3e-3], [1e3] * 2)
    rebalances, rebalance = [], balancer._rebalance
    balancer._rebalance = lambda: (rebalances.append(1), rebalance())[1]
    cluster.run(balancer, 300)
    assert len(rebalances) <= 300 / EVERY + 4


@pytest.mark.parametrize("factor", [2.0, 0.5])
@pytest.mark.parametrize("start", range(4 * EVERY, 5 * EVERY))
def test_a_change_of_speed_is_followed_after_three_steps(factor, start):
    cluster, balancer = cluster_and_balancer([0.002] * 3, [0.0005] * 3, np.ones(3))
    before = cluster.run(balancer, start)[-1]
    cluster.per_row[1] *= factor
    splits = cluster.run(balancer, 4)
    assert splits[3][1] / before[1] == pytest.approx(3 / (1 + 2 * factor), rel=0.1)


def test_noise_hardly_changes_a_split():
    cluster, balancer = cluster_and_balancer([0.005] * 2, [0.001] * 2, np.ones(2), noise=0.05)
    rows_of_first = [int(split[0]) for split in cluster.run(balancer, 300)[20:]]
    assert max(rows_of_first) - min(rows_of_first) <= 0.06 * 256


def test_a_rank_gets_no_rows_only_after_a_trial_of_one_row():
    cluster, balancer = cluster_and_balancer([0.0, 0.0], [1e-4, 0.5], np.ones(2))
    splits = cluster.run(balancer, 60)
    assert splits[-1].tolist() == [256, 0]
    assert [255, 1] in [split.tolist() for split in splits]


@settings(max_examples=30)
@given(st.integers(1, 30), st.floats(0.05, 5), st.sampled_from([1, 3, EVERY]))
def test_a_rank_recovers_after_a_stall(steps, stall, every):
    cluster, balancer = cluster_and_balancer([0.0, 0.0], [1e-3, 1e-3], np.ones(2), every=every, total=64)
    cluster.run(balancer, 40, total=64)
    cluster.fixed[1] = stall
    cluster.run(balancer, steps, total=64)
    cluster.fixed[1] = 0.0
    splits = cluster.run(balancer, 3 * steps + 20 * EVERY, total=64)
    assert cluster.idle(splits[-1]) < 0.1


def test_trials_of_a_rank_without_rows_become_rarer():
    cluster, balancer = cluster_and_balancer([0.0, 0.0], [1e-3, 0.5], np.ones(2), total=64)
    splits = cluster.run(balancer, 2000, total=64)
    tried = [step for step, split in enumerate(splits) if split[1] > 0]
    assert len([step for step in tried if step >= 100]) <= 5 * 4
    assert any(step >= 1000 for step in tried)
    assert {int(splits[step][1]) for step in tried if step >= 100} == {1}
