"""A training job of SageMaker, as a deployment's commands see it: found by its name, described, stopped.

The job itself says all that is known of a run: its options are the job's hyperparameters, and its folder is where the
job copies its checkpoints. Nobody has to write down anything else, and the service keeps it when a command has ended.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from shoal_guard.handlers import cleanup

from bootstrap.aws import names
from bootstrap.aws.account import Account
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from common.errors import DataError, ShoalError
from common.json_values import from_json, parse_json_object
from corpus.reading import s3
from corpus.reading.s3 import S3Path
from corpus.reading.storage import size_of
from infra import catalog, cost, topology
from infra.managed_spec import PREFIX
from trainer.config import NEEDS_GPU
from trainer.managed import DATA, MEASURES

ENDED = ("Completed", "Failed", "Stopped")
FILES = ("embeddings", "similarity", "analogy")
"""Options whose files a job has as input channels."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the jobs of a deployment have in common, by its stack's output."""

    role: str
    image: str
    instance_type: str
    count: int
    market: str
    max_hours: int
    beside: bool
    """Whether the deployment has nodes that train, too."""
    code: str = ""
    wheels: str = ""
    script: str = ""
    """Addresses of what AWS's image lacks; empty with an image of the user's."""
    key: str = ""
    """The ARN of the KMS key of the topology; empty without one."""

    @property
    def ec2_type(self) -> str:
        return self.instance_type.removeprefix(PREFIX)

    def hourly(self, region: str) -> float | None:
        """Dollars an hour of all instances on demand; None where that is not known."""
        return _hourly(region, self.ec2_type, self.count)


def _hourly(region: str, ec2_type: str, count: int) -> float | None:
    price = cost.known(catalog.prices(region).managed_hourly, ec2_type)
    return None if price is None else count * price


def settings(deployment: Deployment) -> Settings:
    """Those of a deployment. Raises ShoalError where its topology has no training jobs, and for an output that is none
    of this Shoal's."""
    text = deployment.output(topology.OUTPUT_MANAGED)
    try:
        return from_json(Settings, parse_json_object(text))
    except DataError as error:
        raise ShoalError(
            f"the output {topology.OUTPUT_MANAGED} of the deployment '{deployment.name}' is of another version of "
            "Shoal; deploy it again"
        ) from error


@dataclass(frozen=True, kw_only=True)
class _Option:
    words: tuple[str, ...]


class Job:
    def __init__(self, deployment: Deployment, described: Mapping[str, Any]) -> None:
        """`described`: what SageMaker shows of it. Raises ShoalError for one whose folder is none of a run."""
        self.deployment, self._shown = deployment, described
        self.name = str(described["TrainingJobName"])
        address = str((described.get("CheckpointConfig") or {}).get("S3Uri", ""))
        try:
            self.bucket, self.run = s3.place_of(address).bucket, names.run(address.rpartition("/")[2])
        except DataError as error:
            raise ShoalError(f"the job {self.name} has no folder of a run; look at it by AWS's tools") from error

    @property
    def status(self) -> str:
        """InProgress, Stopping, or one of ENDED."""
        return str(self._shown["TrainingJobStatus"])

    @property
    def phase(self) -> str:
        """What it does, in SageMaker's words, such as Downloading."""
        return str(self._shown.get("SecondaryStatus", self.status))

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs."""
        return self.status in ENDED

    @property
    def why(self) -> str:
        return str(self._shown.get("FailureReason", ""))

    @property
    def created(self) -> datetime:
        found: datetime = self._shown["CreationTime"]
        return found.astimezone(UTC)

    @property
    def dataset(self) -> str:
        """The address of what it learns from."""
        return self.channels[DATA]

    @property
    def channels(self) -> dict[str, str]:
        """The addresses of its input channels, by their names."""
        given = self._shown.get("InputDataConfig") or ()
        return {each["ChannelName"]: str(each["DataSource"]["S3DataSource"]["S3Uri"]) for each in given}

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """The options of its training, with the addresses of files. Raises ShoalError for a job that is not Shoal's."""
        given = self._shown.get("HyperParameters") or {}
        files = {name: (address,) for name, address in self.channels.items() if name in FILES}
        try:
            words = {name: from_json(_Option, {"words": json.loads(value)}).words for name, value in given.items()}
        except (DataError, RecursionError, ValueError) as error:
            raise ShoalError(
                f"the job {self.name} has options that are not Shoal's; look at it by AWS's tools"
            ) from error
        return words | files

    @property
    def work(self) -> tuple[object, ...]:
        """What stands for what it does, by `work_of`."""
        return work_of(self.run, self._shown.get("HyperParameters") or {}, self.channels)

    @property
    def limit_hours(self) -> float:
        """After which SageMaker ends it."""
        return float(self._shown["StoppingCondition"]["MaxRuntimeInSeconds"]) / 3600

    @property
    def instances(self) -> list[dict[str, Any]]:
        """Its machines, as reports show nodes."""
        of = self._shown["ResourceConfig"]
        kind = catalog.find(of["InstanceType"].removeprefix(PREFIX))
        spot = self._shown.get("EnableManagedSpotTraining")
        shown = {
            "instance_type": kind.name,
            "market": "spot" if spot else "on-demand",
            "zone": "SageMaker",
            "group": "managed",
            "gpus": kind.gpu.count if kind.gpu else 1,
        }
        return [dict(shown) for _ in range(of["InstanceCount"])]

    def seconds(self, now: datetime) -> float:
        """The seconds of each of its machines that are paid for, as an upper bound while it runs."""
        if self.has_ended:
            return float(self._shown.get("BillableTimeInSeconds", 0))
        began = self._shown.get("TrainingStartTime")
        return max(0.0, (now - began).total_seconds()) if began else 0.0

    def dollars(self) -> float | None:
        """What it has cost so far; None where the price is not known."""
        of, region = self._shown["ResourceConfig"], str(self.deployment.session.region_name)
        hourly = _hourly(region, of["InstanceType"].removeprefix(PREFIX), of["InstanceCount"])
        return None if hourly is None else hourly * self.seconds(datetime.now(UTC)) / 3600

    @property
    def outcome(self) -> str:
        """How it has ended, as a launch on nodes."""
        return {"Completed": "finished", "Failed": "failed"}.get(self.status, "stopped")

    def again(self) -> "Job":
        """The same as it is now."""
        return described(self.deployment, self.name)

    def stop(self) -> None:
        """Ask it to stop with a checkpoint, unless it has ended or was asked."""
        if self.again().status == "InProgress":
            retrying(partial(cleanup.stop_job, self.deployment.session.client("sagemaker"), self.name))


def described(deployment: Deployment, name: str) -> Job:
    sagemaker = deployment.session.client("sagemaker")
    return Job(deployment, retrying(partial(sagemaker.describe_training_job, TrainingJobName=name)))


def jobs(deployment: Deployment, run: str | None = None, *, at_work: bool = False) -> Iterator[Job]:
    """The jobs of a deployment, or of one of its runs, the newest first; SageMaker keeps those that have ended, too,
    which `at_work` leaves out."""
    if run is not None and not names.is_run(run):
        return
    prefix = job_name(run) if run else cleanup.job_prefix(deployment.name)
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    asked = {"NameContains": prefix, "SortBy": "CreationTime", "SortOrder": "Descending"}
    sagemaker: Any = deployment.session.client("sagemaker")
    pages = sagemaker.get_paginator("list_training_jobs").paginate(**asked)
    for each in retrying(lambda: [job for page in pages for job in page["TrainingJobSummaries"]]):
        name, ended = each["TrainingJobName"], each["TrainingJobStatus"] in ENDED
        if cleanup.is_job(name, deployment.name) and name.startswith(prefix) and not (at_work and ended):
            job = described(deployment, name)
            if job.bucket == bucket:  # that of an earlier deployment of the name is another one
                yield job


def count_at_work(account: Account, deployment: str, outputs: Mapping[str, str]) -> int:
    """How many jobs of a deployment have not ended; none of one whose stack has no such output."""
    if topology.OUTPUT_MANAGED not in outputs:
        return 0
    return len(cleanup.jobs_at_work(account.client("sagemaker"), deployment, topology.TAG_DEPLOYMENT))


def work_of(run: str, hyper: Mapping[str, str], channels: Mapping[str, str]) -> tuple[object, ...]:
    """What stands for what a job does: the same for two jobs that one command begins, whose runs have folders of their
    own for the files of its machine."""
    return dict(hyper), {name: address.replace(f"/{run}/", "/RUN/") for name, address in channels.items()}


def job_name(run: str, launch: int = 1) -> str:
    """The name of a job: its deployment's, when its run began, and from the second on the number of its launch."""
    deployment, _, began = run.rpartition(".")
    digits = began.partition("-")[0].replace("T", "")[2:]
    return f"{cleanup.job_prefix(deployment)}-{digits}{f'-{launch}' if launch > 1 else ''}"


_VOLUME_GIB = 30
_COPIES = 3
"""Of a dataset on a job's disk: as it came, and unpacked."""
_METRICS = ("loss", "rows_per_second", *MEASURES)


def job_request(
    deployment: Deployment,
    shared: Settings,
    *,
    name: str,
    folder: S3Path,
    options: Mapping[str, str],
    channels: Mapping[str, str],
    longest: int,
) -> dict[str, Any]:
    """The parameters of CreateTrainingJob; `folder`: of the run, `channels`: addresses by their names, `longest`: the
    seconds after which SageMaker ends the job."""
    spot = shared.market == "spot"
    script = [f"/opt/ml/input/data/script/{shared.script.rpartition('/')[2]}"] if shared.script else []
    gib = size_of(channels[DATA]) / (1 << 30)
    # An emulated instance has no GPU.
    gpu = catalog.find(shared.ec2_type).gpu is not None and not deployment.is_emulated
    return {
        "TrainingJobName": name,
        "RoleArn": shared.role,
        "AlgorithmSpecification": {
            "TrainingImage": shared.image,
            "TrainingInputMode": "File",
            **({"ContainerEntrypoint": ["bash", *script]} if script else {}),
            "MetricDefinitions": [{"Name": each, "Regex": rf"\b{each}=([0-9.eE+-]+)"} for each in _METRICS],
        },
        "HyperParameters": dict(options),
        "InputDataConfig": [_channel(*each) for each in channels.items()],
        "OutputDataConfig": {
            "S3OutputPath": f"s3://{folder.bucket}/{topology.MODELS_PREFIX.rstrip('/')}",
            **({"KmsKeyId": shared.key} if shared.key else {}),
        },
        "CheckpointConfig": {"S3Uri": f"s3://{folder.bucket}/{folder.key.rstrip('/')}"},
        "ResourceConfig": {
            "InstanceType": shared.instance_type,
            "InstanceCount": shared.count,
            "VolumeSizeInGB": _VOLUME_GIB + round(_COPIES * gib),
        },
        "StoppingCondition": {
            "MaxRuntimeInSeconds": longest,
            **({"MaxWaitTimeInSeconds": 2 * longest} if spot else {}),
        },
        "EnableManagedSpotTraining": spot,
        # A container needs nothing of the internet or of AWS: the service itself brings files in and out.
        "EnableNetworkIsolation": True,
        "EnableInterContainerTrafficEncryption": shared.count > 1,
        "Environment": {NEEDS_GPU: "1"} if gpu else {},
        "Tags": [
            {"Key": name, "Value": value} for name, value in deployment.tags.items() if not name.startswith("aws:")
        ],
    }


def _channel(name: str, address: str) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": address, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}
