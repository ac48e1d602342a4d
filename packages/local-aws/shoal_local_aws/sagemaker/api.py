"""Operations of SageMaker's API on training jobs, which `job.py` runs. All other SageMaker operations are refused."""

import re
from collections.abc import Iterator

from shoal_local_aws.faults import quotas
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.nodes.machine import Machines
from shoal_local_aws.sagemaker.job import ENDED, EmulatedJob
from shoal_local_aws.seams import requests, routing
from shoal_local_aws.seams.lookup import Record
from shoal_local_aws.service import RefusedError, json_operation, json_service

_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_LONGEST_SECONDS = 28 * 24 * 3600
_jobs: dict[tuple[str, str, str], EmulatedJob] = {}
"""Jobs by account, region and name. As on SageMaker, jobs that have ended remain listed."""


def install(machines: Machines, faults: Faults) -> None:
    """Add SageMaker to ministack's services."""

    def create(request: Record) -> Record:
        _check(request)
        key = _key(request["TrainingJobName"])
        # Rule: The name of a job is unique. Source: botocore sagemaker CreateTrainingJob.
        if key in _jobs:
            raise RefusedError("ResourceInUse", "Training job names must be unique within an AWS account and region.")
        running = [job.record for job in jobs() if job.record["TrainingJobStatus"] not in ENDED]
        quotas.require_jobs(faults, running, request)
        _jobs[key] = EmulatedJob(request, machines=machines, faults=faults)
        _jobs[key].start()
        return {"TrainingJobArn": _jobs[key].record["TrainingJobArn"]}

    operations = {
        "CreateTrainingJob": create,
        "DescribeTrainingJob": lambda request: _find(request["TrainingJobName"]).record,
        "ListTrainingJobs": _list,
        "StopTrainingJob": _stop,
        "ListTags": lambda request: {"Tags": _find(request["ResourceArn"].rpartition("/")[2]).tags},
    }
    named = {name: json_operation(operation) for name, operation in operations.items()}
    routing.add_service("sagemaker", "SageMaker", json_service(named))


def jobs() -> Iterator[EmulatedJob]:
    """Return the jobs in the region of the current request, the newest first."""
    here = _key("")[:2]
    return (job for key, job in reversed(_jobs.items()) if key[:2] == here)


def _key(name: str) -> tuple[str, str, str]:
    return requests.account(), requests.region(), name


def _find(name: str) -> EmulatedJob:
    # Rule: An unknown job is a validation error. Source: aws/aws-sdk#165.
    if (found := _jobs.get(_key(name))) is None:
        raise RefusedError("ValidationException", "Requested resource not found.")
    return found


def _list(request: Record) -> Record:
    found = [
        job.record
        for job in jobs()
        if request.get("StatusEquals") in (None, job.record["TrainingJobStatus"])
        and request.get("NameContains", "").lower() in job.record["TrainingJobName"].lower()
    ]
    return {"TrainingJobSummaries": found}


def _stop(request: Record) -> Record:
    job = _find(request["TrainingJobName"])
    # Rule: A job is stopped once. Source: awslabs/benchmark-ai#928.
    if (status := job.record["TrainingJobStatus"]) in ENDED:
        message = f"The request was rejected because the training job is in status {status}."
        raise RefusedError("ValidationException", message)
    job.stop()
    return {}


def _check(request: Record) -> None:
    """Raise RefusedError for a CreateTrainingJob request that SageMaker would refuse."""
    # Rule: The name of a job has a pattern. Source: botocore sagemaker CreateTrainingJob; Kenza-AI/sagify#57.
    if not _NAME.fullmatch(request["TrainingJobName"]):
        raise RefusedError("ValidationException", f"'{request['TrainingJobName']}' is not a name for a training job.")
    limits, spot = request["StoppingCondition"], request.get("EnableManagedSpotTraining", False)
    longest, waits = limits.get("MaxRuntimeInSeconds", 24 * 3600), limits.get("MaxWaitTimeInSeconds")
    # Rule: A job runs at most 28 days. Source: botocore sagemaker CreateTrainingJob.
    if not 1 <= longest <= _LONGEST_SECONDS:
        raise RefusedError(
            "ValidationException", f"MaxRuntimeInSeconds {longest} is not between 1 and {_LONGEST_SECONDS}."
        )
    # Rule: A spot job waits as long as it may run, or longer. Source: botocore sagemaker CreateTrainingJob.
    if spot != (waits is not None) or (waits is not None and waits < longest):
        raise RefusedError(
            "ValidationException",
            "Invalid MaxWaitTimeInSeconds. It requires spot instances, and must be at least MaxRuntimeInSeconds.",
        )
