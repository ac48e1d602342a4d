"""Preprocessing on a deployment's EMR cluster: uploads the reviews, submits the jobs as steps, returns their result.

Do not write a second pipeline for the cluster: the plan is that of `jobs.preparation`, and here its steps only become
steps of EMR. The work is named by its input and settings, so that the same command finds what an earlier one began: it
follows steps that still run, and leaves out those that are finished.
"""

import secrets
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bootstrap.agent.documents import Cancellation, step_name
from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned
from bootstrap.interrupt import Detached, mark_handled, name_of
from bootstrap.preprocessing.cluster import EmrCluster
from bootstrap.preprocessing.step_arguments import (
    cancellable,
    command_arguments,
    spark_arguments,
    streaming_arguments,
)
from bootstrap.preprocessing.work import ClusterWork, made_before, remember
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError
from corpus.dataset_settings import Settings
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.sources import Inputs
from infra import topology
from jobs.merge import MergeResult, read_merge_result
from jobs.preparation import PreparedWork, prepare_work
from jobs.steps import CommandStep, JobStep

if TYPE_CHECKING:
    from mypy_boto3_emr.type_defs import StepConfigTypeDef
    from mypy_boto3_s3.client import S3Client

RUNNERS = {"streaming": streaming_arguments, "spark": spark_arguments}
"""The runners of jobs on a cluster; the first one is the default."""

# A task should take longer than its start.
_TASK_BYTES = 32 << 20
# With two tasks a vCPU the last ones end at about the same time, although nodes are not equally fast.
_TASKS_PER_VCPU = 2
# Writing the task files and submitting the steps takes seconds.
_CLAIM_SECONDS = 120.0
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    runner: str = "streaming"
    detach: bool = False
    """Whether the command ends as soon as the cluster has its steps."""
    force: bool = False
    """Whether the jobs run although the dataset of the same work is there."""


def preprocess_on_deployment(
    deployment: Deployment,
    inputs: Inputs,
    *,
    settings: Settings,
    max_malformed: float,
    bars: Bars,
    say: Callable[[str], None] = lambda _: None,
    launch: LaunchOptions = LaunchOptions(),
) -> MergeResult:
    """Turn raw reviews into a dataset in the deployment's data bucket, in a folder named by its digest.

    Files of this machine are uploaded to the raw bucket first; s3:// addresses must be in the deployment's own buckets,
    or within its topology's inputs. If the dataset of the same work is there, it is returned as it is. If another call
    has submitted the same work, and its steps still run, this call follows them. Ctrl-C cancels the steps that this
    call submitted and removes their files; steps of another call continue. With `launch.detach`, and when the terminal
    is closed, all of them continue, and Detached is raised with the name of the work. `say` takes a sentence for the
    user. Raises DataError for input that cannot be used, and ShoalError when the cluster cannot do the work; steps that
    are finished are then kept for the next call.
    """
    cluster = EmrCluster(deployment)
    for address in filter(is_s3, inputs.addresses):
        deployment.readable(address, topology.OUTPUT_RAW_BUCKET, topology.OUTPUT_DATA_BUCKET)
    resources = cluster.workers()
    prepared = prepare_work(
        inputs,
        settings,
        max_malformed=max_malformed,
        transfer=lambda sources: objects.upload_reviews(
            deployment.session.client("s3"),
            sources,
            S3Path(deployment.output(topology.OUTPUT_RAW_BUCKET), objects.RAW_PREFIX),
            bars,
        ),
    )
    run, s3 = prepared.name, deployment.session.client("s3")
    datasets = S3Path(deployment.output(topology.OUTPUT_DATA_BUCKET), topology.DATASETS_PREFIX)
    if not launch.force and (before := _found(s3, datasets, prepared)):
        say("nothing was run: the dataset of this input and these settings is there; to make it again, add --force")
        return before
    folder = S3Path(datasets.bucket, f"{topology.WORK_PREFIX}{run}/")
    prepared, beside = prepared.with_stopwords_at(str(folder))
    plan = prepared.plan(
        work=str(folder).rstrip("/"),
        output=str(datasets).rstrip("/"),
        tasks=min(_TASKS_PER_VCPU * resources.vcpus, max(1, prepared.plain_bytes // _TASK_BYTES)),
    )
    cancellation = Cancellation(run=run, token=secrets.token_hex(4))
    work = ClusterWork(s3=s3, run=run, plan=plan, beside=beside)

    def configure(step: JobStep | CommandStep) -> "StepConfigTypeDef":
        if isinstance(step, JobStep):
            reducers = min(resources.vcpus, 1 << plan.part_bits)
            arguments = RUNNERS[launch.runner](step, reducers=reducers, run=run, resources=resources)
        else:
            arguments = command_arguments(step, str(work.failure))
        return {
            "Name": step_name(run, step.name),
            "ActionOnFailure": "CANCEL_AND_WAIT",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": cancellable(arguments, folder.bucket, cancellation)},
        }

    ids, own = _submit_or_join(cluster, work, configure, say)
    try:
        with cluster.cancelling(ids.values(), cancellation) if own else nullcontext():
            _wait_for_steps(cluster, work, ids, bars, detach=launch.detach)
        made = read_merge_result(plan.summary)
        remember(s3, run, made)
    except KeyboardInterrupt as interrupt:
        if own and not isinstance(interrupt, Abandoned):
            _remove_work_files(work.remove, say)
            say(
                f"the steps of run {run} are cancelled, and what they made is removed; the cluster costs money until "
                f"it was idle for a while: shoal status {deployment.name} says how much, shoal destroy "
                f"{deployment.name} ends it"
            )
        else:
            origin = "" if own else ", which another command began,"
            say(
                f"run {run}{origin} continues; the same command follows it again; to cancel its steps, type: "
                f"shoal stop {deployment.name} {run}"
            )
        raise
    except (DataError, ShoalError) as error:
        if not own:
            raise
        left = work.unfinished()
        lost = isinstance(error, DataError) and left == plan.steps()[-1:]  # the finished steps cannot lead to a dataset
        if lost or left == plan.steps():
            _remove_work_files(work.remove, say)
            raise
        raise type(error)(
            f"{error}; the finished steps are kept for a day, and the same command continues after them"
        ) from error
    _remove_work_files(work.finish, say)
    return made


def _found(s3: "S3Client", datasets: S3Path, work: PreparedWork) -> MergeResult | None:
    """The dataset of the same work, if it is there, and within the limits, which are no part of a work's name: else the
    jobs say what exceeds them."""
    if (made := made_before(s3, work.name, datasets)) is None:
        return None
    if made.counts["malformed"] / max(1, made.counts["lines"]) > work.max_malformed:
        return None
    remember(s3, work.name, made)  # the newest dataset is the one that is trained on
    return made


def _remove_work_files(remove: Callable[[], None], say: Callable[[str], None]) -> None:
    """Remove the files that steps pass on; if that fails, the work has not failed."""
    try:
        remove()
    except ShoalError as error:
        say(f"the files between the steps were not removed; the bucket deletes them after two days: {error}")


def _submit_or_join(
    cluster: EmrCluster,
    work: ClusterWork,
    configure: Callable[[JobStep | CommandStep], "StepConfigTypeDef"],
    say: Callable[[str], None],
) -> tuple[dict[str, str], bool]:
    """Submit the work's steps, or find those that another command submitted and that still run.

    Returns the steps' ids by their names, and whether this command submitted them.
    """
    since = None
    # Ask for active steps before finished ones: a step that ends in between then counts as finished.
    while not (ids := cluster.active_steps(step_name(work.run, ""))):
        if work.claim():
            try:
                if ids := cluster.active_steps(step_name(work.run, "")):
                    break
                if steps := work.unfinished():
                    work.prepare(steps)
                    submitted = cluster.submit([configure(step) for step in steps])
                    ids = {step.name: step_id for step, step_id in zip(steps, submitted, strict=True)}
                return ids, True
            except (KeyboardInterrupt, ShoalError):
                _remove_work_files(work.remove, say)
                raise
            finally:
                work.release()
        if since is None:
            say(f"another command is about to begin run {work.run}, the same work; waiting for it")
            since = time.monotonic()
        elif time.monotonic() - since > _CLAIM_SECONDS:
            work.release()  # the command that claimed it was killed before it submitted anything
        time.sleep(_PAUSE_SECONDS)
    work.follow()
    left = {step.name for step in work.unfinished()}
    finished = ", ".join(step.name for step in work.plan.steps() if step.name not in left) or "nothing"
    say(f"following run {work.run}, the same work, which another command began; finished so far: {finished}")
    return ids, False


def _wait_for_steps(
    cluster: EmrCluster, work: ClusterWork, ids: Mapping[str, str], bars: Bars, *, detach: bool
) -> None:
    """Return when all steps have completed. Raises Detached where they are left to themselves."""
    if detach and ids:
        raise Detached(work.run)
    left = [step.name for step in work.unfinished()]
    if failed := [name for name in left if name not in ids]:
        raise ShoalError(f"the step '{failed[0]}' of an earlier command has just failed; type the command again")
    try:
        cluster.follow({name: ids[name] for name in left}, work.failure, bars)
    except KeyboardInterrupt as interrupt:
        if name_of(interrupt) != signal.SIGHUP.name:
            raise
        mark_handled(interrupt)
        raise Detached(work.run) from None
