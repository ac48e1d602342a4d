"""Model of time: more work never takes less, and the range of a result follows from the ranges of assumptions."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from experiments import forecast
from experiments.estimate import NOTHING, Estimate, total
from experiments.forecast import Node, Training, cluster_seconds, machine_seconds, node_stages, training_stage
from infra import catalog

amounts = st.floats(0.01, 1e6)
estimates = st.tuples(amounts, amounts, amounts).map(lambda each: Estimate(*sorted(each)))
NODES = [Node("g5.xlarge", 1), Node("g4dn.xlarge", 1)]
WORK = Training(rows=1_000_000, epochs=4, dataset_bytes=4e8, global_batch=1024)


@given(estimates, estimates)
def test_ranges_stay_ordered_and_combine_the_worst_cases(one: Estimate, other: Estimate) -> None:
    for found in (one + other, one * other, one / other, 2.0 / one, total([one, other, NOTHING])):
        assert found.low <= found.middle <= found.high
    assert (one * other).high == pytest.approx(one.high * other.high)
    assert (one / other).high == pytest.approx(one.high / other.low)


TIMES = {
    (0.1, 0.2, 0.4): "under a second",
    (0.5, 0.9, 2.0): "0.9 seconds (0.5 to 2.0)",
    (40.0, 40.0, 40.0): "40 seconds",
    (45.0, 100.0, 300.0): "1.7 minutes (0.8 to 5.0)",
    (1800.0, 5000.0, 9000.0): "83 minutes (30 to 150)",
    (5400.0, 9000.0, 14400.0): "2.5 hours (1.5 to 4.0)",
}


@pytest.mark.parametrize("seconds", TIMES)
def test_a_time_is_in_the_unit_that_fits(seconds: tuple[float, float, float]) -> None:
    assert Estimate(*seconds).time() == TIMES[seconds]


@given(st.integers(1, 10**8), st.integers(1, 50), st.floats(1e3, 1e12), st.floats(1.01, 10))
def test_more_rows_epochs_and_bytes_take_longer(rows: int, epochs: int, size: float, times: float) -> None:
    work = Training(rows=rows, epochs=epochs, dataset_bytes=size, global_batch=1024)
    less = total(stage.seconds for stage in node_stages(NODES, work, shared=True))
    for more in (
        replace(work, rows=2 * rows),
        replace(work, epochs=epochs + 1),
        replace(work, dataset_bytes=times * size),
        replace(work, operations=times * work.operations),
    ):
        assert total(stage.seconds for stage in node_stages(NODES, more, shared=True)).middle > less.middle
    made: list[Callable[[float], Estimate]] = [
        lambda raw: machine_seconds(raw, 4.0, 1.0),
        lambda raw: cluster_seconds("m5.xlarge", [("m5.xlarge", 4)], raw),
    ]
    for seconds in made:
        assert seconds(times * size).middle > seconds(size).middle
        assert seconds(size).low < seconds(size).middle < seconds(size).high


@given(st.integers(1, 16), st.integers(1, 16))
def test_more_gpus_and_cores_never_take_longer_to_compute(few: int, more: int) -> None:
    small, large = sorted((few, few + more))
    computed = [training_stage([Node("p5.48xlarge", count)], WORK).seconds.low for count in (small, large)]
    assert computed[1] < computed[0]
    made = [cluster_seconds("m5.xlarge", [("m5.xlarge", count)], 1e10).middle for count in (small, large)]
    assert made[1] < made[0]


def test_preprocessing_does_not_scale_beyond_its_one_node() -> None:
    some, many = (cluster_seconds("m4.xlarge", [("m4.xlarge", count)], 92.45e9).middle for count in (8, 8_000))
    assert some / 3 < many < some


def test_the_rows_of_the_reference_preset_are_preprocessed_faster() -> None:
    ragged, fixed = (machine_seconds(1e9, 4.0, 1.0, fixed_rows=fixed).middle for fixed in (False, True))
    assert ragged == pytest.approx(1.7 * fixed)
    ragged, fixed = (
        cluster_seconds("m5.xlarge", [("m5.xlarge", 4)], 1e9, fixed_rows=fixed).middle for fixed in (False, True)
    )
    assert ragged - 150 == pytest.approx(1.7 * (fixed - 150))


def test_the_prediction_for_the_reference_equals_its_measurement() -> None:
    for kind, measured in forecast.REFERENCE.values():
        work = Training(rows=forecast.REFERENCE_ROWS // 10, epochs=10, dataset_bytes=4e9, global_batch=128)
        found = training_stage([Node(kind, 1)], work)
        assert found.seconds.low < measured < found.seconds.high
        assert "the reference system's time" in found.basis


def test_an_unmeasured_gpu_has_a_wide_range_around_its_tflops() -> None:
    (known, _), (guessed, source), (a10g, _) = (
        forecast.gpu_rate(catalog.find(name).gpu) for name in ("g3.4xlarge", "g4dn.xlarge", "g5.xlarge")
    )
    assert "T4 not measured" in source
    assert guessed.high / guessed.low > known.high / known.low
    assert a10g.middle / guessed.middle == pytest.approx(31.2 / 8.1)
    twice = forecast.lstm_operations(embedding=100, hidden=32, layers=2, words=200)
    assert twice == 2 * forecast.REFERENCE_OPERATIONS == 2 * 3 * 100 * (8 * 32 * (100 + 32) + 8 * 32 * (32 + 32))


def test_tcp_sends_through_one_network_card_and_efa_through_all() -> None:
    assert [forecast.slowest_gbits([Node("p5.48xlarge", 8, efa)] * 2) for efa in (False, True)] == [100, 3200]
    assert forecast.slowest_gbits([Node("p5.48xlarge", 8, True), Node("g5.xlarge", 1)]) == 2.5


def test_nodes_without_a_gpu_have_no_rate(messages) -> None:
    with messages.raises(ExperimentError):
        training_stage([Node("m5.xlarge", 1)], WORK)
