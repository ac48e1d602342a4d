"""Backend of SageMaker training jobs. SageMaker starts the instances and limits their hours.

A job reads its dataset and code from input channels. SageMaker copies changes of the job's output folder to the run's
folder in the data bucket. So the run's folder contains the same files as after a run on nodes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from botocore.exceptions import ClientError

from bootstrap.node.store import Bucket
from common import names
from common.errors import ShoalError
from common.names import RUNS, SETS
from common.options import flag
from common.progress import reporter
from corpus.reading import s3
from infra import catalog
from infra.gpu_nodes import PlannedNode
from shoal.aws import checked, fetched
from shoal.aws.deployment import Deployment
from shoal.aws.retry import retrying
from shoal.backends.agents import RESUME_HINT
from shoal.backends.deployment_data import DeploymentData, upload_files
from shoal.backends.deployment_runs import limited, record_copy, stop_reason, with_name
from shoal.backends.job_inputs import job_inputs, longest_seconds
from shoal.backends.training_jobs import Job, JobSettings, instances_of, job_name, job_request, jobs, settings, work_of
from shoal.runs.backend import Backend, Hardware
from shoal.runs.files import Copied, RunFiles
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import DataSource, Staging
from shoal.runs.state import RunState, StopReason
from trainer.config import TrainConfig
from trainer.output.run_files import RECORD

_LOOK_SECONDS = 2.0


class SageMakerBackend(Backend):
    """Backend of a deployment with managed training."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.name, self.data = deployment, deployment.name, DeploymentData(deployment)
        self.options = {"deployment": (deployment.name,)}
        self._s3 = deployment.session.client("s3")
        self._jobs: dict[str, Job] = {}
        """The newest job of each run that was read, by the run's name."""
        self._looked_at = time.monotonic()
        self._follows = True
        """True if an earlier command has started the run."""

    @cached_property
    def settings(self) -> JobSettings:
        return settings(self.deployment)

    def current_runs(self) -> list[str]:
        """Return the names of the runs in active jobs, newest first."""
        return [self._remember(job) for job in jobs(self.deployment, active=True)]

    def newest_ended(self, run: str | None) -> str | None:
        """Return the name of the newest run in an ended job, or None. `run` limits the search to the run with this
        name.
        """
        ended = (each for each in jobs(self.deployment, run) if each.has_ended)
        return next(map(self._remember, ended), None)

    def _remember(self, job: Job) -> str:
        """Store the description of a job, and return the name of its run."""
        self._jobs[job.run], self._looked_at = job, time.monotonic()
        return job.run

    def _job(self, name: str) -> Job:
        """Return the newest job of a run. Raises ShoalError if the run has no job."""
        if name not in self._jobs and next(map(self._remember, jobs(self.deployment, name)), None) is None:
            raise ShoalError(f"SageMaker has no job for the run {name} of '{self.name}'")
        return self._jobs[name]

    def prepare(self, source: DataSource, config: TrainConfig, limits: Limits = NO_LIMITS) -> Run:
        """Prepare a run. Raises ShoalError also for streams, and for limits that only nodes support."""
        if limits.keep or limits.min_nodes > 1:
            name = flag("keep" if limits.keep else "min_nodes")
            raise ShoalError(f"{name} applies only to nodes, but SageMaker trains for '{self.name}'; remove {name}")
        run = super().prepare(source, config, limited(limits, self.deployment))
        if run.data.readers:
            raise ShoalError("SageMaker jobs do not support streams; pass a dataset with --data, or texts with --input")
        return with_name(run, self.deployment, on_nodes=False)

    def start(self, run: Run) -> Run:
        """Start a job, or find the active job of an equal command. A new job gets the files of this machine.

        Raises ShoalError if SageMaker refuses the job, or if a job for different work is active, because a second job
        would cost money.
        """
        folder = self._folder(run.name)
        hyper, channels = job_inputs(self._s3, run, self.settings, folder)
        for job in jobs(self.deployment, active=True):
            if job.work == work_of(run.name, hyper, channels) and job.status == "InProgress":
                reporter().note(f"following run {job.run}, which the same command started")
                self._remember(job)
                return replace(run, name=job.run)
            raise ShoalError(
                f"SageMaker already trains {job.run} for '{self.name}'; to stop it: shoal stop {self.name} {job.run}"
            )
        self._follows = not run.resumes
        if run.resumes:
            # otherwise, SageMaker would copy every checkpoint to the container
            fetched.remove_checkpoints(self._s3, folder)
        else:
            upload_files(self._s3, run.options, s3.S3Path(folder.bucket, f"{folder.key}{SETS}"))
        self._create(
            job_request(
                self.deployment,
                self.settings,
                name=job_name(run.name, 1 + sum(1 for _ in jobs(self.deployment, run.name))),
                folder=folder,
                options=hyper,
                channels=channels,
                longest=longest_seconds(self.deployment, run, self.settings),
            )
        )
        return run

    def _create(self, request: dict[str, object]) -> None:
        """Create a job. Raises ShoalError if SageMaker refuses it, or if another command was faster."""
        try:
            self.deployment.session.client("sagemaker").create_training_job(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ResourceInUse", "ResourceLimitExceeded", "ValidationException"):
                raise
            raise ShoalError(f"SageMaker refuses the job: {error.response['Error']['Message']}") from error
        # remembered at once, so that `stop` ends the job after any error
        self._remember(job := Job(self.deployment, {**request, "TrainingJobStatus": "InProgress"}))
        self._remember(job := job.refreshed())
        for other in jobs(self.deployment, active=True):  # of simultaneous commands, the later one stops its job
            if other.name != job.name and (other.created, other.name) < (job.created, job.name):
                job.stop()
                raise ShoalError(f"another command started {other.run} at the same time; repeat the command")

    def _folder(self, name: str) -> s3.S3Path:
        bucket = checked.bucket(self.deployment.output(names.OUTPUT_DATA_BUCKET))
        return s3.S3Path(bucket, f"{RUNS}{checked.run(name)}/")

    def state(self, name: str) -> RunState:
        job = self._job(name)
        if not job.has_ended and time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._remember(job := job.refreshed())
        waits = not job.has_ended and job.phase not in ("Training", "Uploading")
        why = job.why.removeprefix("AlgorithmError: ").partition(", exit code")[0] or "SageMaker gave no reason"
        return RunState(
            phase=job.phase,
            outcome=job.outcome if job.has_ended else "",
            error=f"{why}; the job is {job.name}" if job.status == "Failed" else "",
            find_stop_reason=partial(_stop_reason, job) if job.has_ended and job.outcome == "stopped" else None,
            is_stopping=job.status == "Stopping",
            staging=Staging(f"SageMaker: {job.phase}") if waits else None,
            is_independent=True,
            dollars=job.dollars(),
            machines={"nodes": instances_of(job) if job.has_ended else [], "readers": []},
            details={"job": job.name},
        )

    def stop(self, name: str, *, at_once: bool = False) -> None:
        """Request a stop from SageMaker. The ranks then have two minutes to write a checkpoint.

        An ended job costs nothing.
        """
        if at_once and not self._jobs:  # `start` failed before it created a job
            return
        job = self._job(name) if name in self._jobs or not at_once else next(iter(self._jobs.values()))
        if not job.has_ended:
            job.stop()

    def files(self, name: str) -> RunFiles:
        folder = self._folder(name)
        store = Bucket(folder.bucket, self._s3, call=retrying)
        known = None if self._follows else store.size(f"{folder.key}{RECORD}")
        return _JobFiles(
            store=store,
            folder=folder.key,
            known=known,
            on_copied=partial(record_copy, self.deployment, name),
            remove_checkpoints=partial(fetched.remove_checkpoints, self._s3, folder),
        )

    def requested_run(self, name: str, output: Path) -> Run:
        job = self._job(name)
        return Run(name=name, options=job.options, data=PreparedDataset(job.dataset), output=output, cache=output)

    def hardware(self, run: Run) -> Hardware:  # noqa: ARG002
        gpu, kind = catalog.find(self.settings.ec2_type).gpu, self.settings.ec2_type
        return Hardware(
            nodes=[PlannedNode(kind, gpu.count if gpu else 1, efa=False)] * self.settings.count,
            hourly=self.settings.hourly(str(self.deployment.session.region_name)),
        )


@dataclass(frozen=True, kw_only=True)
class _JobFiles(RunFiles):
    """Files of a job. SageMaker does not remove checkpoints that are no longer needed."""

    remove_checkpoints: Callable[[], None]

    def copy(self, output: Path) -> Copied:
        self.remove_checkpoints()
        return super().copy(output)


def has_managed_training(deployment: Deployment) -> bool:
    """Return whether a deployment can train in SageMaker jobs."""
    return names.OUTPUT_MANAGED in deployment.outputs


def _stop_reason(job: Job) -> StopReason:
    """Return why a job stopped: by a limit of SageMaker, the guard, or a user."""
    if job.phase == "MaxRuntimeExceeded":
        hours = job.description["StoppingCondition"]["MaxRuntimeInSeconds"] / 3600
        return StopReason(f"it reached its limit of {hours:.3g} hours", RESUME_HINT)
    if job.phase == "MaxWaitTimeExceeded":
        why = "SageMaker had no capacity for the job in time"
        alone = f"{why}; repeat the command, or use `market: on-demand`"
        return StopReason(why, RESUME_HINT, without_checkpoint=alone)
    return stop_reason(job.deployment, RESUME_HINT)
