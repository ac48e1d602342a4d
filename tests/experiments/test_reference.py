"""The reference's tables, computed from its seconds, are those that it published."""

import pytest

from bootstrap.aws.cdk import TOPOLOGIES
from experiments import reference
from infra import topology

BY_NAME = {each.name: each for each in reference.TRAININGS}


@pytest.mark.parametrize("training", reference.TRAININGS, ids=lambda each: each.name)
def test_each_price_is_the_published_one_to_the_cent(training: reference.Training) -> None:
    assert str(reference.rounded_price(training)) == training.published


def test_exact_prices_are_within_a_cent_or_two_but_that_of_the_row_that_priced_one_of_two_machines() -> None:
    apart = {
        each.name for each in reference.TRAININGS if abs(reference.exact_price(each) - float(each.published)) > 0.03
    }
    assert apart == {"Two g3.16xlarge with 2 GPU only"}
    assert reference.exact_price(BY_NAME["Two g3.16xlarge with 2 GPU only"]) == pytest.approx(40.08, abs=0.005)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("One g3.4xlarge + one p2.xlarge", 0.58),
        ("One g3.4xlarge + one p2.xlarge + dynamic", 0.61),
        ("Three g3.4xlarge + one p2.xlarge", 0.42),
        ("Three g3.4xlarge + one p2.xlarge + dynamic", 0.44),
        ("Two g3.4xlarge", 0.74),
        ("Four g3.4xlarge", 0.64),
        ("Two g3.16xlarge", 0.47),
    ],
)
def test_the_share_of_their_own_rates_that_its_gpus_reached(name: str, share: float) -> None:
    assert reference.share_of_ideal(BY_NAME[name]) == pytest.approx(share, abs=0.005)


def test_its_speed_ups_by_distribution_are_those_of_its_trainings() -> None:
    names = ("Single g3.16xlarge", "Two g3.16xlarge with 2 GPU only", "Four g3.4xlarge")
    for (nodes, _, minutes, speed_up), name in zip(reference.DISTRIBUTIONS, names, strict=True):
        training = BY_NAME[name]
        assert sum(training.nodes.values()) == nodes
        assert f"{training.seconds / 60 / reference.EPOCHS:.1f}" == minutes
        assert reference.speed_up(training) == pytest.approx(float(speed_up), abs=0.006)


def test_its_preprocessing_is_eight_tenths_of_a_megabyte_a_vcpu_second() -> None:
    found = {(each.share, each.nodes): each for each in reference.preprocessing()}
    assert found[1.0, 8].mb_a_vcpu_second == pytest.approx(0.875, abs=0.001)
    assert found[0.25, 8].speed_up == pytest.approx(99 / 14)
    assert found[0.5, 2].minutes is found[0.5, 2].speed_up is found[0.5, 2].mb_a_vcpu_second is None
    assert found[0.5, 8].times_the_nodes == 2


def test_its_baseline_takes_as_long_as_its_single_gpu() -> None:
    assert sum(seconds for seconds, _, _ in reference.BASELINE) == pytest.approx(
        BY_NAME["Single g3.4xlarge"].seconds, abs=15
    )


def test_each_training_names_a_topology_of_its_nodes() -> None:
    for training in reference.TRAININGS:
        groups = topology.load(training.topology, TOPOLOGIES).training
        assert {group.instance_type: group.count for group in groups} == training.nodes
