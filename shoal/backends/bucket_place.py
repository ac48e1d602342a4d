"""Base classes of places and their runs. The places keep datasets and runs in a deployment's data bucket.

A run might have been started by a different command, even on a different machine. So everything that Shoal knows about
a run is in the bucket.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import names
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, list_objects
from shoal.aws import checked, objects
from shoal.aws.deployment import Deployment
from shoal.backends.execution import execute
from shoal.backends.followed import RemoteRun
from shoal.backends.launch import requested_runs
from shoal.backends.place import Place
from shoal.runs.run import LaunchOptions
from shoal.runs.state import Reports, RunOverview
from trainer.command_line import from_option_values
from trainer.config import TrainConfig
from trainer.embeddings.vectors import vectors_file, vectors_size

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_ANSWERS = {".questions": ".answers"}
_WORD_SETS = ("similarity", "analogy")
"""Options with files for the evaluation of word embeddings."""
"""Suffixes of the two files of an analogy set in MSR's format: questions and answers."""

PAUSE_SECONDS = 1.0
"""Seconds between two checks of whether a run has stopped."""


class TrainingHandle(ABC):
    """Run that an earlier command started, and that other commands can follow or stop."""

    continued = "the command that started it, with --resume"
    """Way to continue the run after a stop, as part of a sentence."""
    is_endless = False
    """True if the run learns from an unbounded stream."""
    is_stopping: bool
    """True if a stop was requested."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.deployment, self.name = deployment, name
        self.results = f"shoal fetch {deployment.name} --run {name} --output results"
        """Command that copies the results."""
        self.collecting = f"to copy its results and terminate its nodes: shoal attach {deployment.name} {name}"
        """Advice after the end of a run without the command that started it."""

    @property
    @abstractmethod
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """Options of the run: the words of each option's value, by option name.

        Raises ShoalError if Shoal does not know an option.
        """

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """True if the run has ended."""

    @abstractmethod
    def status(self, reports: Reports) -> RunOverview:
        """Return the state, attempts and prediction of the run."""

    @abstractmethod
    def stop(self) -> tuple[str, str]:
        """Stop the run with a checkpoint. Return the outcome of the run and, if the run failed, the reason.

        Raises ShoalError if the run does not stop.
        """

    def follow(self, output: Path) -> dict[str, Any]:
        """Follow the run to its end, and copy the results to `output`. Returns the same dictionary as `train`.

        An interrupt ends only this command, not the run. Raises TrainingError if the results would replace a finished
        model, and ShoalError if Shoal does not know an option of the run.
        """
        config = from_option_values(
            self.options, endless=self.is_endless, data=Path("dataset"), output=output, cache=output
        )
        place, run = self._run(config)
        run.attached = True
        place.finished_before(replace(config, resume=False, force=False))
        return execute(place, run)

    @abstractmethod
    def _run(self, config: TrainConfig) -> tuple[Place, RemoteRun]: ...


class BucketPlace(Place):
    """Place at which a deployment trains, with the deployment's data bucket."""

    busy_message: str
    """Message for a user who resumes a run at a different place while the run is active at this place."""

    def __init__(
        self, deployment: Deployment, launch_options: LaunchOptions, *, others: "Sequence[BucketPlace]" = ()
    ) -> None:
        """`others` are the other places at which the deployment trains."""
        self.deployment, self.name = deployment, deployment.name
        self.launch_options, self._others = launch_options, others
        self.options = {"deployment": (self.name,)}
        self._bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
        self._s3 = deployment.session.client("s3")

    @classmethod
    def serves(cls, deployment: Deployment) -> bool:  # noqa: ARG003
        """Return whether a deployment can train at this kind of place."""
        return True

    @abstractmethod
    def current_trainings(self) -> Sequence[TrainingHandle]:
        """Return the active runs, and the ended runs that no command has fetched yet.

        Raises ShoalError if the documents about a run are unreadable.
        """

    def newest_ended(self, run: str | None) -> TrainingHandle | None:  # noqa: ARG002
        """Return the newest ended run that `current_trainings` does not return, or None.

        `run` limits the search to the run with this name.
        """
        return None

    def dataset(self, address: str | None) -> str:
        """Return the S3 address of a dataset.

        Uploads a dataset of this machine. Without an address, uses the newest dataset.
        """
        if address is None:
            if (newest := self.newest_dataset()) is None:
                by = f"shoal preprocess --deployment {self.name} --input FILE..."
                how = "pass the reviews: --input FILE..." if self.preprocesses else f"create a dataset: {by}"
                raise ShoalError(f"the deployment '{self.name}' has no dataset yet; {how}")
            return newest
        if not is_s3(address):
            return self._upload(Path(address))
        place = self.deployment.require_readable(address, names.OUTPUT_DATA_BUCKET)
        checked.dataset(place.key)
        if place.key not in objects.sizes(self._s3, place):
            raise ShoalError(f"there is no dataset at {address}; check the address")
        return address

    def newest_dataset(self) -> str | None:
        """Return the address of the most recently changed dataset; None if the bucket has no dataset."""
        below = list(list_objects(self._s3, s3.S3Path(self._bucket, names.DATASETS)))
        changed = {
            each["Key"].rpartition("/")[0]: each["LastModified"]
            for each in sorted(below, key=lambda each: each["LastModified"])
        }
        datasets = [each for each in below if checked.is_dataset(each["Key"])]
        newest = max(datasets, key=lambda each: changed[each["Key"].rpartition("/")[0]], default=None)
        return str(s3.S3Path(self._bucket, newest["Key"])) if newest else None

    def _upload(self, path: Path) -> str:
        with open_dataset(path) as opened:
            digest = opened.digest
        if path.name != DATASET_NAME:
            raise ShoalError(f"Shoal uploads only datasets with the name {DATASET_NAME}; rename {path}")
        folder = s3.S3Path(self._bucket, f"{names.DATASETS}{digest}/")
        return objects.upload(self._s3, [path], folder)[0]

    def _require_readable(self, config: TrainConfig) -> None:
        """Raise ShoalError if a file of the configuration is missing, or if the ranks are not allowed to read it."""
        vectors = config.values().get("embeddings")
        if vectors is not None and not is_s3(vectors):
            vectors_size(vectors)  # raises an error for missing vectors before anything costs money
        for address in filter(is_s3, (*_word_sets(config), vectors or "")):
            self.deployment.require_readable(address, names.OUTPUT_DATA_BUCKET, under=(names.RUNS, names.DATASETS))

    def _run_name(self, config: TrainConfig) -> str:
        """Return the name of a new run, or of the run to resume.

        Raises ShoalError if the run to resume is active at another place of the deployment.
        """
        runs = requested_runs(self.deployment)
        if not config.resume:
            return runs.new_name()
        run = runs.unfinished()
        for place in self._others:
            if any(each.name == run and not each.has_ended for each in place.current_trainings()):
                raise ShoalError(place.busy_message.format(run=run, name=self.name))
        return run


def with_uploaded_files(config: TrainConfig, folder: s3.S3Path) -> TrainConfig:
    """Return a copy of the configuration in which files have the addresses to which `upload_files` uploads them."""
    values = config.values()
    files: dict[str, Any] = {
        name: tuple(_address(each, folder) for each in values[name]) for name in _WORD_SETS if name in values
    }
    if vectors := _vectors(config):
        files["embeddings"] = _address(vectors, folder)
    return config.changed(**files)


def upload_files(client: "S3Client", config: TrainConfig, folder: s3.S3Path) -> None:
    """Upload the files that the configuration names to the folder: initial word embeddings, and word sets."""
    vectors = _vectors(config)
    for address in (*_word_sets(config), *([] if vectors is None else [vectors])):
        if is_s3(address):
            continue
        path = Path(address)
        answers = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
        objects.upload(client, [path, answers] if answers != path and answers.exists() else [path], folder)


def _word_sets(config: TrainConfig) -> list[str]:
    values = config.values()
    return [address for name in _WORD_SETS for address in values.get(name, ())]


def _vectors(config: TrainConfig) -> str | None:
    vectors: str | None = config.values().get("embeddings")
    return vectors_file(vectors) if vectors is not None and not is_s3(vectors) else vectors


def _address(address: str, folder: s3.S3Path) -> str:
    """Return the address from which ranks read a file. A file of this machine was uploaded to `folder`."""
    return (
        address if is_s3(address) else str(s3.S3Path(folder.bucket, folder.key + objects.safe_name(Path(address).name)))
    )
