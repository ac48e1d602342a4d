"""What a topology will take and cost: for every topology, and more for more work."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.aws.cdk import TOPOLOGIES
from common.errors import ExperimentError
from experiments import reference
from experiments.forecast.choosing import fitting, pareto_front
from experiments.forecast.cluster import ClusterWork, Prediction, Stage, predict_cluster
from experiments.forecast.communication import WHOLE_BYTES, Links, gradient_bytes
from experiments.forecast.estimate import Estimate
from experiments.forecast.gpu_rates import REFERENCE_OPERATIONS, lstm_operations, rate_by_catalogue
from experiments.forecast.machines import plans
from experiments.forecast.nodes import NODES_START, nodes_of, slowest_gbits
from experiments.forecast.preprocessing import REFERENCE, WHOLE_TEXTS, Workers, predict_preprocessing
from experiments.forecast.rates import Node
from infra import catalog, cost, topology

NAMES = topology.names(TOPOLOGIES)
WORK = {"rows": 21_300_000, "epochs": 10}


def of(name: str) -> topology.Topology:
    return topology.load(name, TOPOLOGIES)


@pytest.mark.parametrize("name", NAMES)
def test_every_topology_has_a_prediction_whose_range_is_in_order(name: str) -> None:
    chosen = of(name)
    raw = 92.45e9 if chosen.preprocessing or chosen.preprocesses_on_node else None
    found = predict_cluster(chosen, ClusterWork(**WORK, raw_bytes=raw))
    assert 0 < found.seconds.low < found.seconds.middle < found.seconds.high
    assert 0 < found.dollars.low < found.dollars.middle < found.dollars.high
    assert all(stage.basis for stage in found.stages)


def test_a_node_that_preprocesses_takes_what_one_machine_does_and_copies_no_dataset() -> None:
    work = ClusterWork(**WORK, raw_bytes=92.45e9)
    start, made, train = predict_cluster(of("one-node"), work).stages
    (machine,) = (each for each in plans(work, "us-east-1") if each.name == "g6e.2xlarge")
    assert made.seconds.middle == pytest.approx(machine.stages["download"] + machine.stages["preprocess"])
    assert train.seconds.middle == pytest.approx(machine.stages["train"])
    there = predict_cluster(of("one-node"), ClusterWork(**WORK, raw_bytes=None)).stages
    assert (there[0], there[2]) == (start, train)
    assert there[1].seconds.middle < made.seconds.middle


def test_readers_which_a_training_on_a_dataset_does_not_start_change_nothing() -> None:
    alone, read_for = (
        predict_cluster(of(name), ClusterWork(**WORK, raw_bytes=None, spot=True))
        for name in ("embeddings-4x1gpu", "embeddings-4x1gpu-2readers")
    )
    assert read_for.stages == alone.stages


def test_more_rows_epochs_and_bytes_never_take_less() -> None:
    chosen = of("mixed-g5-g4dn")
    small = predict_cluster(chosen, ClusterWork(rows=10**6, raw_bytes=1e9, epochs=2))
    for changes in ({"rows": 2 * 10**6}, {"epochs": 3}, {"raw_bytes": 2e9}):
        more = predict_cluster(chosen, ClusterWork(**{"rows": 10**6, "raw_bytes": 1e9, "epochs": 2, **changes}))
        assert more.seconds.middle > small.seconds.middle
        assert more.dollars.middle > small.dollars.middle


def test_preprocessing_takes_what_its_own_prediction_says_of_so_many_gb() -> None:
    found = predict_cluster(of("demo"), ClusterWork(**WORK, raw_bytes=92.45e9))
    cluster = of("demo").preprocessing
    assert cluster is not None
    workers = [Workers(instance_type=group.instance_type, count=group.count) for _, group in cluster.workers]
    minutes = predict_preprocessing(cluster.primary.instance_type, workers, 92.45, WHOLE_TEXTS).all
    (stage,) = [stage for stage in found.stages if stage.name == "preprocess"]
    assert stage.seconds.middle == pytest.approx(60 * minutes)
    assert stage.seconds.middle / 2 < stage.seconds.low < stage.seconds.high < 2 * stage.seconds.middle


def test_the_reference_takes_what_it_took_on_one_gpu() -> None:
    for name, training in (("reference-1g3", "Single g3.4xlarge"), ("reference-1p2", "Single p2.xlarge")):
        (measured,) = [each for each in reference.TRAININGS if each.name == training]
        found = predict_cluster(of(name), ClusterWork(**WORK, raw_bytes=None, global_batch=128))
        (trained,) = [stage for stage in found.stages if stage.name == "train"]
        assert trained.seconds.low < measured.seconds < trained.seconds.high


def test_an_idle_cluster_is_paid_for_until_the_guard_ends_it() -> None:
    chosen = of("mixed-g5-g4dn")
    found = predict_cluster(chosen, ClusterWork(**WORK, raw_bytes=1e9))
    (idle,) = [stage for stage in found.stages if stage.name == "the idle cluster"]
    assert idle.seconds.high == 0
    hourly = sum(row.hourly for row in cost.rows(chosen) if row.since == "deploy")
    assert idle.dollars.high == pytest.approx(hourly * chosen.guard.idle_minutes / 60)
    assert str(chosen.guard.idle_minutes) in idle.basis


def test_spot_nodes_cost_less_and_are_taken_back_now_and_then() -> None:
    chosen = of("embeddings-4x1gpu")
    on_demand, spot = (
        predict_cluster(chosen, ClusterWork(**WORK, raw_bytes=None, spot=spot)) for spot in (False, True)
    )
    assert spot.dollars.middle < on_demand.dollars.middle
    assert spot.seconds.middle > on_demand.seconds.middle
    (stage,) = [stage for stage in spot.stages if stage.name == "interruptions"]
    assert "4 spot nodes" in stage.basis
    (train,) = [stage for stage in spot.stages if stage.name == "train"]
    taken_back = 4 * 0.02 * train.seconds.middle / 3600
    assert stage.seconds.middle == pytest.approx(taken_back * (NODES_START.middle + 150))
    own = predict_cluster(of("mixed-g6e-g6-g5"), ClusterWork(**WORK, raw_bytes=None))
    assert any(stage.name == "interruptions" for stage in own.stages)


def test_a_share_is_paid_for_by_the_gib_that_are_written_once_and_read_by_each_node() -> None:
    chosen = of("demo")
    assert chosen.share == "efs"
    prices = catalog.prices(chosen.region).other
    found = predict_cluster(chosen, ClusterWork(rows=10 << 30, epochs=1, raw_bytes=None))
    gib = 10 * WHOLE_TEXTS.row_bytes
    assert found.by_use == pytest.approx(gib * (prices.efs_write_gib + chosen.gpu_nodes * prices.efs_read_gib))
    assert found.dollars.middle == pytest.approx(sum(stage.dollars.middle for stage in found.stages) + found.by_use)


def test_a_topology_without_a_cluster_cannot_preprocess() -> None:
    with pytest.raises(ExperimentError, match="reference-1g3 has no cluster"):
        predict_cluster(of("reference-1g3"), ClusterWork(**WORK, raw_bytes=1e9))


def test_gpus_that_nobody_measured_say_so_and_have_a_wide_range() -> None:
    known, guessed = (
        rate_by_catalogue(catalog.find(name).gpu, REFERENCE_OPERATIONS) for name in ("g3.4xlarge", "g4dn.xlarge")
    )
    assert "not measured" in guessed.source
    assert "not measured" not in known.source
    assert guessed.off > known.off
    assert REFERENCE_OPERATIONS == 3 * 100 * (8 * 32 * (100 + 32) + 8 * 32 * (32 + 32))
    rows = reference.TRAINED_ROWS * reference.EPOCHS
    times = {each.name: each.seconds for each in reference.TRAININGS}
    assert known.line.per_row == pytest.approx(times["Single g3.4xlarge"] / rows)
    a_tflops = [catalog.find(kind).gpu.tflops * times[f"Single {kind}"] / rows for kind in ("g3.4xlarge", "p2.xlarge")]
    mean = (a_tflops[0] * a_tflops[1]) ** 0.5
    assert guessed.line == (0, pytest.approx(mean / catalog.find("g4dn.xlarge").gpu.tflops))
    twice = lstm_operations(embedding=100, hidden=32, layers=2, words=200)
    slower = rate_by_catalogue(catalog.find("g3.4xlarge").gpu, twice)
    assert slower.line.per_row == pytest.approx(2 * known.line.per_row)


@given(ranks=st.integers(1, 256), size=st.floats(1e3, 1e9), gbits=st.floats(0.1, 400), nodes=st.integers(1, 8))
def test_a_sum_takes_longer_over_a_slower_network_and_for_more_bytes(
    ranks: int, size: float, gbits: float, nodes: int
) -> None:
    links = Links(nodes=min(nodes, ranks), ranks=ranks, gbits=gbits)
    assert links.all_reduce_seconds(size) <= links.all_reduce_seconds(2 * size)
    slower = Links(nodes=min(nodes, ranks), ranks=ranks, gbits=gbits / 2)
    assert links.all_reduce_seconds(size) <= slower.all_reduce_seconds(size)
    assert (links.all_reduce_seconds(size) == 0) == (ranks == 1)


def test_many_ranks_do_not_wait_for_a_message_of_each() -> None:
    few, many = (Links(nodes=nodes, ranks=nodes, gbits=50).all_reduce_seconds(1e5) for nodes in (16, 256))
    assert many <= 2 * few + 1e-9
    large = Links(nodes=16, ranks=16, gbits=50).all_reduce_seconds(1e9)
    assert large == pytest.approx(2 * 15 / 16 * 1e9 / (0.8 * 50e9 / 8), rel=0.01)
    assert Links(nodes=1, ranks=4, gbits=50).all_reduce_seconds(8e9) == pytest.approx(6 * (0.25 + 1e-5))
    tree = 2 * 1e5 / 5e9 + 2 * 4 * 50e-6 + 2 * 3 * 10e-6
    assert Links(nodes=16, ranks=64, gbits=50).all_reduce_seconds(1e5) == pytest.approx(tree)


def test_all_ranks_of_a_node_send_through_its_network() -> None:
    assert Links(nodes=2, ranks=5, gbits=10).seconds_to_send(1e9) == pytest.approx(3)
    assert Links(nodes=1, ranks=5, gbits=10).seconds_to_send(8e9) == pytest.approx(1)
    assert [Links(nodes=nodes, ranks=4, gbits=10).latency for nodes in (1, 2)] == [10e-6, 50e-6]


def test_tcp_sends_through_one_network_card_and_efa_through_all() -> None:
    group = {"instance_type": "p5.48xlarge", "count": 2}
    plain, efa = (
        nodes_of(
            topology.Topology.model_validate({"name": "x", "description": "x", "training": [{**group, "efa": wanted}]})
        )
        for wanted in (False, True)
    )
    assert (slowest_gbits(plain), slowest_gbits(efa)) == (100, 3200)
    assert slowest_gbits([*efa, Node("g5.xlarge", 1)]) == 2.5


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_larger_batches_touch_more_rows_of_the_word_table_at_most_all(one: int, other: int) -> None:
    small, large = (gradient_bytes(batch) for batch in sorted((one, other)))
    assert 0 < small <= large <= WHOLE_BYTES


def test_preprocessing_does_not_scale_beyond_its_one_node() -> None:
    few, many = (
        predict_preprocessing("m4.xlarge", [Workers(instance_type="m4.xlarge", count=count)], 92.45, REFERENCE)
        for count in (8, 800)
    )
    assert many.parallel == pytest.approx(few.parallel / 100)
    assert many.one_node == few.one_node
    assert many.all > few.one_node + few.start
    assert few.parallel == pytest.approx(92.45 * (8.46 + 0.13 + 0.40) / (8 * 4 * 0.20 * 0.8) / 60)
    assert few.one_node == pytest.approx(92.45 * 0.19 / 0.20 / 60)
    node = 120 * catalog.find("m4.xlarge").network * 60  # MB a minute
    assert few.network == pytest.approx(92_450 * (1.7 / (8 * node) + 2 * 0.14 / node))
    assert few.start == 5 * 30 / 60
    assert few.all == pytest.approx(few.parallel + few.one_node + few.network + few.start)


def priced(dollars: float, hours: float) -> Prediction:
    stage = Stage(name="train", seconds=Estimate.exact(3600 * hours), dollars=Estimate.exact(dollars), basis="a test")
    return Prediction(topology=of("demo"), stages=(stage,), by_use=0.0)


def test_what_fits_the_money_and_the_time_is_told_and_what_no_other_beats() -> None:
    cheap, fast, beaten, like_cheap = priced(1, 9), priced(5, 2), priced(6, 2), priced(1, 10)
    every = [beaten, fast, like_cheap, cheap]
    assert pareto_front(every) == [cheap, fast]
    assert fitting(every, most_dollars=None, most_hours=None) == [cheap, like_cheap, fast, beaten]
    assert fitting(every, most_dollars=5, most_hours=9) == [cheap, fast]
    assert fitting(every, most_dollars=None, most_hours=2) == [fast, beaten]
    assert fitting(every, most_dollars=4.9, most_hours=None) == [cheap, like_cheap]


def test_the_users_own_line_takes_its_time_while_the_cluster_waits() -> None:
    work = ClusterWork(rows=1_000_000, raw_bytes=4e9, epochs=1, upload_mbit=80)
    stages = {stage.name: stage for stage in predict_cluster(of("mixed-g5-g4dn"), work).stages}
    assert stages["upload the reviews"].seconds == Estimate(80.0, 400.0, 400.0)
    assert stages["upload the reviews"].dollars.middle > 0
    assert stages["fetch the model"].dollars.middle == 0
    known = predict_cluster(of("mixed-g5-g4dn"), replace(work, stored_bytes=1e9)).stages
    assert known[1].seconds == Estimate.exact(100.0)
    alone = predict_cluster(of("starter"), replace(work, raw_bytes=None)).stages
    assert (alone[0].name, alone[0].dollars) == ("upload the dataset", Estimate.exact(0.0))
    assert all(
        "upload" not in stage.name for stage in predict_cluster(of("starter"), replace(work, upload_mbit=None)).stages
    )


def test_a_training_job_is_predicted_as_a_node_at_its_own_price() -> None:
    work = ClusterWork(rows=20_000_000, raw_bytes=None, epochs=10)
    job, node = (predict_cluster(of(name), work) for name in ("managed", "scaling-a10g"))
    trained = [next(each for each in found.stages if each.name == "train") for found in (job, node)]
    assert trained[0].seconds == trained[1].seconds
    assert trained[0].dollars.high == pytest.approx(trained[0].seconds.high * 1.408 / 3600)
