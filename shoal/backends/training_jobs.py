"""Finds, describes and stops SageMaker training jobs of a deployment.

The job itself stores everything about a run. The hyperparameters of the job are the run's options, and its checkpoint
address is the run's folder. So no other document is needed, and a run continues without its command.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from shoal_guard.handlers import cleanup

from common import names
from common.errors import DataError, ShoalError
from common.json_values import from_json, parse_json_object
from corpus.reading import s3
from corpus.reading.s3 import S3Path
from corpus.reading.storage import size_of
from infra import catalog, cost
from infra.managed_spec import PREFIX
from shoal.aws import checked
from shoal.aws.account import Account
from shoal.aws.deployment import Deployment
from shoal.aws.retry import retrying
from shoal.backends.deployment_data import FILES
from trainer.config import NEEDS_GPU
from trainer.managed import DATA, MEASURES

ENDED = ("Completed", "Failed", "Stopped")


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Settings that all jobs of a deployment share. They are read from an output of the stack."""

    role: str
    image: str
    instance_type: str
    count: int
    market: str
    max_hours: int
    gpu: bool
    """True if an instance has a GPU. A rank without one then fails."""
    beside: bool
    """True if the deployment also has node groups that train."""
    code: str = ""
    wheels: str = ""
    script: str = ""
    """`code`, `wheels` and `script`: S3 addresses of the code that AWS's image lacks; empty if the user provides an
    image.
    """
    key: str = ""
    """ARN of the topology's KMS key; empty if the topology has no key."""

    @property
    def ec2_type(self) -> str:
        return self.instance_type.removeprefix(PREFIX)

    def hourly(self, region: str) -> float | None:
        """Return the cost of all instances in dollars per hour, at the on-demand price; None if it is unknown."""
        return _hourly(region, self.ec2_type, self.count)


def _hourly(region: str, ec2_type: str, count: int) -> float | None:
    price = cost.known(catalog.prices(region).managed_hourly, ec2_type)
    return None if price is None else count * price


def settings(deployment: Deployment) -> JobSettings:
    """Return the settings of a deployment's jobs.

    Raises ShoalError if the topology has no managed training, or if a different version of Shoal wrote the output.
    """
    text = deployment.output(names.OUTPUT_MANAGED)
    try:
        return from_json(JobSettings, parse_json_object(text))
    except DataError as error:
        raise ShoalError(
            f"a different version of Shoal wrote the output {names.OUTPUT_MANAGED} of the deployment "
            f"'{deployment.name}'; deploy it again"
        ) from error


@dataclass(frozen=True, kw_only=True)
class _Option:
    words: tuple[str, ...]


class Job:
    """SageMaker training job of a deployment. Its attributes do not change after the description was read."""

    def __init__(self, deployment: Deployment, described: Mapping[str, Any]) -> None:
        """`described` is SageMaker's description of the job.

        Raises ShoalError if the job's folder is not a run's folder.
        """
        self.deployment, self.description = deployment, described
        self.name = str(described["TrainingJobName"])
        address = str((described.get("CheckpointConfig") or {}).get("S3Uri", ""))
        try:
            self.bucket, self.run = s3.place_of(address).bucket, checked.run(address.rpartition("/")[2])
        except DataError as error:
            raise ShoalError(
                f"the job {self.name} has no run folder, so Shoal did not start it; inspect it with AWS's tools"
            ) from error

    @property
    def status(self) -> str:
        """`InProgress`, `Stopping`, or one of ENDED."""
        return str(self.description["TrainingJobStatus"])

    @property
    def phase(self) -> str:
        """SageMaker's secondary status, such as `Downloading`."""
        return str(self.description.get("SecondaryStatus", self.status))

    @property
    def has_ended(self) -> bool:
        """True if the job has ended."""
        return self.status in ENDED

    @property
    def why(self) -> str:
        return str(self.description.get("FailureReason", ""))

    @property
    def created(self) -> datetime:
        created: datetime = self.description["CreationTime"]
        return created.astimezone(UTC)

    @property
    def dataset(self) -> str:
        """Address of the dataset."""
        return self.channels[DATA]

    @property
    def channels(self) -> dict[str, str]:
        """Addresses of the input channels, by name."""
        given = self.description.get("InputDataConfig") or ()
        return {each["ChannelName"]: str(each["DataSource"]["S3DataSource"]["S3Uri"]) for each in given}

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """Options of the run: the words of each option's value, by name. Files are given by their S3 addresses.

        Raises ShoalError if Shoal did not start the job.
        """
        given = self.description.get("HyperParameters") or {}
        files = {name: (address,) for name, address in self.channels.items() if name in FILES}
        try:
            words = {name: from_json(_Option, {"words": json.loads(value)}).words for name, value in given.items()}
        except (DataError, RecursionError, ValueError) as error:
            raise ShoalError(
                f"the job {self.name} has options that Shoal does not know; inspect it with AWS's tools"
            ) from error
        return words | files

    @property
    def work(self) -> tuple[object, ...]:
        """Value of `work_of` for this job. It is equal for jobs that the same command starts."""
        return work_of(self.run, self.description.get("HyperParameters") or {}, self.channels)

    def seconds(self, now: datetime) -> float:
        """Return the billed seconds of each instance. While the job is running, this is an upper bound."""
        if self.has_ended:
            return float(self.description.get("BillableTimeInSeconds", 0))
        began = self.description.get("TrainingStartTime")
        return max(0.0, (now - began).total_seconds()) if began else 0.0

    def dollars(self) -> float | None:
        """Return the cost so far in dollars; None if the price is unknown."""
        of, region = self.description["ResourceConfig"], str(self.deployment.session.region_name)
        hourly = _hourly(region, of["InstanceType"].removeprefix(PREFIX), of["InstanceCount"])
        return None if hourly is None else hourly * self.seconds(datetime.now(UTC)) / 3600

    @property
    def outcome(self) -> str:
        """Outcome of the job, with the same values as for a launch on nodes: `finished`, `failed` or `stopped`."""
        return {"Completed": "finished", "Failed": "failed"}.get(self.status, "stopped")

    def refreshed(self) -> "Job":
        """Return the job with a new description from SageMaker."""
        return described(self.deployment, self.name)

    def stop(self) -> None:
        """Request a stop with a checkpoint, unless the job has ended or is stopping."""
        if self.refreshed().status == "InProgress":
            retrying(partial(cleanup.stop_job, self.deployment.session.client("sagemaker"), self.name))


def instances_of(job: Job) -> list[dict[str, Any]]:
    """Return the instances of a job, with the same fields as the nodes in reports."""
    resources = job.description["ResourceConfig"]
    kind = catalog.find(resources["InstanceType"].removeprefix(PREFIX))
    instance = {
        "instance_type": kind.name,
        "market": "spot" if job.description.get("EnableManagedSpotTraining") else "on-demand",
        "zone": "SageMaker",
        "group": "managed",
        "gpus": kind.gpu.count if kind.gpu else 1,
    }
    return [dict(instance) for _ in range(resources["InstanceCount"])]


def described(deployment: Deployment, name: str) -> Job:
    sagemaker = deployment.session.client("sagemaker")
    return Job(deployment, retrying(partial(sagemaker.describe_training_job, TrainingJobName=name)))


def jobs(deployment: Deployment, run: str | None = None, *, active: bool = False) -> Iterator[Job]:
    """Yield the jobs of a deployment, newest first. With `run`, yield only the jobs of this run.

    SageMaker also lists ended jobs. If `active` is true, they are left out.
    """
    if run is not None and not names.is_run(run):
        return
    prefix = job_name(run) if run else cleanup.job_prefix(deployment.name)
    bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
    filters = {"NameContains": prefix, "SortBy": "CreationTime", "SortOrder": "Descending"}
    sagemaker: Any = deployment.session.client("sagemaker")
    pages = sagemaker.get_paginator("list_training_jobs").paginate(**filters)
    for each in retrying(lambda: [job for page in pages for job in page["TrainingJobSummaries"]]):
        name, ended = each["TrainingJobName"], each["TrainingJobStatus"] in ENDED
        if cleanup.is_job(name, deployment.name) and name.startswith(prefix) and not (active and ended):
            job = described(deployment, name)
            if job.bucket == bucket:  # a job of an earlier deployment with the same name has a different bucket
                yield job


def count_active_jobs(account: Account, deployment: str, outputs: Mapping[str, str]) -> int:
    """Return the number of active jobs of a deployment; 0 without managed training."""
    if names.OUTPUT_MANAGED not in outputs:
        return 0
    return len(cleanup.running_jobs(account.client("sagemaker"), deployment, names.TAG_DEPLOYMENT))


def work_of(run: str, hyper: Mapping[str, str], channels: Mapping[str, str]) -> tuple[object, ...]:
    """Return a value that is equal for all jobs that the same command starts.

    Addresses of uploaded files contain the run's name, which differs from job to job. So the name is replaced.
    """
    return dict(hyper), {name: address.replace(f"/{run}/", "/RUN/") for name, address in channels.items()}


def job_name(run: str, launch: int = 1) -> str:
    """Return the name of a job: deployment, start time of the run and, from the second launch on, the launch number."""
    deployment, _, began = run.rpartition(".")
    digits = began.partition("-")[0].replace("T", "")[2:]
    return f"{cleanup.job_prefix(deployment)}-{digits}{f'-{launch}' if launch > 1 else ''}"


_VOLUME_GIB = 30
_COPIES = 3
"""Size of a job's disk, in addition to `_VOLUME_GIB`, as a multiple of the dataset's size.

The disk must have room for the downloaded and the unpacked dataset.
"""
_METRICS = ("loss", "rows_per_second", *MEASURES)


def job_request(
    deployment: Deployment,
    shared: JobSettings,
    *,
    name: str,
    folder: S3Path,
    options: Mapping[str, str],
    channels: Mapping[str, str],
    longest: int,
) -> dict[str, Any]:
    """Return the parameters of SageMaker's CreateTrainingJob.

    `folder` is the run's folder, `channels` has the address of each input channel by name, and `longest` is the time
    limit of the job in seconds.
    """
    spot = shared.market == "spot"
    script = [f"/opt/ml/input/data/script/{shared.script.rpartition('/')[2]}"] if shared.script else []
    gib = size_of(channels[DATA]) / (1 << 30)
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
            "S3OutputPath": f"s3://{folder.bucket}/{names.MODELS.rstrip('/')}",
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
        # The container needs no access to the internet or AWS, because SageMaker itself copies files in and out.
        "EnableNetworkIsolation": True,
        "EnableInterContainerTrafficEncryption": shared.count > 1,
        "Environment": {NEEDS_GPU: "1"} if shared.gpu else {},
        "Tags": [
            {"Key": name, "Value": value} for name, value in deployment.tags.items() if not name.startswith("aws:")
        ],
    }


def _channel(name: str, address: str) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": address, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}
