"""Preprocessing run that a different command started on a deployment. From any machine, the run can be stopped, or
followed until its dataset exists.

All necessary information is in the name and arguments of the cluster's step, and in the run's folder in the data
bucket.
"""

from typing import TYPE_CHECKING, NamedTuple

from bootstrap.node.documents import Cancellation
from common import names
from common.errors import ShoalError
from common.names import FINGERPRINT, step_name
from corpus.reading.s3 import S3Path, list_objects
from jobs.merge import MergeResult, read_merge_result
from jobs.plan import RESULT, Plan
from shoal.aws.deployment import Deployment
from shoal.preprocessing.cancelling import cancel
from shoal.preprocessing.cluster import EmrCluster
from shoal.preprocessing.work import ClusterWork, record_result

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_PREFIX = step_name("", "").partition(" ")[0]
"""Common prefix of the names of all EMR steps that Shoal submits."""


class Step(NamedTuple):
    """Pending or running step of a preprocessing run."""

    run: str
    id: str


def step_of(cluster: EmrCluster, run: str | None) -> Step | None:
    """Return the active step of a run, or None. Without `run`, return the oldest active step of any run."""
    for name, step in cluster.active_steps(_PREFIX).items():
        run_name = name.strip().partition(": ")[0]
        if FINGERPRINT.fullmatch(run_name) and run in (None, run_name):
            return Step(run_name, step)
    return None


def attach(deployment: Deployment, run: str | None) -> MergeResult:
    """Follow a preprocessing run until it ends, and return its result. If the run has already ended, return its stored
    result.

    Without `run`, use the active run, or the last run if none is active. Raises ShoalError if no such run is active or
    has a result. Raises the same errors as `preprocess_on_deployment` if the run fails.
    """
    s3 = deployment.session.client("s3")
    works = S3Path(deployment.output(names.OUTPUT_DATA_BUCKET), names.WORK)
    cluster = EmrCluster(deployment)
    step = step_of(cluster, run)
    if step is None:
        return read_merge_result(str(_newest_summary(s3, works, deployment.name, run)))
    work = ClusterWork(s3=s3, folder=S3Path(works.bucket, f"{works.key}{step.run}/"))
    plan = Plan.read(str(work.folder).rstrip("/"))
    cluster.follow(step.id, plan)
    result = read_merge_result(plan.summary)
    record_result(s3, step.run, result)
    work.finish(plan)
    return result


class StartedPreprocessing:
    """Preprocessing run that a different command started on a deployment's cluster. Without `run`, it is the active
    run."""

    results, continued = "", "the command that started it"

    def __init__(self, deployment: Deployment, run: str | None) -> None:
        self.deployment, self.name = deployment, run or ""

    def follow(self) -> MergeResult:
        """Run `attach`."""
        return attach(self.deployment, self.name or None)

    def stop(self) -> tuple[str, str]:
        """Cancel the active step of the run. Return `stopped` and an empty reason.

        Raises ShoalError if no step is active, or if some jobs of the run might still be running.
        """
        cluster = EmrCluster(self.deployment)
        step = step_of(cluster, self.name or None)
        if step is None:
            raise _nothing_runs(self.deployment.name, self.name or None)
        self.name = step.run
        token = cluster.token(step.id, step.run)
        if token is None:
            raise ShoalError(
                f"an earlier version of Shoal submitted the step of run {step.run}; cancel it in EMR's console"
            )
        cancel(cluster, step.id, Cancellation(run=step.run, token=token))
        return "stopped", ""


def _newest_summary(s3: "S3Client", work: S3Path, deployment: str, run: str | None) -> S3Path:
    """Return the address of the result of a finished run. Without `run`, use the last finished run."""
    summaries = [
        each
        for each in list_objects(s3, work)
        if (parts := each["Key"].removeprefix(work.key).partition("/"))[2] == RESULT
        and FINGERPRINT.fullmatch(parts[0])
        and run in (None, parts[0])
    ]
    if not summaries:
        raise _nothing_runs(deployment, run)
    return S3Path(work.bucket, max(summaries, key=lambda each: each["LastModified"])["Key"])


def _nothing_runs(deployment: str, run: str | None) -> ShoalError:
    if run is None:
        return ShoalError(
            f"nothing runs on '{deployment}': its nodes have no training request, and its cluster has no active or "
            "finished preprocessing run"
        )
    return ShoalError(f"the preprocessing run {run} is neither active nor finished on the cluster of '{deployment}'")
