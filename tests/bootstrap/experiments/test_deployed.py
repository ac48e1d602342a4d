"""An experiment with an arm on each deployment: priced, stopped and continued."""

from pathlib import Path

import boto3
import pytest

from bootstrap.experiments.places import Deployments
from bootstrap.experiments.running import plan_runs, run_experiment
from bootstrap.experiments.trainings import Trainings
from bootstrap.progress import Bars
from bootstrap.training.sources.dataset import DatasetSource
from experiments.plans.experiment_files import ExperimentFile
from experiments.plans.parts import Experiment
from experiments.plans.prices import require_price
from experiments.results import read_experiment
from infra import topology
from tests.bootstrap.training.conftest import node_bucket  # noqa: F401
from tests.bootstrap.training.on_nodes import DATASET, Impatient
from tests.fleet import Fleet, boot_agent

TOPOLOGIES = Path(__file__).parents[3] / "topologies"


@pytest.mark.soak
@pytest.mark.usefixtures("node_bucket")
def test_each_arm_runs_on_the_deployment_of_its_topology(tmp_path) -> None:
    fleet = Fleet().add("one", "g5.xlarge", 1, boot=boot_agent())
    experiment = Experiment.model_validate(
        {
            "about": "x",
            "kind": "training",
            "repeats": 1,
            "settings": {"model": "lstm", "epochs": 60, "global_batch": 32, "threads": 1},
            "arms": [{"name": "here", "topology": "demo"}, {"name": "there", "topology": "starter"}],
        }
    )
    where = Deployments({"demo": (topology.load("demo", TOPOLOGIES), fleet.deployment)})
    maker = Trainings(experiment, where, DatasetSource(DATASET))
    plan = plan_runs(ExperimentFile(name="mine", experiment=experiment), maker, output=tmp_path, names=())
    assert [(arm.name, why) for arm, why in plan.left_out] == [
        ("there", "no given deployment has its topology starter")
    ]
    ((_, price),) = plan.prices()
    require_price([price], 10.0)
    with Impatient() as bars:
        assert run_experiment(plan, bars) == "SIGINT"
    (arm, _) = read_experiment(tmp_path).arms
    assert (arm.finished, [run.state for run in arm.runs]) == (0, ["stopped"])
    with Bars() as bars:
        assert run_experiment(plan, bars) is None
    (arm, _) = read_experiment(tmp_path).arms
    assert (arm.finished, arm.place, arm.ranks) == (1, fleet.name, 1)
    assert arm.dollars is not None
    assert len(arm.runs[0].starts) == 2
    names = boto3.Session().client("s3").list_objects_v2(Bucket="fleet-data", Prefix="runs/", Delimiter="/")
    assert len(names["CommonPrefixes"]) == 1
