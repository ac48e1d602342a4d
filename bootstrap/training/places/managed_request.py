"""What SageMaker is asked for, to start a training job."""

from collections.abc import Mapping
from typing import Any

from bootstrap.aws.deployment import Deployment
from bootstrap.training.places.managed_job import Settings
from corpus.reading.s3 import S3Path
from corpus.reading.storage import size_of
from infra import catalog, topology
from trainer.config import NEEDS_GPU
from trainer.managed import DATA, MEASURES

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
