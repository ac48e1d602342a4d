"""Time and cost of machines and topologies, with all that is charged at the same time."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from common.errors import ExperimentError
from experiments.choices import machines, predict
from experiments.forecast import HERE, Work, planned_work
from infra import catalog, cost, topology
from shoal.aws.cdk import TOPOLOGIES

WORK = planned_work("lstm", 21_300_000, 10, 92.45e9)
LINEAR = planned_work("linear", 21_300_000, None, 92.45e9)
TRAINING = replace(WORK, raw_bytes=None)


def of(name: str) -> topology.Topology:
    return topology.load(name, TOPOLOGIES)


@pytest.mark.parametrize("name", topology.names_in(TOPOLOGIES))
def test_every_topology_has_a_prediction_with_an_ordered_range(name: str) -> None:
    chosen = of(name)
    found = predict(chosen, WORK if chosen.preprocessing or chosen.preprocesses_on_node else TRAINING)
    assert 0 < found.seconds.low < found.seconds.middle < found.seconds.high
    assert 0 < found.dollars.low < found.dollars.middle < found.dollars.high
    assert all(stage.basis for stage in found.stages)


def test_a_node_that_preprocesses_takes_as_long_as_one_machine_and_copies_no_dataset() -> None:
    start, made, train = predict(of("one-node"), WORK).stages
    (machine,) = (each for each in machines(WORK, "us-east-1") if each.name == "g6e.2xlarge")
    seconds = {stage.name: stage.seconds.middle for stage in machine.stages}
    assert made.seconds.middle == pytest.approx(seconds["download"] + seconds["preprocess"])
    assert train.seconds.middle == pytest.approx(seconds["train"])
    there = predict(of("one-node"), TRAINING).stages
    assert (there[0], there[2]) == (start, train)


def test_readers_do_not_change_a_run_on_a_dataset() -> None:
    alone, read_for = (predict(of(name), TRAINING) for name in ("embeddings-4x1gpu", "embeddings-4x1gpu-2readers"))
    assert read_for.stages == alone.stages


@pytest.mark.parametrize("name", ["fasttext", "mixed-g5-g4dn"])
def test_nodes_that_start_with_the_deployment_cost_the_same_during_training(name: str) -> None:
    chosen = of(name)
    early = tuple(group.model_copy(update={"start": "deploy"}) for group in chosen.training)
    later, before = predict(chosen, TRAINING), predict(chosen.model_copy(update={"training": early}), TRAINING)
    assert before.dollars == later.dollars
    assert later.stages[-1].dollars.middle > 0


def test_an_idle_cluster_costs_money_until_the_guard_stops_it() -> None:
    chosen = of("mixed-g5-g4dn")
    (idle,) = [stage for stage in predict(chosen, WORK).stages if stage.name == "the idle cluster"]
    assert idle.seconds.high == 0
    hourly = sum(row.hourly for row in cost.rows(chosen) if row.since == "deploy")
    assert idle.dollars.high == pytest.approx(hourly * chosen.guard.idle_minutes / 60)


def test_spot_nodes_have_a_wide_range_of_dollars() -> None:
    train = predict(of("mixed-spot"), TRAINING).stages[-1]
    assert train.dollars.high / train.dollars.low > 2 * train.seconds.high / train.seconds.low


def test_a_share_costs_one_write_and_a_read_for_each_node() -> None:
    chosen = of("demo")
    prices = catalog.prices(chosen.region).other
    found = predict(chosen, replace(TRAINING, dataset_bytes=float(10 << 30)))
    gib = prices.efs_write_gib + chosen.gpu_nodes * prices.efs_read_gib
    assert found.by_use == pytest.approx(10 * gib)
    assert found.dollars.middle == pytest.approx(sum(stage.dollars.middle for stage in found.stages) + found.by_use)


def test_a_topology_without_a_cluster_cannot_preprocess(messages) -> None:
    for name, work in (("reference-1g3", WORK), ("reference-emr-2", TRAINING)):
        with messages.raises(ExperimentError):
            predict(of(name), work)


def test_a_training_job_is_predicted_as_a_node_with_the_price_of_the_job() -> None:
    job, node = (predict(of(name), TRAINING).stages[-1] for name in ("managed", "scaling-a10g"))
    assert job.seconds == node.seconds
    assert job.dollars.high == pytest.approx(job.seconds.high * 1.408 / 3600)


@pytest.mark.parametrize("work", [LINEAR, WORK], ids=["linear", "lstm"])
def test_the_cheapest_machine_and_those_a_quarter_faster_are_listed(work: Work) -> None:
    found = machines(work, "us-east-1")
    rented = [each for each in found if each.name != HERE]
    assert rented
    assert [each.dollars.high for each in found if each.name == HERE] == ([] if work is WORK else [0.0])
    for one, other in pairwise(rented):
        assert one.dollars.middle <= other.dollars.middle
        assert other.seconds.middle < 0.75 * one.seconds.middle
    assert not any(catalog.find(each.name).retired for each in rented)
    assert all((work is WORK) == bool(catalog.find(each.name).gpu) for each in rented)
    assert [each.name for each in machines(work, "eu-nowhere-1")] == ([] if work is WORK else [HERE])


def test_the_documented_times_and_dollars_are_those_of_the_model() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    written = re.findall(r"^\| [^|`]*`([\w.-]+)` \| (linear|LSTM) \| ([^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    assert len(written) == 6
    for name, model, dollars, time in written:
        work = WORK if model == "LSTM" else LINEAR
        alone = {each.name: each for each in machines(work, "us-east-1")}
        found = alone.get(name) or predict(of(name), work)
        assert (found.dollars.dollars(), found.seconds.time()) == (f"${dollars}", time)
