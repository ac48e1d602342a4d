"""Training on nodes of the embedded AWS that share a folder or none: what is left of a stopped run, and where."""

import json
import random
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import boto3
import numpy as np
import psutil
import pytest

from bootstrap.aws import fetched
from bootstrap.cli.train import rows as summary_rows
from bootstrap.nodes.fleet import nodes
from bootstrap.progress import Bars
from bootstrap.training import calibration
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.places.nodes_followed import RemoteRecord
from bootstrap.training.sources.dataset import PreparedDataset
from common.errors import ShoalError, TrainingError
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from corpus.reading.s3 import S3Path, place_of
from embedded.aws import EmbeddedAws
from experiments.forecast.rates import Node, rates_of, read_rates
from tests.events import points
from tests.experiments.forecast.test_training import a_run
from tests.fleet import BUCKET, Fleet, pack_code
from tests.processes import rank_processes
from tests.trained import forecast_on, train_on
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown

ROOT = Path(__file__).parents[3]
DATASET = f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5"
STAGES = ["start the nodes", "copy the data", "train", "end the nodes"]


class Impatient(Bars):
    """Ctrl-C as soon as a step is seen."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        super().stage(name, total, unit)
        self._stage = name

    def at(self, done: int) -> None:
        if self._stage == "train" and done:
            self._stage = "stop"
            raise KeyboardInterrupt


class Murderer(Bars):
    """Kills the second rank, which is on the second node, as soon as a checkpoint may be there."""

    def __init__(self, nodes: Path) -> None:
        super().__init__()
        self._nodes = nodes
        self.killed: list[psutil.Process] = []

    def at(self, done: int) -> None:
        super().at(done)
        if not self.killed and done > 40 * 256:
            self.killed = rank_processes(1, self._nodes)
            for rank in self.killed:
                rank.kill()


def rows(count: int) -> RowBlock:
    generator = np.random.default_rng(count)
    labels = (generator.random(count) < 0.5).astype(np.uint8)
    tokens = (2 + 10 * labels[:, None] + generator.integers(0, 10, (count, 10))).astype(np.uint16)
    return RowBlock(tokens, np.full(count, 10, np.uint16), labels, labels * 4 + 1)


@pytest.fixture(scope="module")
def bucket(aws: EmbeddedAws) -> None:
    """A bucket with a dataset, and with what nodes install."""
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket=BUCKET)
    write_dataset(
        aws.folder / "dataset.h5",
        train=rows(2000),
        test=rows(200),
        vocabulary=[f"word{letter}" for letter in "abcdefghijklmnopqrst"],
        settings=Settings(row_length=10, vocabulary_size=20),
    )
    s3.upload_file(str(aws.folder / "dataset.h5"), BUCKET, place_of(DATASET).key)
    with zipfile.ZipFile(aws.folder / "code.zip", "w") as archive:
        pack_code(archive)
    s3.upload_file(str(aws.folder / "code.zip"), BUCKET, "code.zip")
    s3.upload_file(str(ROOT / "build" / "wheels" / "gpu.zip"), BUCKET, "wheels.zip")
    s3.upload_file(str(ROOT / "bootstrap" / "nodes" / "gpu" / "boot.sh"), BUCKET, "boot.sh")


pytestmark = pytest.mark.usefixtures("bucket")


def boot(share: str | None) -> str:
    variables = {
        "DATA_BUCKET": BUCKET,
        "SHARE_KIND": share or "none",
        "CODE_URL": f"s3://{BUCKET}/code.zip",
        "WHEELS_URL": f"s3://{BUCKET}/wheels.zip",
    }
    exports = [f"export {name}={value}" for name, value in variables.items()]
    return "\n".join([*exports, f"aws s3 cp s3://{BUCKET}/boot.sh boot.sh", "exec bash boot.sh"])


def checkpoints() -> list[str]:
    found = boto3.Session().client("s3").list_objects_v2(Bucket=BUCKET, Prefix="runs/").get("Contents", [])
    return [each["Key"] for each in found if "/checkpoints/" in each["Key"]]


class View:
    """Takes a record as it is fed."""

    def __init__(self) -> None:
        self.fed, self.offset = b"", 0

    def feed(self, more: bytes) -> None:
        self.fed += more
        self.offset += len(more)

    def begin_again(self) -> None:
        self.fed, self.offset = b"", 0


def test_a_record_is_followed_from_where_the_resumed_run_writes(aws) -> None:
    name = "followed.20260102T030405-0a1b"
    place = S3Path(BUCKET, f"runs/{name}/record.jsonl")
    s3, view = boto3.Session().client("s3"), View()

    def written(content: bytes) -> bytes:
        s3.put_object(Bucket=place.bucket, Key=place.key, Body=content)
        record.look()
        return view.fed

    s3.put_object(Bucket=place.bucket, Key=place.key, Body=b"the sitting before\n")
    record = RemoteRecord(NodeLaunch(Fleet().deployment, name), view)
    record.look()
    assert view.fed == b""
    assert written(b"the sitting before\nthis one\n") == b"the sitting before\nthis one\n"
    record.look()
    assert written(b"the sitting before\nthis one\nmore\n") == b"the sitting before\nthis one\nmore\n"
    assert written(b"begun anew\n") == b"begun anew\n"


@pytest.mark.slow
@pytest.mark.parametrize("share", ["nfs", None])
def test_a_stopped_run_continues_although_its_folder_ended_with_the_nodes(
    aws, tmp_path: Path, share: str | None
) -> None:
    two = Fleet(share=share).add("pair", "g5.xlarge", 2, boot=boot(share))
    config = TrainConfig(data=Path("dataset"), output=tmp_path, epochs=12)
    slow = replace(
        config, slow={0: Slowdown(60.0), 1: Slowdown(60.0)}, balance="off"
    )  # so that it does not end before it is stopped

    with Impatient() as bars:
        stopped = train_on(two.deployment, slow, DATASET, bars)
    assert stopped["run"].rstrip("/").rpartition("/")[2] not in fetched.unfetched(boto3.client("s3"), BUCKET)
    assert stopped["stopped"]
    assert two.desired() == {"pair": 0}
    assert checkpoints()
    predicted = stopped["launch"]["predicted"]
    told = json.loads((tmp_path / "launch.json").read_text())
    assert (told["predicted"], told["emulated"]) == (predicted, True)
    assert [stage["name"] for stage in predicted["stages"]] == STAGES
    assert predicted["dollars"]["middle"] == pytest.approx(
        sum(each["dollars"]["middle"] for each in predicted["stages"])
    )
    assert "  copy the data" in [name for name, _ in summary_rows(stopped, tmp_path)]

    with Bars() as bars:
        finished = train_on(two.deployment, replace(config, resume=True), DATASET, bars)
    assert finished["run"] == stopped["run"]
    assert finished["world_size"] == 2
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    starts = [line for line in map(json.loads, (tmp_path / "record.jsonl").open()) if line["kind"] == "start"]
    assert starts[0]["from_step"] == 0
    assert starts[-1]["from_step"] > 0
    steps = [step for step, _ in points(tmp_path / "tensorboard")["training/loss"]]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, finished["steps"])
    assert 0 < finished["cost"] < 1
    assert "launch" not in finished  # nobody could tell what was left of it
    launch = json.loads((tmp_path / "launch.json").read_text())
    assert [stage["name"] for stage in launch["stages"]] == STAGES
    assert sum(stage["dollars"] for stage in launch["stages"]) == pytest.approx(launch["cost"])
    assert checkpoints() == []
    assert ("nodes", "2 g5.xlarge, on-demand, in us-east-1a") in summary_rows(finished, tmp_path)


@pytest.mark.slow
def test_a_rank_that_is_lost_on_one_node_is_started_again_with_all_others(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(30.0), 1: Slowdown(30.0)}
    config = TrainConfig(
        data=Path("dataset"), output=tmp_path, epochs=12, slow=slow, balance="off", checkpoint_minutes=0.004
    )
    with Murderer(aws.folder) as bars:
        finished = train_on(two.deployment, config, DATASET, bars)
    assert len(bars.killed) == 1
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").open()]
    starts = [line["from_step"] for line in record if line["kind"] == "start"]
    assert len(starts) == 2
    node = finished["nodes"][1]["instance_id"]
    note = next(line["text"] for line in record if line["kind"] == "note")
    assert note.startswith(f"rank 1 on {node} was ended by signal 9 (SIGKILL)")
    assert note.endswith(f"; resuming from step {starts[1]}")


class Taker(Bars):
    """Takes the first node away, which serves the folder that all share, when a checkpoint is in the bucket."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet, self.taken, self.notes = fleet, "", list[str]()

    def at(self, done: int) -> None:
        super().at(done)
        if not self.taken and checkpoints():
            self.taken = nodes(self._fleet.deployment)[0].instance_id
            boto3.client("ec2").terminate_instances(InstanceIds=[self.taken])

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.slow
def test_the_others_go_on_without_the_first_node_from_the_newest_checkpoint_in_the_bucket(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(30.0), 1: Slowdown(30.0)}
    config = TrainConfig(
        data=Path("dataset"), output=tmp_path, epochs=12, slow=slow, balance="off", checkpoint_minutes=0.02
    )
    with Taker(two) as bars:
        finished = train_on(two.deployment, config, DATASET, bars)
    assert any(note.startswith(f"the node {bars.taken} is gone; attempt 2 continues on ") for note in bars.notes)
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    starts = [line for line in map(json.loads, (tmp_path / "record.jsonl").open()) if line["kind"] == "start"]
    assert len(starts) >= 2
    assert starts[1]["from_step"] > 0
    assert two.desired() == {"pair": 0}


class KilledAgents:
    """Kills the agent of one of the nodes below a folder, again and again at random moments."""

    def __init__(self, nodes: Path) -> None:
        self._nodes, self._random, self._over = nodes, random.Random(7), threading.Event()
        self._thread = threading.Thread(target=self._kill)
        self.killed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _kill(self) -> None:
        while self.killed < 20 and not self._over.wait(self._random.uniform(0.1, 1.0)):
            agents = [
                each
                for each in psutil.process_iter(["cmdline", "environ"])
                if (each.info["environ"] or {}).get("NODE_ROOT", "").startswith(f"{self._nodes}/")
                and (each.info["cmdline"] or [])[-2:] == ["-m", "bootstrap.agent"]
            ]
            if agents:
                self._random.choice(agents).kill()
                self.killed += 1


@pytest.mark.slow
def test_agents_that_are_killed_at_random_moments_change_nothing(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(40.0), 1: Slowdown(40.0)}
    config = TrainConfig(
        data=Path("dataset"), output=tmp_path / "one", epochs=12, slow=slow, balance="off", threads=1, seed=3
    )

    def trained(output: Path) -> tuple[bytes, list[float]]:
        with Bars() as bars:
            found = train_on(two.deployment, replace(config, output=output), DATASET, bars)
        assert (found["stopped"], found["rows_seen"]) == (False, 12 * found["rows"])
        record = [json.loads(line) for line in (output / "record.jsonl").open()]
        assert sum(line["kind"] == "start" for line in record) == 1
        losses = [line["loss"] for line in record if line["kind"] == "epoch"]
        return (output / "model" / "model.safetensors").read_bytes(), losses

    undisturbed = trained(tmp_path / "one")
    with KilledAgents(aws.folder) as agents:
        disturbed = trained(tmp_path / "other")
    assert agents.killed == 20
    assert disturbed == undisturbed


@pytest.mark.parametrize("resume", [False, True])
def test_a_finished_model_is_not_replaced_and_no_node_is_started_for_it(aws, tmp_path: Path, resume: bool) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("finished")
    config = TrainConfig(data=Path("dataset"), output=tmp_path, resume=resume)
    with Bars() as bars, pytest.raises(TrainingError, match="is a finished model"):
        train_on(one.deployment, config, DATASET, bars)
    activities = one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"]
    assert activities == []


def test_vectors_that_nodes_cannot_read_are_refused_before_any_node_starts(aws, tmp_path: Path) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    config = TrainConfig(data=Path("dataset"), output=tmp_path, embeddings="vectors.bin")
    with Bars() as bars, pytest.raises(ShoalError, match="--embeddings goes with --local"):
        train_on(one.deployment, config, DATASET, bars)
    assert one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"] == []


def test_with_force_a_run_may_replace_a_finished_model(aws, tmp_path: Path) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("finished")
    config = TrainConfig(data=Path("dataset"), output=tmp_path, force=True)
    missing = f"s3://{BUCKET}/datasets/{2:032x}/dataset.h5"
    with Bars() as bars, pytest.raises(ShoalError, match="there is no dataset at"):
        train_on(one.deployment, config, missing, bars)


def keys() -> set[str]:
    found = boto3.Session().client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    return {each["Key"] for each in found if not each["Key"].startswith("nodes/")}


@pytest.mark.slow
def test_a_calibration_starts_the_nodes_once_and_leaves_nothing_in_the_bucket(
    aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_BATCHES_OF_NODES", (32, 64))
    monkeypatch.setattr(calibration, "_SECONDS", 0.5)
    two = Fleet().add("pair", "g5.xlarge", 2, boot=boot(None))
    before = keys()
    price = calibration.calibration_price(OnDeployment(two.deployment))
    assert price.nodes == [Node("g5.xlarge", 1)] * 2
    assert price.dollars is not None
    assert 0 < price.dollars.low < price.dollars.middle < price.dollars.high < 5
    config = TrainConfig(data=Path("dataset"), output=tmp_path / "rates", hidden=8)
    with Bars() as bars:
        folders = calibration.calibrate(config, OnDeployment(two.deployment), data=None, bars=bars)
    assert [folder.name for folder in folders] == ["batch-32", "batch-64"]
    assert keys() == before
    assert two.desired() == {"pair": 0}
    activities = two.scaling.describe_scaling_activities(AutoScalingGroupName=f"{two.name}-pair")["Activities"]
    assert sum("Launching" in each["Description"] for each in activities) == 2
    rates = read_rates([tmp_path / "rates"])
    assert rates.nodes == (Node("g5.xlarge", 1), Node("g5.xlarge", 1))
    assert len(rates.ranks) == 2

    with Bars() as bars:
        trained = train_on(two.deployment, replace(config, output=tmp_path / "model", epochs=2), DATASET, bars, rates)
    assert "batch-32" in trained["launch"]["predicted"]["source"]
    assert trained["run"].rstrip("/").rpartition("/")[2] not in fetched.unfetched(boto3.client("s3"), BUCKET)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"model": "fasttext"}, "the catalogue has rates of the LSTM alone"),
        ({"resume": True}, "goes on from where it was stopped"),
    ],
)
def test_what_nobody_can_predict_is_noted_and_no_error(
    aws, tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], part: str
) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    config = TrainConfig(data=Path("dataset"), output=tmp_path, **changes)
    with Bars() as bars:
        assert forecast_on(one.deployment, config, PreparedDataset(DATASET), bars) is None
    assert part in " ".join(capsys.readouterr().err.split())


def test_a_missing_dataset_and_other_gpus_are_no_error_either(
    aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    config = TrainConfig(data=Path("dataset"), output=tmp_path)
    missing = PreparedDataset(f"s3://{BUCKET}/datasets/{2:032x}/dataset.h5")
    rates = rates_of([a_run(tmp_path / "rates", batch=64, rows=5_000)])
    with Bars() as bars:
        assert forecast_on(one.deployment, config, missing, bars) is None
        assert forecast_on(one.deployment, config, PreparedDataset(DATASET), bars, rates) is None
        found = forecast_on(one.deployment, config, PreparedDataset(DATASET), bars)
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("not predicted: ") == 2
    assert "runs of this machine" in said
    assert found is not None
    assert "A10G not measured" in found["source"]
    assert "predicted, on AWS: " in said
