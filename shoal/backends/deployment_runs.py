"""Functions for all backends of a deployment: names of runs, and records in the data bucket."""

from dataclasses import replace

from bootstrap.node.store import Bucket
from common import names
from common.errors import ShoalError
from shoal.aws import checked, fetched
from shoal.aws.deployment import Deployment
from shoal.aws.guard import find_announcement
from shoal.aws.retry import retrying
from shoal.backends.training_jobs import jobs
from shoal.runs.files import Copied
from shoal.runs.run import Limits, Run
from shoal.runs.state import StopReason
from shoal.runs.store import RequestedRuns


def needs_prices(deployment: Deployment) -> str:
    """Return the message that a cost limit needs prices."""
    region = deployment.session.region_name
    return (
        f"--max-dollars needs prices, but Shoal does not know the prices of {region}; `make prices REGION={region}` "
        "downloads them"
    )


def requested_runs(deployment: Deployment) -> RequestedRuns:
    """Return the requests to the nodes of a deployment."""
    bucket = checked.bucket(deployment.output(names.OUTPUT_DATA_BUCKET))
    return RequestedRuns(Bucket(bucket, deployment.session.client("s3"), call=retrying), deployment.name)


def with_name(run: Run, deployment: Deployment, *, on_nodes: bool) -> Run:
    """Return a run with its name: a new name, or the name of the run to resume.

    Raises ShoalError if the run to resume is active on the deployment's other backend: in a SageMaker job if it is to
    start `on_nodes`, and on nodes otherwise.
    """
    runs = requested_runs(deployment)
    if not run.resumes:
        return replace(run, name=runs.new_name())
    name = runs.unfinished()
    if on_nodes:
        if names.OUTPUT_MANAGED in deployment.outputs and any(jobs(deployment, name, active=True)):
            raise ShoalError(f"SageMaker trains {name}; add --managed")
    elif (active := runs.active_request()) and active.run == name:
        raise ShoalError(f"the nodes of '{deployment.name}' execute {name}; leave out --managed")
    return replace(run, name=name)


def why_guard_stopped(deployment: Deployment) -> str:
    """Return why the deployment's guard stopped a run, and what to do before --resume; "" if it did not."""
    found = find_announcement(deployment)
    if found is None or not found.stops_runs:
        return ""
    return f"{found.reason}; do this before --resume: {found.remedy[:1].lower()}{found.remedy[1:].rstrip('.')}"


def stop_reason(deployment: Deployment, hint: str = "") -> StopReason:
    """Return who stopped a run that no cost limit stopped: the guard or a user. `hint` is as in `StopReason`."""
    why = why_guard_stopped(deployment)
    return StopReason(f"the guard stopped it, because {why}" if why else "somebody stopped it", hint)


def limited(limits: Limits, deployment: Deployment) -> Limits:
    """Return the limits with the cost limit of the deployment's topology, unless the user gave a cost limit."""
    return replace(limits, max_dollars=limits.max_dollars or deployment.max_dollars)


def record_copy(deployment: Deployment, run: str, copied: Copied) -> None:
    """Record in the data bucket that all files of a run were copied."""
    if not copied.refused:
        bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
        fetched.record(deployment.session.client("s3"), bucket, {run: copied.tags})
