"""Trainings on nodes of the embedded AWS whose command ends, or is killed, before them: they go on, and are found."""

import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from bootstrap.interrupt import Interrupt
from bootstrap.nodes import scale_up
from bootstrap.progress import Bars
from bootstrap.training import attaching
from bootstrap.training.attaching import attach, chosen, stop
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.launch import NodeLaunch, requested_runs
from bootstrap.training.places.nodes_followed import LONGEST_STOP_SECONDS
from bootstrap.training.places.run_launch import DEFAULT, Wishes
from bootstrap.training.sources.dataset import DatasetSource, PreparedDataset
from bootstrap.training.spending import Spending
from bootstrap.training.train import train
from common.errors import ShoalError
from embedded.aws import EmbeddedAws
from tests.bootstrap.agent.world import request
from tests.bootstrap.training.on_nodes import DATASET, checkpoints
from tests.fleet import BUCKET, Fleet, boot_agent
from tests.secrets import places_of
from tests.waiting import until
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown

pytestmark = pytest.mark.usefixtures("node_bucket")
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (scale_up, attaching):
        monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.1)


@pytest.fixture
def one(aws: EmbeddedAws) -> Iterator[Fleet]:
    fleet = Fleet().add("one", "g5.xlarge", 1, boot=boot_agent())
    yield fleet
    assert fleet.desired() == {"one": 0}


def configuration(output: Path, **more: Any) -> TrainConfig:
    values = {"epochs": 6, "slow": {0: Slowdown(10.0)}, "threads": 1, "seed": 3, "checkpoint_minutes": 0.02, **more}
    return TrainConfig(data=Path("dataset"), output=output, **values)


def trained(fleet: Fleet, config: TrainConfig, wishes: Wishes = DEFAULT, bars: Bars | None = None) -> dict[str, Any]:
    with bars or Bars() as shown:
        return train(DatasetSource(DATASET), config, OnDeployment(fleet.deployment, wishes), shown)


def runs(fleet: Fleet) -> list[str]:
    found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"runs/{fleet.name}.", Delimiter="/")
    return [each["Prefix"] for each in found.get("CommonPrefixes", [])]


class At(Bars):
    """Does something once the ranks train."""

    def __init__(self, what: Callable[[], None]) -> None:
        super().__init__()
        self._what, self._stage, self.notes = what, "", list[str]()

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        super().stage(name, total, unit)
        self._stage = name

    def note(self, text: str) -> None:
        self.notes.append(text)

    def at(self, done: int) -> None:
        if self._stage == "train" and done:
            self._stage = "over"
            self._what()


@pytest.mark.soak
def test_a_detached_training_is_followed_from_elsewhere_to_its_results_and_no_secret_is_left_anywhere(
    one: Fleet, aws: EmbeddedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = secrets.token_hex(20)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    left = trained(one, configuration(tmp_path / "here"), Wishes(detach=True))
    assert (left["detached"], left["deployment"]) == (True, one.name)
    assert one.desired() == {"one": 1}
    assert places_of(secret, aws.folder, tmp_path) == []
    with Bars() as bars:
        found, config = attach(one.deployment, chosen(one.deployment, None), tmp_path / "there", bars)
    assert (found["stopped"], found["rows_seen"]) == (False, 6 * found["rows"])
    assert (tmp_path / "there" / "model" / "config.json").exists()
    assert config.seed == 3
    assert places_of(secret, aws.folder, tmp_path) == []
    assert requested_runs(one.deployment).with_ends() == []


@pytest.mark.soak
def test_who_finds_a_run_that_has_ended_ends_its_nodes_and_has_its_results(one: Fleet, tmp_path: Path) -> None:
    trained(one, configuration(tmp_path / "out"), Wishes(detach=True))
    until(lambda: requested_runs(one.deployment).with_ends()[0][1] is not None)
    assert one.desired() == {"one": 1}
    found = trained(one, configuration(tmp_path / "out"))  # the same command
    assert (found["stopped"], one.desired(), len(runs(one))) == (False, {"one": 0}, 1)


def hang_up() -> None:
    raise Interrupt(signal.SIGHUP)


def expire() -> None:
    raise ClientError({"Error": {"Code": "400", "Message": "Bad Request"}}, "HeadObject")


@pytest.mark.soak
@pytest.mark.parametrize("ends", [hang_up, expire])
def test_a_closed_terminal_and_expired_credentials_end_the_command_alone(
    one: Fleet, tmp_path: Path, ends: Callable[[], None]
) -> None:
    bars = At(ends)
    left = trained(one, configuration(tmp_path), bars=bars)
    assert left["detached"] is True
    assert any("does not accept your credentials" in note for note in bars.notes) == (ends is expire)
    found = trained(one, configuration(tmp_path))  # the same command
    assert (found["stopped"], found["rows_seen"]) == (False, 6 * found["rows"])
    assert len(runs(one)) == 1


@pytest.mark.soak
def test_a_training_is_stopped_from_elsewhere_and_goes_on_with_resume(one: Fleet, tmp_path: Path) -> None:
    config = configuration(tmp_path / "out", epochs=60)
    left = trained(one, config, Wishes(detach=True))
    until(lambda: any(left["run"] in each for each in checkpoints()))
    with Bars() as bars:
        assert stop(one.deployment, None, bars)[1] == "stopped"
        assert stop(one.deployment, left["run"], bars)[1] == "stopped"
        with pytest.raises(ShoalError, match=r"^the run demo\.x is not wanted .*; there are: "):
            stop(one.deployment, "demo.x", bars)
    assert one.desired() == {"one": 0}
    stopped, _ = attach(one.deployment, chosen(one.deployment, None), tmp_path / "attached", Bars())
    assert stopped["stopped"] is True
    found = trained(one, configuration(tmp_path / "out", epochs=60, resume=True))
    assert (found["stopped"], found["rows_seen"]) == (False, 60 * found["rows"])
    assert len(runs(one)) == 1


@pytest.mark.soak
def test_a_training_stops_with_a_checkpoint_before_it_costs_more_and_says_what_is_left(
    one: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ShoalError, match=r"^--max-dollars is 0\.001, but only to start the nodes costs about \$0\.\d\d;"
    ):
        trained(one, configuration(tmp_path / "poor"), Wishes(max_dollars=0.001))
    assert runs(one) == []
    followed: list[DeploymentRun] = []
    monkeypatch.setattr(DeploymentRun, "_until", lambda run: followed.append(run))
    bars = At(lambda: followed[0].launch._replace(until=time.time()))
    stopped = trained(one, configuration(tmp_path / "out", epochs=200), Wishes(max_dollars=9.0), bars)
    assert stopped["stopped"] is True
    assert "stopped_by" not in stopped
    (said,) = (note for note in bars.notes if note.startswith("the run is stopped"))
    assert re.fullmatch(
        r"the run is stopped, because it would have cost more than \$9; to finish it costs about \$\S+ more", said
    )


def test_what_is_left_of_the_dollars_is_the_time_of_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = NodeLaunch(Fleet().deployment, "demo.20260102T030405-0a1b")
    launch._request = request(max_dollars=10.0)
    run = DeploymentRun(launch, PreparedDataset(DATASET), configuration(Path("output")))
    assert run._until() is None  # of nodes that are held
    run._spending = cast(Spending, SimpleNamespace(so_far=lambda: 4.0, hourly=lambda: 12.0))
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    assert run._until() == 1_000 + 1_800 - LONGEST_STOP_SECONDS
    run._spending = cast(Spending, SimpleNamespace(so_far=lambda: 9.9, hourly=lambda: 12.0))
    with pytest.raises(ShoalError, match=r"^--max-dollars is 10, of which starting the nodes has cost \$9\.90"):
        run._until()
    run._deployment.outputs["MaxDollars"] = "10.0"
    with pytest.raises(
        ShoalError, match=r"^max_dollars of the topology 'demo' is 10, of which .* higher --max-dollars"
    ):
        run._until()
    run._spending = cast(Spending, SimpleNamespace(so_far=lambda: None, hourly=lambda: None))
    with pytest.raises(ShoalError, match=r"^--max-dollars needs prices"):
        run._until()
