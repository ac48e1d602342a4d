"""Preprocessing on a deployment's EMR cluster: upload the reviews, submit the job as a step, and return the result.

Do not write a second pipeline for the cluster: the step runs `jobs.dataset` with Hadoop Streaming on the primary node,
as a person would. The name of a run is derived from its input and settings. When a command is repeated, it therefore
finds the earlier run, and follows its step or returns its dataset.
"""

import secrets
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from bootstrap.node.documents import Cancellation
from common import names
from common.errors import DataError, ShoalError
from common.names import step_name
from common.progress import reporter
from corpus.dataset_settings import Settings
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.sources import Inputs
from jobs.merge import MergeResult, read_merge_result
from jobs.plan import Plan
from jobs.preparation import PreparedWork, prepare_work
from shoal.aws import objects
from shoal.aws.deployment import Deployment
from shoal.aws.retry import Abandoned
from shoal.interrupt import Detached, name_of
from shoal.preprocessing.cancelling import cancelling
from shoal.preprocessing.cluster import EmrCluster
from shoal.preprocessing.step_arguments import step_arguments
from shoal.preprocessing.work import ClusterWork, find_result, record_result

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# A task should run for longer than it takes to start.
_TASK_BYTES = 32 << 20
# With two tasks per vCPU, the last tasks end at about the same time, even if some nodes are slower.
_TASKS_PER_VCPU = 2
# A command with a claim writes the task files and submits the steps, which takes seconds. An older claim is abandoned.
_CLAIM_SECONDS = 120.0
_PAUSE_SECONDS = 1.0


def preprocess_on_deployment(
    deployment: Deployment,
    inputs: Inputs,
    *,
    settings: Settings,
    max_malformed: float,
    detach: bool = False,
    force: bool = False,
) -> MergeResult:
    """Preprocess raw reviews into a dataset in the deployment's data bucket. The dataset's folder has the dataset's
    digest as its name.

    Local files are uploaded to the raw bucket first. s3:// addresses must be in the deployment's own buckets or within
    its topology's `inputs`. If a dataset of the same input and settings exists, it is returned unchanged,
    unless `force` is true. If a different call submitted the same run and its steps still run, this call follows them.

    Ctrl-C cancels the steps that this call submitted, and removes their files. Steps of a different call continue. With
    `detach`, or if the terminal is closed, all steps continue, and Detached is raised with the name of the run.

    Raises DataError if the input is invalid, and ShoalError if the cluster cannot complete the steps. Finished steps
    are kept for the next call.
    """
    cluster = EmrCluster(deployment)
    for address in filter(is_s3, inputs.addresses):
        deployment.require_readable(address, names.OUTPUT_RAW_BUCKET, names.OUTPUT_DATA_BUCKET)
    resources = cluster.workers()
    prepared = prepare_work(
        inputs,
        settings,
        max_malformed=max_malformed,
        transfer=lambda sources: objects.upload_reviews(
            deployment.session.client("s3"),
            sources,
            S3Path(deployment.output(names.OUTPUT_RAW_BUCKET), names.RAW),
        ),
    )
    run, s3 = prepared.name, deployment.session.client("s3")
    datasets = S3Path(deployment.output(names.OUTPUT_DATA_BUCKET), names.DATASETS)
    if not force and (existing := _existing_result(s3, datasets, prepared)):
        reporter().note(
            "nothing to do: the dataset of this input and these settings exists; to create it again, add --force"
        )
        return prepared.with_warnings(existing)
    work = ClusterWork(s3=s3, folder=S3Path(datasets.bucket, f"{names.WORK}{run}/"))
    cancellation = Cancellation(run=run, token=secrets.token_hex(4))

    def submit() -> tuple[str, Plan]:
        work.empty()
        plan = prepared.write_plan(
            work=str(work.folder).rstrip("/"),
            output=str(datasets).rstrip("/"),
            tasks=min(_TASKS_PER_VCPU * resources.vcpus, max(1, prepared.plain_bytes // _TASK_BYTES)),
        )
        arguments = step_arguments(plan, cancellation=cancellation, bucket=datasets.bucket, resources=resources)
        step_id = cluster.submit(
            {
                "Name": step_name(run, "preprocess"),
                "ActionOnFailure": "CONTINUE",
                "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments},
            }
        )
        return step_id, plan

    step_id, plan, own = _submit_or_join(cluster, work, submit, run)
    try:
        with cancelling(cluster, step_id, cancellation) if own else nullcontext():
            _wait_for_step(cluster, step_id, plan, run, detach=detach)
        result = read_merge_result(plan.summary)
        record_result(s3, run, result)
    except KeyboardInterrupt as interrupt:
        if own and not isinstance(interrupt, Abandoned):
            reporter().note(  # before the files are removed, because the user may interrupt again
                f"Shoal cancelled the step of run {run}; the cluster costs money until "
                f"it is terminated for being idle; `shoal status {deployment.name}` shows the cost, and `shoal "
                f"destroy {deployment.name}` deletes the deployment"
            )
            _remove_work_files(work.remove)
        else:
            origin = "" if own else ", which another command started,"
            reporter().note(
                f"run {run}{origin} continues; run the same command to follow it again; to cancel its step, run: "
                f"shoal stop {deployment.name} {run}"
            )
        raise
    except (DataError, ShoalError):
        if own:
            _remove_work_files(work.remove)
        raise
    _remove_work_files(partial(work.finish, plan))
    return prepared.with_warnings(result)


def _existing_result(s3: "S3Client", datasets: S3Path, work: PreparedWork) -> MergeResult | None:
    """Return the existing dataset of the same input and settings, if it does not exceed the limit on malformed lines.

    The name of a run does not depend on this limit. If the dataset exceeds the limit, return None, so that the jobs run
    and report the malformed lines.
    """
    if (result := find_result(s3, work.name, datasets)) is None:
        return None
    if result.counts["malformed"] / max(1, result.counts["lines"]) > work.max_malformed:
        return None
    record_result(s3, work.name, result)  # training uses the newest dataset
    return result


def _remove_work_files(remove: Callable[[], None]) -> None:
    """Remove the intermediate files of the steps. If the removal fails, report this in a note, and raise no
    error."""
    try:
        remove()
    except ShoalError as error:
        reporter().note(f"Shoal did not remove the intermediate files; the bucket deletes them after two days: {error}")


def _submit_or_join(
    cluster: EmrCluster,
    work: ClusterWork,
    submit: Callable[[], tuple[str, Plan]],
    run: str,
) -> tuple[str, Plan, bool]:
    """Submit the step of a run, or find its active step if a different command submitted it.

    Returns the id of the step, its plan, and whether this command submitted it.
    """
    since = None
    while not (ids := cluster.active_steps(step_name(run, ""))):
        if work.claim():
            try:
                if ids := cluster.active_steps(step_name(run, "")):
                    break
                return *submit(), True
            except (KeyboardInterrupt, ShoalError):
                _remove_work_files(work.remove)
                raise
            finally:
                work.release()
        if since is None:
            reporter().note(
                f"another command is about to start run {run} for the same input and settings; waiting for it"
            )
            since = time.monotonic()
        elif time.monotonic() - since > _CLAIM_SECONDS:
            work.release()  # the command with the claim must have been killed before it submitted the step
        time.sleep(_PAUSE_SECONDS)
    reporter().note(f"following run {run}, which another command started for the same input and settings")
    return next(iter(ids.values())), Plan.read(str(work.folder).rstrip("/")), False


def _wait_for_step(cluster: EmrCluster, step_id: str, plan: Plan, run: str, *, detach: bool) -> None:
    """Wait until the step has completed. Raises Detached if it is left running."""
    if detach:
        raise Detached(run)
    try:
        cluster.follow(step_id, plan)
    except KeyboardInterrupt as interrupt:
        if name_of(interrupt) != signal.SIGHUP.name:
            raise
        raise Detached(run) from None
