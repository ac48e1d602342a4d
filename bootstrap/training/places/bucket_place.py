"""A place whose datasets and runs are in the data bucket of a deployment, and a training there that some command has
begun, as all other commands see it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootstrap.agent.node_documents import Attempt, NodeStatus
from bootstrap.aws import names, objects
from bootstrap.aws.account import credentials_warning
from bootstrap.aws.deployment import Deployment
from bootstrap.progress import Bars
from bootstrap.training.outlook import Outlook
from bootstrap.training.places.carrying_out import carry_out
from bootstrap.training.places.launch import LaunchOptions, requested_runs
from bootstrap.training.places.place import Place, Run
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, list_objects
from infra import topology
from trainer.command_line import from_option_values
from trainer.config import TrainConfig
from trainer.embeddings.vectors import vectors_file, vectors_size

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_ANSWERS = {".questions": ".answers"}
"""Of a set of analogies in MSR's format the other file."""

PAUSE_SECONDS = 1.0
"""Between two looks whether it has stopped."""
Reports = Mapping[str, NodeStatus | str]
"""What each node of a deployment reports, or why that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    run: str
    state: str
    """`starting` before its nodes have booted, `running`, or how it has ended; of a training job what SageMaker calls
    it."""
    error: str
    attempts: list[Attempt]
    """The attempts at its latest launch."""
    outlook: Outlook | None
    """None of a run that has ended."""


class BegunTraining(ABC):
    continued = "the command that began it, with --resume"
    """What continues it after a stop."""
    is_endless = False
    """Whether it learns from an unbounded stream."""
    is_stopping: bool
    """Whether it was asked to stop."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.deployment, self.name = deployment, name
        self.results = f"shoal fetch {deployment.name} --run {name} --output results"
        """The command that copies its results."""

    @property
    @abstractmethod
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """Those of its training, each with the words of its values. Raises ShoalError where they are not Shoal's."""

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Whether it has ended."""

    @abstractmethod
    def status(self, reports: Reports) -> WantedRun:
        """Its state, its attempts, and what is to be expected of it."""

    @abstractmethod
    def stop(self, bars: Bars) -> tuple[str, str]:
        """Stop it with a checkpoint; returns how it ended, and why it failed. Raises ShoalError where it does not
        stop."""

    def follow(self, output: Path, bars: Bars) -> dict[str, Any]:
        """Follow it to its results in `output`; returns what `train` does.

        An interrupt ends this command alone. Raises TrainingError where it would replace a finished model, and
        ShoalError where its options are not Shoal's.
        """
        config = from_option_values(
            self.options, endless=self.is_endless, data=Path("dataset"), output=output, cache=output
        )
        place, run = self._run(config, LaunchOptions(leave=True))
        place.finished_before(replace(config, resume=False, force=False))
        return carry_out(place, run, bars)

    @abstractmethod
    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[Place, Run]: ...


class InBucket(Place):
    """A deployment's place, by its data bucket."""

    goes_on: str
    """What a run does when the command's credentials end, and that they are renewed to follow it."""

    elsewhere: str
    """A sentence on a run that is at work at this place, where it is to be resumed at another one."""

    def __init__(self, deployment: Deployment, wishes: LaunchOptions, *, others: "Sequence[InBucket]" = ()) -> None:
        """`others`: the other places of the deployment."""
        self.deployment, self.name, self.wishes, self._others = deployment, deployment.name, wishes, others
        self.options = {"deployment": (self.name,)}
        self._bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
        self._s3 = deployment.session.client("s3")

    @classmethod
    def serves(cls, deployment: Deployment) -> bool:  # noqa: ARG003
        """Whether a deployment has such a place."""
        return True

    @abstractmethod
    def wanted(self) -> Sequence[BegunTraining]:
        """Its trainings that run, or whose results no command has copied. Raises ShoalError where they cannot be
        read."""

    def newest_ended(self, run: str | None) -> BegunTraining | None:  # noqa: ARG002
        """The newest training that has ended, of this name where one is given, and is not among those."""
        return None

    def dataset(self, address: str | None, bars: Bars) -> str:
        """The address of a dataset in S3; one here is uploaded."""
        if address is None:
            if (newest := self.newest_dataset()) is None:
                by = f"shoal preprocess --deployment {self.name} --input FILE..."
                how = "give the reviews: --input FILE..." if self.preprocesses else f"make one by: {by}"
                raise ShoalError(f"the deployment '{self.name}' has no dataset yet; {how}")
            return newest
        if not is_s3(address):
            return self._upload(Path(address), bars)
        place = self.deployment.require_readable(address, topology.OUTPUT_DATA_BUCKET)
        names.dataset(place.key)
        if place.key not in objects.sizes(self._s3, place):
            raise ShoalError(f"there is no dataset at {address}; check the address")
        return address

    def newest_dataset(self) -> str | None:
        """The address of the deployment's newest dataset, by the last change in its folder; None where it has none."""
        below = list(list_objects(self._s3, s3.S3Path(self._bucket, topology.DATASETS_PREFIX)))
        changed = {
            each["Key"].rpartition("/")[0]: each["LastModified"]
            for each in sorted(below, key=lambda each: each["LastModified"])
        }
        made = [each for each in below if names.is_dataset(each["Key"])]
        newest = max(made, key=lambda each: changed[each["Key"].rpartition("/")[0]], default=None)
        return str(s3.S3Path(self._bucket, newest["Key"])) if newest else None

    def _upload(self, path: Path, bars: Bars) -> str:
        with open_dataset(path) as opened:
            digest = opened.digest
        if path.name != DATASET_NAME:
            raise ShoalError(f"a dataset to upload must be named {DATASET_NAME}, but this is {path}; rename it")
        folder = s3.S3Path(self._bucket, f"{topology.DATASETS_PREFIX}{digest}/")
        return objects.upload(self._s3, [path], folder, bars)[0]

    def _require_readable(self, config: TrainConfig) -> None:
        """Raise ShoalError for a file of this configuration that is not there, or that its ranks may not read."""
        if config.embeddings is not None and not is_s3(config.embeddings):
            vectors_size(config.embeddings)  # vectors that are not there are told before anything costs money
        for address in filter(is_s3, (*config.similarity, *config.analogy, config.embeddings or "")):
            self.deployment.require_readable(
                address, topology.OUTPUT_DATA_BUCKET, under=(topology.RUNS_PREFIX, topology.DATASETS_PREFIX)
            )

    def _run_name(self, config: TrainConfig) -> str:
        """The name of a new run, or of that which goes on. Raises ShoalError where that is at work elsewhere."""
        runs = requested_runs(self.deployment)
        if not config.resume:
            return runs.new_name()
        run = runs.unfinished()
        for place in self._others:
            if any(each.name == run and not each.has_ended for each in place.wanted()):
                raise ShoalError(place.elsewhere.format(run=run, name=self.name))
        return run

    def credentials_warning(self, seconds: float) -> str | None:
        """The run needs none of them; only the command, to start and to follow it."""
        return credentials_warning(
            self.deployment.session, seconds, "the training", f"{self.goes_on}: shoal attach {self.name}"
        )


def brought(config: TrainConfig, folder: s3.S3Path) -> TrainConfig:
    """The configuration with the addresses of its files after `bring`."""
    vectors = _vectors(config)
    return replace(
        config,
        embeddings=vectors and _address(vectors, folder),
        similarity=tuple(_address(each, folder) for each in config.similarity),
        analogy=tuple(_address(each, folder) for each in config.analogy),
    )


def bring(client: "S3Client", config: TrainConfig, folder: s3.S3Path, bars: Bars) -> None:
    """Upload the configuration's files to the folder: word embeddings from which it starts, and sets of words."""
    vectors = _vectors(config)
    for address in (*config.similarity, *config.analogy, *([] if vectors is None else [vectors])):
        if is_s3(address):
            continue
        path = Path(address)
        beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
        objects.upload(client, [path, beside] if beside != path and beside.exists() else [path], folder, bars)


def _vectors(config: TrainConfig) -> str | None:
    found = config.embeddings
    return vectors_file(found) if found is not None and not is_s3(found) else found


def _address(address: str, folder: s3.S3Path) -> str:
    """Where ranks find a file: one of this machine in the folder."""
    return (
        address if is_s3(address) else str(s3.S3Path(folder.bucket, folder.key + objects.safe_name(Path(address).name)))
    )
