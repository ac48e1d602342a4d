"""`shoal train`: the cost limit on a deployment, and the default model."""

import boto3
import pytest

from bootstrap.aws.deployment import Deployment
from bootstrap.cli.main import main
from bootstrap.training.places.deployment import DeploymentPlace
from trainer.config import TrainConfig

LEFT = {"detached": True, "deployment": "mine", "run": "mine.1"}


def deployed(**outputs: str) -> Deployment:
    return Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)


@pytest.mark.parametrize(
    ("outputs", "options", "most"),
    [
        ({}, [], None),
        ({}, ["--max-dollars", "3"], 3.0),
        ({"MaxDollars": "20.5"}, [], 20.5),
        ({"MaxDollars": "20.5"}, ["--max-dollars", "30"], 30.0),
        ({"MaxDollars": "no amount"}, ["--max-dollars", "30"], 30.0),
    ],
)
def test_max_dollars_defaults_to_the_topology(
    outputs: dict[str, str], options: list[str], most: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[DeploymentPlace] = []
    monkeypatch.setattr(
        "bootstrap.training.train.train",
        lambda _source, _config, place, *_, **__: places.append(place) or LEFT,
    )
    monkeypatch.setattr("bootstrap.aws.deployment.find_deployment", lambda *_: deployed(DataBucket="data", **outputs))
    assert main(["train", "--deployment", "mine", "--region", "us-east-1", "--output", "out", "--json", *options]) == 0
    (place,) = places
    assert place.launch_options.max_dollars == most


@pytest.mark.parametrize(
    "output",
    ["many", "nan", "inf", "0", "-1", ""],
)
def test_an_invalid_limit_of_the_topology_is_refused(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bootstrap.aws.deployment.find_deployment", lambda *_: deployed(MaxDollars=output))
    assert main(["train", "--deployment", "mine", "--region", "us-east-1", "--output", "out"]) == 1
    assert "deploy again, or add --max-dollars" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "model", "fixed"),
    [
        (["--epochs", "3"], "auto", ("epochs",)),
        (["--model", "lstm", "--epochs", "3"], "lstm", ()),
        (["--preset", "reference"], "lstm", ()),
        (["--preset", "fasttext"], "fasttext", ()),
    ],
)
def test_train_searches_a_model_unless_model_or_preset_is_given(
    options: list[str], model: str, fixed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    configs: list[TrainConfig] = []
    monkeypatch.setattr(
        "bootstrap.training.train.train",
        lambda _source, config, *_, **__: configs.append(config) or LEFT,
    )
    assert main(["train", "--local", "--data", "d.h5", "--output", "out", "--json", *options]) == 0
    assert [(each.model, each.fixed) for each in configs] == [(model, fixed)]
