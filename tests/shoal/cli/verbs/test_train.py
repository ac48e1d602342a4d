"""`shoal train`: the cost limit on a deployment, and the default model."""

from unittest.mock import Mock

import boto3
import pytest

from shoal.aws.deployment import Deployment
from shoal.backends.deployment_data import NodeData
from shoal.backends.node_fleet import NodeFleet
from tests.shoal.cli.command import Done, shoal_here


@pytest.fixture
def train(monkeypatch) -> Mock:
    """The function that commands call with a source, a configuration and a backend."""
    function = Mock(return_value={"detached": True, "deployment": "mine", "run": "mine.1"})
    monkeypatch.setattr("shoal.runs.train.train", function)
    return function


def train_on(outputs: dict[str, str], *options: str, patch: pytest.MonkeyPatch) -> Done:
    """Run `shoal train` on a deployment with these outputs."""
    outputs = {"DataBucket": "mine-data", **outputs}
    deployed = Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)
    patch.setattr("shoal.aws.deployment.find_deployment", lambda *_: deployed)
    return shoal_here("train", "--deployment", "mine", "--region", "us-east-1", "--output", "out", *options)


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
def test_max_dollars_defaults_to_the_topology(outputs, options, most, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    carry_out = Mock(return_value={"detached": True, "deployment": "mine", "run": "mine.1"})
    monkeypatch.setattr("shoal.runs.train.carry_out", carry_out)
    monkeypatch.setattr("shoal.cli.prediction.predict_run", lambda *_: None)
    monkeypatch.setattr(NodeFleet, "require_paid", lambda *_, **__: None)
    monkeypatch.setattr(NodeData, "dataset", lambda *_: "s3://data/datasets/x/dataset.h5")
    done = train_on(outputs, "--json", *options, patch=monkeypatch)
    assert (done.returncode, carry_out.call_args.args[0].limits.max_dollars) == (0, most)


@pytest.mark.parametrize("limit", ["many", "nan", "inf", "0", "-1", ""])
def test_an_invalid_limit_of_the_topology_is_refused(limit, monkeypatch, messages) -> None:
    done = train_on({"MaxDollars": limit}, patch=monkeypatch)
    assert done.returncode == 1
    messages.check(done.stderr.rstrip())


@pytest.mark.parametrize(
    ("options", "model"), [([], "linear"), (["--model", "lstm"], "lstm"), (["--preset", "reference"], "lstm")]
)
def test_train_trains_the_linear_model_unless_model_or_preset_is_given(options, model, train) -> None:
    assert shoal_here("train", "--local", "--data", "d.h5", "--output", "out", "--json", *options).returncode == 0
    assert train.call_args.args[1].model == model
