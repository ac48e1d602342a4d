"""Runs of an experiment: their input and price, and how they end."""

import gzip
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bootstrap.aws import cdk
from bootstrap.experiments.places import Deployments, LocalMachine
from bootstrap.experiments.preprocessings import Preprocessings
from bootstrap.experiments.trainings import Trainings, text_of
from bootstrap.progress import Bars
from experiments.plans.parts import Arm, Experiment, PlannedRun
from infra import topology

ARM = Arm.model_validate({"name": "some", "share": 0.25, "local": {"workers": 2}, "topology": "reference-emr-2"})
LINES = [f"line {number}\n".encode() for number in range(10)]


@pytest.fixture
def run(tmp_path) -> PlannedRun:
    return PlannedRun(arm=ARM, repeat=1, folder=tmp_path / "out" / "some" / "1")


@pytest.fixture
def packed(tmp_path) -> Path:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"".join(LINES)))
    return tmp_path / "a.json.gz"


def test_a_price_is_of_the_share_of_the_decompressed_bytes(run, packed, tmp_path, monkeypatch) -> None:
    price = Mock()
    monkeypatch.setattr("bootstrap.experiments.preprocessings.price_of_cores", price)
    Preprocessings(LocalMachine(), [str(packed)], tmp_path / "out").price(run)
    price.assert_called_once_with(2, 0.25 * 4 * packed.stat().st_size)


def test_a_run_on_a_cluster_takes_a_share_of_the_lines_and_counts_the_cores_of_all_nodes(
    run, packed, tmp_path, monkeypatch
) -> None:
    counts = dict.fromkeys(("lines", "distinct", "train", "test"), 3)
    preprocess = Mock(return_value=Mock(counts=counts, digest="abc"))
    monkeypatch.setattr("bootstrap.preprocessing.preprocess.preprocess_on_deployment", preprocess)
    where = Deployments({"reference-emr-2": (topology.load("reference-emr-2", cdk.TOPOLOGIES), Mock())})
    Preprocessings(where, [str(packed)], tmp_path / "out").make(run, Bars())
    (share,) = preprocess.call_args.args[1].files
    assert Path(share).read_bytes() == LINES[0] + LINES[3] + LINES[7]
    measured = json.loads((run.folder / "preprocessing.json").read_text())
    assert (measured["workers"], measured["bytes"], measured["digest"]) == (2 * 4, 3 * len(LINES[0]), "abc")


@pytest.mark.parametrize(
    ("summary", "signal"),
    [
        ({"stopped": False}, None),
        ({"stopped": True}, "SIGINT"),
        ({"stopped": True, "stopped_by": "SIGTERM"}, "SIGTERM"),
    ],
)
def test_a_training_names_the_signal_that_stopped_it(run, summary, signal, monkeypatch) -> None:
    train = Mock(return_value=summary)
    monkeypatch.setattr("bootstrap.experiments.trainings.train", train)
    monkeypatch.setattr(LocalMachine, "place", Mock())
    experiment = experiment_of(kind="words", settings={"model": "skipgram"})
    assert Trainings(experiment, LocalMachine(), Mock(), similarity=("pairs.txt",)).make(run, Bars()) == signal
    config = train.call_args.args[1]
    assert (config.similarity, config.resume) == (("pairs.txt",), False)


def experiment_of(**fields: Any) -> Experiment:
    arms = [{"name": "some", "local": {"ranks": 1}}]
    return Experiment.model_validate({"about": "x", "repeats": 1, "arms": arms, **fields})


@pytest.mark.parametrize("keep_case", [True, False])
def test_text_is_read_in_lower_case_unless_the_experiment_keeps_case(keep_case, tmp_path) -> None:
    source = text_of(experiment_of(kind="words", text={"keep_case": keep_case}), ("a.txt",), tmp_path)
    assert source._settings.lowercase is not keep_case
