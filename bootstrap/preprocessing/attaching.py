"""Preprocessing run that a different command started on a deployment. From any machine, the run can be stopped, or
followed until its dataset exists.

All necessary information is in the names and arguments of the cluster's steps, and in the run's folder in the data
bucket.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bootstrap.agent.documents import FINGERPRINT, Cancellation, step_name
from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.preprocessing.cluster import EmrCluster
from bootstrap.preprocessing.work import FAILURE, FOLLOWED, record_result
from bootstrap.progress import Bars
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, list_objects, put
from infra import topology
from jobs.merge import MergeResult, read_merge_result
from jobs.steps import SUMMARY

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_PREFIX = step_name("", "").partition(" ")[0]
"""Common prefix of the names of all EMR steps that Shoal submits."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Pending and running steps of a preprocessing run."""

    run: str
    ids: dict[str, str]
    """Ids of the EMR steps by name, in the order in which the steps run."""


def steps_of(cluster: EmrCluster, run: str | None) -> Steps | None:
    """Return the active steps of a run, or None if no step is active. Without `run`, return the active steps of any
    run."""
    steps_by_run: dict[str, dict[str, str]] = {}
    for name, step in cluster.active_steps(_PREFIX).items():
        run_name, _, title = name.strip().partition(": ")
        if FINGERPRINT.fullmatch(run_name) and run in (None, run_name):
            steps_by_run.setdefault(run_name, {})[title] = step
    return next((Steps(run=name, ids=ids) for name, ids in steps_by_run.items()), None)


def attach(deployment: Deployment, run: str | None, bars: Bars) -> MergeResult:
    """Follow a preprocessing run until it ends, and return its result. If the run has already ended, return its stored
    result.

    Without `run`, use the active run, or the last run if none is active. Raises ShoalError if no such run is active or
    has a result. Raises the same errors as `preprocess_on_deployment` if the run fails.
    """
    s3 = deployment.session.client("s3")
    work = S3Path(deployment.output(topology.OUTPUT_DATA_BUCKET), topology.WORK_PREFIX)
    cluster = EmrCluster(deployment)
    steps = steps_of(cluster, run)
    if steps is None:
        return read_merge_result(str(_newest_summary(s3, work, deployment.name, run)))
    folder = S3Path(work.bucket, f"{work.key}{steps.run}/")
    summary, followed = (S3Path(folder.bucket, folder.key + name) for name in (SUMMARY, FOLLOWED))
    put(s3, followed, b"")
    cluster.follow(steps.ids, S3Path(folder.bucket, folder.key + FAILURE), bars)
    result = read_merge_result(str(summary))
    record_result(s3, steps.run, result)
    objects.remove(s3, folder, keep=(summary, followed))
    return result


class StartedPreprocessing:
    """Preprocessing run that a different command started on a deployment's cluster. Without `run`, it is the active
    run."""

    results, continued = "", "the command that started it"

    def __init__(self, deployment: Deployment, run: str | None) -> None:
        self.deployment, self.name = deployment, run or ""

    def follow(self, output: Path, bars: Bars) -> MergeResult:  # noqa: ARG002
        """Run `attach`. `output` is not used, because the dataset is in the data bucket."""
        return attach(self.deployment, self.name or None, bars)

    def stop(self, bars: Bars) -> tuple[str, str]:  # noqa: ARG002
        """Cancel the active steps of the run. Return `stopped` and an empty reason.

        Raises ShoalError if no step is active, or if some jobs of the run might still be running.
        """
        cluster = EmrCluster(self.deployment)
        steps = steps_of(cluster, self.name or None)
        if steps is None:
            raise _nothing_runs(self.deployment.name, self.name or None)
        self.name = steps.run
        tokens = cluster.tokens(steps.ids.values(), steps.run)
        if not tokens:
            raise ShoalError(
                f"an earlier version of Shoal submitted the steps of run {steps.run}; cancel them in EMR's console"
            )
        for token in tokens:
            cluster.cancel(steps.ids.values(), Cancellation(run=steps.run, token=token))
        return "stopped", ""


def _newest_summary(s3: "S3Client", work: S3Path, deployment: str, run: str | None) -> S3Path:
    """Return the address of the result of a finished run. Without `run`, use the last finished run."""
    summaries = [
        each
        for each in list_objects(s3, work)
        if (parts := each["Key"].removeprefix(work.key).split("/"))[1:] == [SUMMARY]
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
