"""Predicted prices of runs, and limits that hold even if a price is unknown."""

from pathlib import Path

import pytest

from common.errors import ExperimentError
from experiments.choices import running_hourly
from experiments.estimate import Estimate
from experiments.forecast import lstm_operations
from experiments.plans import prices as pricing
from experiments.plans.prices import DatasetSize, preprocessing_price, require_price, training_price
from infra import cost, topology
from trainer.config import TrainConfig, configured

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIZE = DatasetSize(train=900_000, test=100_000)


def config(**settings: object) -> TrainConfig:
    return configured({"data": Path("d.h5"), "output": Path("out"), "model": "lstm", "epochs": 2, **settings})


def test_the_work_of_a_training_follows_from_its_dataset() -> None:
    found = SIZE.training(config(train_share=0.5, global_batch=512, hidden=64), 2, embedding=100)
    assert (found.rows, found.epochs, found.global_batch) == (427_500, 2, 512)
    assert found.dataset_bytes == 1_000_000 * 100 * 2
    assert found.operations == lstm_operations(embedding=100, hidden=64, layers=config().layers, words=100)


def test_a_training_costs_its_hours_at_the_price_of_the_running_resources() -> None:
    chosen = topology.load("scaling-2x4t4", TOPOLOGIES)  # without a cluster, and without a share that is charged by use
    price = training_price(chosen, config(), SIZE)
    assert price.dollars.middle == pytest.approx(price.seconds.middle * running_hourly(chosen).middle / 3600)


def test_the_price_includes_the_idle_cluster() -> None:
    chosen = topology.load("demo", TOPOLOGIES)
    alone = chosen.model_copy(update={"preprocessing": None})
    both, nodes = (training_price(each, config(), SIZE) for each in (chosen, alone))
    assert both.seconds == nodes.seconds
    assert both.dollars.middle > nodes.dollars.middle


def test_a_resource_without_a_price_is_not_free() -> None:
    there = topology.load("demo", TOPOLOGIES).model_copy(update={"region": "eu-west-1"})
    unknown = cost.unknown(there)
    assert unknown != []
    for price in (training_price(there, config(), SIZE), preprocessing_price(there, 1e9)):
        assert (price.seconds is None, price.dollars) == (False, None)
        assert unknown[0] in price.basis
        with pytest.raises(ExperimentError, match="has no known price"):
            require_price([price], 0.01)


def test_more_rows_and_larger_models_cost_more() -> None:
    chosen = topology.load("reference-4g3", TOPOLOGIES)
    whole, quarter, larger = (
        training_price(chosen, config(**settings), SIZE).dollars
        for settings in ({}, {"train_share": 0.25}, {"hidden": 256, "layers": 2})
    )
    assert quarter.middle < whole.middle < larger.middle


@pytest.mark.parametrize(("name", "settings"), [("reference-4g3", {"model": "fasttext"}), ("reference-emr-2", {})])
def test_an_unknown_price_is_not_zero(name: str, settings: dict[str, object], messages) -> None:
    price = training_price(topology.load(name, TOPOLOGIES), config(**settings), SIZE)
    assert (price.seconds, price.dollars) == (None, None)
    messages.check(price.basis)
    with messages.raises(ExperimentError):
        require_price([price], 5.0)
    require_price([price], None)


def test_a_preprocessing_costs_only_its_own_time() -> None:
    chosen = topology.load("reference-3g3-1p2", TOPOLOGIES)
    small, large = (preprocessing_price(chosen, size).dollars for size in (1e9, 50e9))
    assert 0 < 2 * small.middle < large.middle
    assert preprocessing_price(topology.load("reference-4g3", TOPOLOGIES), 1e9).dollars is None


def test_runs_above_the_limit_are_refused_together(messages) -> None:
    prices = [pricing.RunPrice(dollars=Estimate(1.0, 2.0, 4.0), basis="x")] * 3
    assert pricing.total_dollars([*prices, pricing.unknown_price("x")]) == Estimate(3.0, 6.0, 12.0)
    require_price(prices, 12.0)
    with messages.raises(ExperimentError):
        require_price(prices, 11.0)
