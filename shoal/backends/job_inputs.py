"""Inputs of a run's SageMaker job: its hyperparameters, its input channels and its time limit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import ShoalError
from common.names import SETS
from common.options import flag
from corpus.reading import s3
from shoal.aws import objects
from shoal.aws.deployment import Deployment
from shoal.backends.deployment_data import FILES, with_uploaded_files
from shoal.backends.deployment_runs import needs_prices
from shoal.backends.training_jobs import JobSettings
from shoal.runs.run import Run
from trainer.managed import DATA

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_NOT_GIVEN = (*FILES, "resume", "force")
"""Options that are not passed as hyperparameters: files are input channels, and the container always resumes."""
_QUESTIONS = ".questions"


def job_inputs(
    client: "S3Client", run: Run, shared: JobSettings, folder: s3.S3Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the hyperparameters of a run's job, and the addresses of its input channels by name.

    The channels are the dataset, the files of options and, for AWS's own image, Shoal's code. `folder` is the run's
    folder, to which files of this machine are uploaded.
    """
    options = with_uploaded_files(run.options, s3.S3Path(folder.bucket, f"{folder.key}{SETS}"))
    hyper = {name: json.dumps(list(words)) for name, words in options.items() if name not in _NOT_GIVEN}
    channels = {DATA: str(run.data.request()["dataset"])}
    for name in FILES:
        addresses = options.get(name, ())
        if len(addresses) > 1:
            raise ShoalError(f"{flag(name)} accepts only one file for SageMaker; pass one file")
        channels |= {name: _prefix(client, addresses[0])} if addresses else {}
    code = {name: getattr(shared, name) for name in ("code", "wheels", "script")}
    return hyper, channels | {name: address for name, address in code.items() if address}


def _prefix(client: "S3Client", address: str) -> str:
    """Return a channel's S3 prefix for a file, a folder, or the two files of an analogy set in MSR's format."""
    if address.endswith(_QUESTIONS):
        return address.removesuffix(_QUESTIONS[1:])
    place = s3.place_of(address)
    is_file = place.key in objects.sizes(client, place) or Path(place.key).suffix
    return address if is_file else f"{address.rstrip('/')}/"


def longest_seconds(deployment: Deployment, run: Run, shared: JobSettings) -> int:
    """Return the time limit of a job in seconds: the topology's `max_hours`, or less if the cost limit is lower.

    Raises ShoalError if the cost limit pays for less than a minute, or if a cost limit is set and prices are unknown.
    """
    longest = shared.max_hours * 3600
    if run.limits.max_dollars is None:
        return longest
    hourly = shared.hourly(str(deployment.session.region_name))
    if hourly is None:
        raise ShoalError(needs_prices(deployment))
    if (paid := int(run.limits.max_dollars / hourly * 3600)) < 60:
        limit = deployment.limit_of(run.limits.max_dollars)
        raise ShoalError(f"{limit}, but a job costs ${hourly:.2f} per hour; set a higher --max-dollars")
    return min(longest, paid)
