"""The reference's tables, computed from its seconds, are those that it published."""

import pytest

from bootstrap.aws.cdk import TOPOLOGIES
from experiments import reference
from infra import topology

BY_NAME = {each.name: each for each in reference.TRAININGS}


@pytest.mark.parametrize("training", reference.TRAININGS, ids=lambda each: each.name)
def test_each_price_is_the_published_one_to_the_cent(training: reference.Training) -> None:
    assert str(reference.rounded_price(training)) == training.published


def test_its_speed_ups_by_distribution_are_those_of_its_trainings() -> None:
    names = ("Single g3.16xlarge", "Two g3.16xlarge with 2 GPU only", "Four g3.4xlarge")
    for (nodes, _, minutes, speed_up), name in zip(reference.DISTRIBUTIONS, names, strict=True):
        training = BY_NAME[name]
        assert sum(training.nodes.values()) == nodes
        assert f"{training.seconds / 60 / reference.EPOCHS:.1f}" == minutes
        assert reference.speed_up(training) == pytest.approx(float(speed_up), abs=0.006)


def test_its_baseline_takes_as_long_as_its_single_gpu() -> None:
    assert sum(seconds for seconds, _, _ in reference.BASELINE) == pytest.approx(
        BY_NAME["Single g3.4xlarge"].seconds, abs=15
    )


def test_each_training_names_a_topology_of_its_nodes() -> None:
    for training in reference.TRAININGS:
        groups = topology.load(training.topology, TOPOLOGIES).training
        assert {group.instance_type: group.count for group in groups} == training.nodes
