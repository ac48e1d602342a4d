"""Place where SageMaker training jobs execute runs. SageMaker starts the instances and limits their hours.

A job reads its dataset and code from input channels. SageMaker copies changes of the job's output folder to the run's
folder in the data bucket. So the run's folder contains the same files as after a run on nodes.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from common import names
from common.errors import ShoalError
from common.names import SETS
from common.options import flag
from common.progress import reporter
from corpus.reading import s3
from infra import catalog
from infra.gpu_nodes import PlannedNode
from shoal.aws import checked, fetched, objects
from shoal.aws.deployment import Deployment
from shoal.backends.bucket_place import PAUSE_SECONDS, BucketPlace, TrainingHandle, upload_files, with_uploaded_files
from shoal.backends.followed import RESUME_HINT, RemoteRun
from shoal.backends.launch import needs_prices, options_of, requested_runs
from shoal.backends.managed_job import FILES, Job, JobSettings, job_name, job_request, jobs, settings, work_of
from shoal.backends.place import RunResult
from shoal.interrupt import Detached
from shoal.runs.outlook import Outlook
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import DataSource, Prepared
from shoal.runs.state import Reports, RunOverview
from shoal.runs.store import Copied
from trainer.config import TrainConfig
from trainer.managed import DATA

_LOOK_SECONDS = 2.0
_NOT_GIVEN = (*FILES, "resume", "force")
"""Options that are not passed as hyperparameters: files are input channels, and the container always resumes."""
_QUESTIONS = ".questions"


class ManagedPlace(BucketPlace):
    """Place of a deployment with managed training."""

    pause = 1.0
    busy_message = "SageMaker trains {run}; add --managed"

    def __init__(
        self, deployment: Deployment, launch_options: LaunchOptions = DEFAULT, *, others: Sequence[BucketPlace] = ()
    ) -> None:
        """Raises ShoalError for launch options that only nodes support."""
        super().__init__(deployment, launch_options, others=others)
        if launch_options.keep or launch_options.min_nodes > 1:
            name = flag("keep" if launch_options.keep else "min_nodes")
            raise ShoalError(
                f"{name} applies only to nodes, but SageMaker trains for '{deployment.name}'; remove {name}"
            )

    @classmethod
    def serves(cls, deployment: Deployment) -> bool:
        return names.OUTPUT_MANAGED in deployment.outputs

    @cached_property
    def settings(self) -> JobSettings:
        return settings(self.deployment)

    def current_trainings(self) -> list[TrainingHandle]:
        return [_JobTraining(each) for each in jobs(self.deployment, active=True)]

    def newest_ended(self, run: str | None) -> TrainingHandle | None:
        return next((_JobTraining(each) for each in jobs(self.deployment, run) if each.has_ended), None)

    def prepare(self, source: DataSource, config: TrainConfig) -> "ManagedRun":
        """Prepare a run. A dataset of this machine is uploaded."""
        self._require_readable(config)
        prepared = source.prepare(self, config)
        if prepared.readers:
            raise ShoalError("SageMaker jobs do not support streams; pass a dataset with --data, or texts with --input")
        return ManagedRun(self, prepared, config, self._run_name(config))

    def nodes(self, *, readers: bool = False) -> list[PlannedNode]:  # noqa: ARG002
        gpu = catalog.find(self.settings.ec2_type).gpu
        return [
            PlannedNode(self.settings.ec2_type, gpu.count if gpu else 1, efa=False) for _ in range(self.settings.count)
        ]

    def hourly(self, nodes: object) -> float | None:  # noqa: ARG002
        """Return the cost of all instances in dollars per hour, at SageMaker's on-demand price; None if the price is
        unknown.
        """
        return self.settings.hourly(str(self.deployment.session.region_name))

    def longest_seconds(self) -> int:
        """Return the time limit of a job in seconds: the topology's `max_hours`, or less if the cost limit is lower.

        Raises ShoalError if the cost limit pays for less than a minute, or if a cost limit is set and prices are
        unknown.
        """
        longest, most = self.settings.max_hours * 3600, self.launch_options.max_dollars
        if most is None:
            return longest
        hourly = self.settings.hourly(str(self.deployment.session.region_name))
        if hourly is None:
            raise ShoalError(needs_prices(str(self.deployment.session.region_name)))
        if (paid := int(most / hourly * 3600)) < 60:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but a job costs ${hourly:.2f} per hour; set a higher --max-dollars"
            )
        return min(longest, paid)


class ManagedRun(RemoteRun):
    """Run in a SageMaker training job."""

    deployment: Deployment

    def __init__(
        self, place: ManagedPlace, prepared: Prepared, config: TrainConfig, run: str, job: Job | None = None
    ) -> None:
        """`job` is a running job to follow; None starts a new job."""
        self.config, self.prepared = config, prepared
        self._place, self.launch_options, self.deployment = place, place.launch_options, place.deployment
        self.store = requested_runs(self.deployment).store
        self._run, self._job, self._found = run, job, job is not None
        self._s3 = self.deployment.session.client("s3")
        self._looked = 0.0

    @property
    def job(self) -> Job:
        assert self._job is not None
        return self._job

    @contextmanager
    def resources(self) -> Iterator[None]:
        """For a block, start a job, or find the running job of an equal command. After an error, stop the job.

        If there is no error, SageMaker itself ends the job.
        """
        with self._ended_after_errors():
            self._job = self._job or self._same_work()
            if self._job is None:
                self._begin()
            yield

    def give_up(self) -> None:
        if self._job is not None and not self._job.has_ended:
            self._job.stop()

    @property
    def name(self) -> str:
        return self._run

    @property
    def is_followed(self) -> bool:
        return self._found or not self.config.resume

    def _same_work(self) -> Job | None:
        """Return the running job that an equal command started, or None.

        Raises ShoalError if a job for different work is running, because a second job would cost money.
        """
        self._config = with_uploaded_files(self.config, self._sets)
        hyper, channels = self._hyper(), self._channels()
        for job in jobs(self.deployment, active=True):
            if job.work == work_of(self._run, hyper, channels) and job.status == "InProgress":
                reporter().note(f"following run {job.run}, which the same command started")
                self._run, self._found = job.run, True
                return job
            raise ShoalError(
                f"SageMaker already trains {job.run} for '{self.deployment.name}'; to stop it: shoal stop "
                f"{self.deployment.name} {job.run}"
            )
        return None

    def _begin(self) -> None:
        """Upload the files of this machine, and start the job. Raises ShoalError if SageMaker refuses the job."""
        if self.config.resume:
            # otherwise, SageMaker would copy every checkpoint to the container
            fetched.remove_checkpoints(self._s3, self._folder)
        else:
            upload_files(self._s3, self.config, self._sets)
        place = self._place
        launches = sum(1 for _ in jobs(self.deployment, self._run))
        name = job_name(self._run, launches + 1)
        request = job_request(
            self.deployment,
            place.settings,
            name=name,
            folder=self._folder,
            options=self._hyper(),
            channels=self._channels(),
            longest=place.longest_seconds(),
        )
        try:
            self.deployment.session.client("sagemaker").create_training_job(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ResourceInUse", "ResourceLimitExceeded", "ValidationException"):
                raise
            raise ShoalError(f"SageMaker refuses the job: {error.response['Error']['Message']}") from error
        self._job = Job(
            self.deployment, {**request, "TrainingJobStatus": "InProgress"}
        )  # so that `give_up` stops the job after any error
        job = self._job = self._job.refreshed()
        for other in jobs(self.deployment, active=True):  # of simultaneous commands, the later one stops its job
            if other.name != name and (other.created, other.name) < (job.created, name):
                job.stop()
                raise ShoalError(f"another command started {other.run} at the same time; repeat the command")

    @property
    def _sets(self) -> s3.S3Path:
        return s3.S3Path(self._folder.bucket, f"{self._folder.key}{SETS}")

    @property
    def _folder(self) -> s3.S3Path:
        bucket = checked.bucket(self.deployment.output(names.OUTPUT_DATA_BUCKET))
        return s3.S3Path(bucket, f"{names.RUNS}{checked.run(self._run)}/")

    def _hyper(self) -> dict[str, str]:
        given = {name: words for name, words in options_of(self._config).items() if name not in _NOT_GIVEN}
        return {name: json.dumps(list(words)) for name, words in given.items()}

    def _channels(self) -> dict[str, str]:
        """Return the addresses of the input channels, by name.

        The channels are the dataset, the files of options and, for AWS's own image, Shoal's code.
        """
        given, shared = self._config.values(), self._place.settings
        channels: dict[str, str] = {DATA: str(self.prepared.request()["dataset"])}
        for name in FILES:
            value = given.get(name)
            addresses = list(value) if isinstance(value, tuple) else [value] if value else []
            if len(addresses) > 1:
                raise ShoalError(f"{flag(name)} accepts only one file for SageMaker; pass one file")
            channels |= {name: self._prefix(addresses[0])} if addresses else {}
        channels |= {name: address for name in ("code", "wheels", "script") if (address := getattr(shared, name))}
        return channels

    def _prefix(self, address: str) -> str:
        """Return a channel's S3 prefix for a file, a folder, or the two files of an analogy set in MSR's format."""
        if address.endswith(_QUESTIONS):
            return address.removesuffix(_QUESTIONS[1:])
        place = s3.place_of(address)
        is_file = place.key in objects.sizes(self._s3, place) or Path(place.key).suffix
        return address if is_file else f"{address.rstrip('/')}/"

    @contextmanager
    def started(self) -> Iterator[None]:
        """Run a block. In the block, a closed terminal or expired credentials detach the command from the job."""
        reporter().stage("SageMaker starts the job")
        if self.launch_options.detach:
            raise Detached
        with self._detaching():
            yield

    def wait_for_data(self) -> None:
        """Wait until the job is training, or has ended."""
        shown = ""
        while not self.job.has_ended and self.job.phase not in ("Training", "Uploading"):
            if self.job.phase != shown:
                shown = self.job.phase
                reporter().stage(f"SageMaker: {shown}")
            reporter().tick()
            time.sleep(_LOOK_SECONDS)
            self._job = self.job.refreshed()

    def is_over(self) -> bool:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._job, self._looked = self.job.refreshed(), time.monotonic()
        return self.job.has_ended

    def stop(self) -> None:
        """Request a stop from SageMaker. The ranks then have two minutes to write a checkpoint."""
        self.job.stop()

    def spent(self) -> float | None:
        """Return the cost so far in dollars, computed from the time that SageMaker bills; None if unknown."""
        return self._job.dollars() if self._job else None

    def collect(self, *, stopped: bool) -> RunResult:
        fetched.remove_checkpoints(self._s3, self._folder)
        ended = super().collect(stopped=stopped)
        return replace(ended, details={**ended.details, "job": self.job.name})

    def _machines(self) -> Mapping[str, list[dict[str, Any]]]:
        return {"nodes": self.job.instances, "readers": []}

    def why_stopped(self, summary: Mapping[str, Any]) -> str:
        limits = {
            "MaxRuntimeExceeded": f"it reached its limit of {self.job.limit_hours:.3g} hours",
            "MaxWaitTimeExceeded": "SageMaker had no capacity for the job in time",
        }
        return f"{limits.get(self.job.phase) or super().why_stopped(summary)}{RESUME_HINT}"

    def _failure(self, copied: Copied, *, stopped: bool) -> Exception | None:
        summary = copied.summary
        if self.job.status == "Failed":
            reason = self.job.why.removeprefix("AlgorithmError: ").partition(", exit code")[0]
            return ShoalError(f"{reason or 'SageMaker gave no reason'}; the job is {self.job.name}")
        if self.job.phase == "MaxWaitTimeExceeded" and summary is None:
            return ShoalError(
                "SageMaker had no capacity for the job in time; repeat the command, or use `market: on-demand`"
            )
        if summary is None and not stopped:
            return ShoalError(f"run {self._run} was stopped before its first checkpoint; start it again")
        return None


class _JobTraining(TrainingHandle):
    """Run in a SageMaker job that an earlier command started."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.deployment, job.run)
        self._job, self.is_stopping = job, job.status == "Stopping"

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        return self._job.options

    @property
    def has_ended(self) -> bool:
        return self._job.has_ended

    def status(self, reports: Reports) -> RunOverview:  # noqa: ARG002
        spent = Outlook(dollars=self._job.dollars(), dollars_at_least=self._job.dollars())
        return RunOverview(run=self.name, state=self._job.phase, error="", attempts=[], outlook=spent)

    def stop(self) -> tuple[str, str]:
        reporter().stage("stop")
        job = self._job
        job.stop()
        while not (job := job.refreshed()).has_ended:
            reporter().tick()
            time.sleep(PAUSE_SECONDS)
        return job.outcome, job.why

    def _run(self, config: TrainConfig) -> tuple[ManagedPlace, ManagedRun]:
        place = ManagedPlace(self.deployment)
        return place, ManagedRun(place, PreparedDataset(self._job.dataset), config, self.name, self._job)
