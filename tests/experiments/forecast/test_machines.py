"""One machine for all of the work, beside clusters."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.forecast.cluster import ClusterWork, Prediction, Stage
from experiments.forecast.estimate import Estimate
from experiments.forecast.machines import FASTTEXT, HERE, LSTM, MachinePlan, MachineSpeed, beats, best, plans
from infra import catalog, topology
from tests.experiments.forecast.test_one_machine import OWN

_ONE_NODE = {"name": "x", "description": "x", "training": [{"instance_type": "g5.xlarge", "count": 1}]}
WORK = ClusterWork(rows=21_300_000, raw_bytes=92.45e9, epochs=10)


def machine(name: str, model: str, seconds: float, dollars: float) -> MachinePlan:
    return MachinePlan(
        name=name, model=model, seconds=Estimate.exact(seconds), dollars=Estimate.exact(dollars), stages={}
    )


def test_every_kind_with_a_price_is_planned_with_the_model_that_it_can_train() -> None:
    found = plans(WORK, "us-east-1")
    types = catalog.catalog().types
    assert found[0].name == HERE
    assert found[0].dollars == Estimate.exact(0.0)
    assert {each.model for each in found[1:] if types[each.name].gpu} == {LSTM}
    assert {each.model for each in found[1:] if not types[each.name].gpu} == {FASTTEXT}
    assert not any(types[each.name].retired for each in found[1:])
    for each in found[1:]:
        assert 0 < each.seconds.low < each.seconds.middle < each.seconds.high
        assert sum(each.stages.values()) == pytest.approx(each.seconds.middle)
        assert list(each.stages) == ["start", "download", "preprocess", "train"]


@given(st.floats(0.05, 100), st.floats(0.05, 10))
def test_a_machine_that_was_measured_takes_as_much_less_time_as_it_is_faster(together: float, alone: float) -> None:
    one, measured = (
        plans(WORK, "us-east-1", here=here)[0].stages
        for here in (MachineSpeed(together=1.0, alone=1.0), MachineSpeed(together=together, alone=alone))
    )
    assert measured["train"] == pytest.approx(one["train"] / alone)
    assert one["preprocess"] / max(together, alone) <= measured["preprocess"] * 1.000001
    assert measured["preprocess"] <= one["preprocess"] / min(together, alone) * 1.000001


def test_what_this_machine_trains_by_its_own_rates_is_planned_too() -> None:
    work = replace(WORK, rows=100_000, raw_bytes=None)
    by_fasttext, by_rates, *_ = plans(work, "us-east-1", rates=OWN)
    assert (by_fasttext.name, by_fasttext.model) == (HERE, FASTTEXT)
    assert (by_rates.name, by_rates.model, by_rates.dollars.high) == (HERE, LSTM, 0.0)
    assert by_rates.seconds.middle == pytest.approx(7 + 10 * 1e-3 * work.training.rows)


@given(st.integers(1_000, 10**8), st.floats(1e6, 1e12), st.integers(1, 20))
def test_more_work_takes_longer_and_costs_more(rows: int, raw: float, epochs: int) -> None:
    work = ClusterWork(rows=rows, raw_bytes=raw, epochs=epochs)
    more = replace(work, rows=2 * rows, raw_bytes=2 * raw)
    for less, other in zip(plans(work, "us-east-1"), plans(more, "us-east-1"), strict=True):
        assert less.seconds.middle < other.seconds.middle
        assert less.dollars.middle <= other.dollars.middle


def test_a_dataset_that_is_there_is_neither_downloaded_nor_preprocessed() -> None:
    for each in plans(replace(WORK, raw_bytes=None), "us-east-1"):
        assert (each.stages.get("download", 0.0), each.stages["preprocess"]) == (0.0, 0.0)


def test_a_region_without_prices_leaves_this_machine() -> None:
    assert [each.name for each in plans(WORK, "eu-nowhere-1")] == [HERE]


@given(st.lists(st.tuples(st.sampled_from([FASTTEXT, LSTM]), st.floats(1, 1e6), st.floats(0.01, 1e4)), max_size=20))
def test_a_dearer_machine_is_named_where_it_is_faster_by_a_quarter(kinds: list[tuple[str, float, float]]) -> None:
    found = [machine(HERE, FASTTEXT, 10, 0), *(machine(str(n), *each) for n, each in enumerate(kinds))]
    chosen = best(found)
    assert chosen[0].name == HERE
    for model in (FASTTEXT, LSTM):
        named = [each for each in chosen[1:] if each.model == model]
        rented = [each for each in found[1:] if each.model == model]
        assert bool(named) == bool(rented)
        for one, other in pairwise(named):
            assert one.dollars.middle <= other.dollars.middle
            assert other.seconds.middle < 0.75 * one.seconds.middle
        assert not named or named[0].dollars.middle == min(each.dollars.middle for each in rented)


@pytest.mark.parametrize(
    ("seconds", "dollars", "better"),
    [
        ((150, 200, 250), (1, 2, 3), False),
        ((10, 20, 99), (5, 6, 7), True),  # its slowest is faster than the machine at its best
        ((10, 20, 101), (5, 6, 7), False),
        ((500, 600, 700), (0.1, 0.2, 0.99), True),
        ((500, 600, 700), (0.1, 0.2, 1.01), False),
    ],
)
def test_a_cluster_is_better_beyond_the_error_alone(
    seconds: tuple[float, ...], dollars: tuple[float, ...], better: bool
) -> None:
    stage = Stage(name="all", seconds=Estimate(*seconds), dollars=Estimate(*dollars), basis="a test")
    spec = topology.Topology.model_validate(_ONE_NODE)
    cluster = Prediction(topology=spec, stages=(stage,), by_use=0.0)
    one = replace(machine("m", LSTM, 0, 0), seconds=Estimate(100, 200, 300), dollars=Estimate(1, 2, 3))
    assert beats(cluster, one) is better
