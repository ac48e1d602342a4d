"""Model of time: more work never takes less, and the range of a result follows from the ranges of assumptions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from corpus.dataset_settings import DatasetSize
from experiments import forecast
from experiments.estimate import NOTHING, Estimate, total
from experiments.forecast import Work, machine_seconds, node_stages, training_stage
from infra import catalog
from infra.gpu_nodes import PlannedNode
from infra.parts import PreprocessingSpec
from trainer.config import TrainConfig, configured
from trainer.registry import CLASSIFIERS

amounts = st.floats(0.01, 1e6)
estimates = st.tuples(amounts, amounts, amounts).map(lambda each: Estimate(*sorted(each)))
NODES = [PlannedNode("g5.xlarge", 1), PlannedNode("g4dn.xlarge", 1)]
WORK = Work(model="lstm", rows=1_000_000, epochs=4, dataset_bytes=4e8, global_batch=1024)
SIZE = DatasetSize(train=900_000, test=100_000, words=100.0)


def config(**settings: object) -> TrainConfig:
    return configured({"model": "lstm", "data": Path("d.h5"), "output": Path("out"), "epochs": 2, **settings})


def cluster(kind: str, count: int) -> PreprocessingSpec:
    """Return a preprocessing cluster with `count` workers of an instance type."""
    group = {"instance_type": kind}
    return PreprocessingSpec.model_validate({"primary": group, "core": {**group, "count": count}})


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


@given(
    st.integers(1, 10**8), st.integers(1, 50), st.floats(1e3, 1e12), st.floats(1.01, 10), st.sampled_from(CLASSIFIERS)
)
def test_more_rows_epochs_and_bytes_take_longer(rows: int, epochs: int, size: float, times: float, model: str) -> None:
    work = replace(WORK, model=model, rows=rows, epochs=epochs, dataset_bytes=size)
    less = total(stage.seconds for stage in node_stages(NODES, work, shared=True))
    for more in (
        replace(work, rows=2 * rows),
        replace(work, epochs=epochs + 1),
        replace(work, dataset_bytes=times * size),
        replace(work, operations=times * work.operations)
        if model == "lstm"
        else replace(work, words=times * work.words),
    ):
        assert total(stage.seconds for stage in node_stages(NODES, more, shared=True)).middle > less.middle
    made: list[Callable[[float], Estimate]] = [
        lambda raw: machine_seconds(raw, 4.0, 1.0),
        lambda raw: forecast.cluster_seconds(cluster("m5.xlarge", 4), raw),
    ]
    for seconds in made:
        assert seconds(times * size).middle > seconds(size).middle
        assert seconds(size).low < seconds(size).middle < seconds(size).high


@given(st.integers(1, 16), st.integers(1, 16))
def test_more_gpus_and_cores_never_take_longer_to_compute(few: int, more: int) -> None:
    small, large = sorted((few, few + more))
    computed = [training_stage([PlannedNode("p5.48xlarge", count)], WORK).seconds.low for count in (small, large)]
    assert computed[1] < computed[0]
    made = [forecast.cluster_seconds(cluster("m5.xlarge", count), 1e10).middle for count in (small, large)]
    assert made[1] < made[0]


def test_preprocessing_does_not_scale_beyond_its_one_node() -> None:
    some, many = (forecast.cluster_seconds(cluster("m4.xlarge", count), 92.45e9).middle for count in (8, 800))
    assert some / 3 < many < some


def test_the_prediction_for_the_reference_equals_its_measurement() -> None:
    for kind, measured in forecast.REFERENCE.values():
        work = replace(WORK, rows=forecast.REFERENCE_ROWS // 10, epochs=10, global_batch=128)
        found = training_stage([PlannedNode(kind, 1)], work)
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
    assert [forecast.slowest_gbits([PlannedNode("p5.48xlarge", 8, efa)] * 2) for efa in (False, True)] == [100, 3200]
    assert forecast.slowest_gbits([PlannedNode("p5.48xlarge", 8, True), PlannedNode("g5.xlarge", 1)]) == 2.5


def test_nodes_without_a_gpu_have_no_rate(messages) -> None:
    with messages.raises(ExperimentError):
        training_stage([PlannedNode("m5.xlarge", 1)], WORK)


def test_the_work_of_a_run_follows_from_its_dataset_and_settings() -> None:
    found = forecast.run_work(config(train_share=0.5, global_batch=512, hidden=64), SIZE, ranks=2)
    assert (found.rows, found.epochs, found.global_batch) == (427_500, 2, 512)
    assert found.dataset_bytes == 1_000_000 * 100 * 2
    layers = {"embedding": config().options.embedding, "hidden": 64, "layers": config().options.layers}
    assert found.operations == forecast.lstm_operations(**layers, words=100)
    vectors = forecast.run_work(config(), SIZE, ranks=2, embedding=300)
    assert vectors.operations > forecast.run_work(config(), SIZE, ranks=2).operations


def test_an_lstm_reads_the_words_of_a_text_only_up_to_its_row_length() -> None:
    long, longer = (forecast.run_work(config(), SIZE._replace(words=words), ranks=1) for words in (400.0, 4000.0))
    assert long.operations == longer.operations


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_each_classifier_has_a_prediction_with_its_default_epochs(model: str) -> None:
    work = forecast.planned_work(model, 1_000_000, None, None)
    assert work.rows == pytest.approx(855_000, rel=0.1)
    assert work.epochs == (3 if model == "linear" else work.epochs) > 0
    stage = training_stage(NODES, work)
    assert 0 < stage.seconds.low < stage.seconds.middle < stage.seconds.high
    assert "not measured" in stage.basis


def test_the_speed_of_other_models_is_unknown(messages) -> None:
    with messages.raises(ExperimentError):
        forecast.run_work(config(model="skipgram"), SIZE, ranks=1)
