"""A preprocessing on a deployment that another command has begun: followed to its dataset from any machine, or stopped.

All of it is in the names and the arguments of the cluster's steps, and in the folder of the work.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bootstrap.agent.documents import FINGERPRINT, Cancellation, step_name
from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.preprocessing.cluster import EmrCluster
from bootstrap.preprocessing.work import FAILURE, FOLLOWED, remember
from bootstrap.progress import Bars
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, list_objects, put
from infra import topology
from jobs.merge import MergeResult, read_merge_result
from jobs.steps import SUMMARY

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_PREFIX = step_name("", "").partition(" ")[0]
"""Of the names of all steps of Shoal."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of a run of the jobs that wait or run."""

    run: str
    ids: dict[str, str]
    """By their names, in the order in which they run."""


def steps_of(cluster: EmrCluster, run: str | None) -> Steps | None:
    """The steps of a run, by default of one that waits or runs; None where there are none."""
    found: dict[str, dict[str, str]] = {}
    for name, step in cluster.active_steps(_PREFIX).items():
        of_run, _, title = name.strip().partition(": ")
        if FINGERPRINT.fullmatch(of_run) and run in (None, of_run):
            found.setdefault(of_run, {})[title] = step
    return next((Steps(run=name, ids=ids) for name, ids in found.items()), None)


def attach(deployment: Deployment, run: str | None, bars: Bars) -> MergeResult:
    """Follow a preprocessing to its end, or find what one has left that has ended. Raises ShoalError where there is
    none, and what `preprocess_on_deployment` raises."""
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
    made = read_merge_result(str(summary))
    remember(s3, steps.run, made)
    objects.remove(s3, folder, but=(summary, followed))
    return made


class BegunPreprocessing:
    """A preprocessing on a deployment's cluster that some command has begun, by default the one that waits or runs."""

    results, continued = "", "the command that began it"

    def __init__(self, deployment: Deployment, run: str | None) -> None:
        self.deployment, self.name = deployment, run or ""

    def follow(self, output: Path, bars: Bars) -> MergeResult:  # noqa: ARG002
        """As `attach`, which leaves nothing in an output folder."""
        return attach(self.deployment, self.name or None, bars)

    def stop(self, bars: Bars) -> tuple[str, str]:  # noqa: ARG002
        """Cancel its steps that wait or run; returns how it ended, and no reason. Raises ShoalError where there are
        none, or where jobs of theirs may go on."""
        cluster = EmrCluster(self.deployment)
        steps = steps_of(cluster, self.name or None)
        if steps is None:
            raise _nothing(self.deployment.name, self.name or None)
        self.name = steps.run
        tokens = cluster.tokens(steps.ids.values(), steps.run)
        if not tokens:
            raise ShoalError(
                f"the steps of run {steps.run} are of an earlier version of Shoal; cancel them in EMR's console"
            )
        for token in tokens:
            cluster.cancel(steps.ids.values(), Cancellation(run=steps.run, token=token))
        return "stopped", ""


def _newest_summary(s3: "S3Client", work: S3Path, deployment: str, run: str | None) -> S3Path:
    """The result of a run that has ended, by default of the last one."""
    found = [
        each
        for each in list_objects(s3, work)
        if (parts := each["Key"].removeprefix(work.key).split("/"))[1:] == [SUMMARY]
        and FINGERPRINT.fullmatch(parts[0])
        and run in (None, parts[0])
    ]
    if not found:
        raise _nothing(deployment, run)
    return S3Path(work.bucket, max(found, key=lambda each: each["LastModified"])["Key"])


def _nothing(deployment: str, run: str | None) -> ShoalError:
    if run is None:
        return ShoalError(
            f"nothing runs on '{deployment}': no training is wanted of its nodes, and no preprocessing runs on its "
            "cluster or has left a result there"
        )
    return ShoalError(
        f"the preprocessing {run} does not run on the cluster of '{deployment}', and has left no result there"
    )
