"""The trainings of an experiment, on this machine or on deployments: ordinary runs of `shoal train`.

Those of vectors of words learn from one text, which is read once, into the experiment's output.

A run that was stopped goes on from its checkpoint. Where it left none that can be used it begins anew; what it left is
of this experiment alone.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bootstrap.experiments.places import Deployments, digest_of_files
from bootstrap.progress import Bars
from bootstrap.training.local import train_locally
from bootstrap.training.prediction import predict_run
from bootstrap.training.word_stream import readers_of
from corpus.cores import cores
from corpus.dataset import open_dataset
from corpus.errors import DataError
from corpus.reading.inputs.finding import find_files
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs
from corpus.reading.storage import open_range
from corpus.stream.settings import StreamSettings, absolute
from experiments.errors import ExperimentError
from experiments.finding import find_runs
from experiments.forecast.estimate import Estimate
from experiments.forecast.rates import is_alike
from experiments.plans.parts import Arm, Experiment, Text
from experiments.plans.planned import PlannedRun
from experiments.plans.prices import DatasetSize, RunPrice, cannot_tell, price_asleep, training_price
from experiments.plans.settings import config_of
from experiments.runs import LAUNCH, numbers, read_run
from trainer.config import TrainConfig
from trainer.output.files import CHECKPOINT_PATTERN, CHECKPOINTS, finished_summary, read_json, was_stopped

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment

_READ_AHEAD = 1 << 20
_OFF = 0.1
"""By what share a run's time is expected to differ from those of other repeats."""
_FREE = Estimate.exact(0.0)
_TEXT = ".text"
"""The folder of the text that was read, in the output: an arm's folder has no such name."""


class _LocalRuns:
    """What all trainings on this machine have in common."""

    def __init__(self, experiment: Experiment, data: Path) -> None:
        """`data`: what the ranks read."""
        self.cores: int | None = cores()
        self._experiment, self._read = experiment, data

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run here; empty where it can."""
        return "" if arm.local else "it says nothing of this machine (`local`)"

    def deployment_of(self, _arm: Arm) -> str | None:
        """None: it runs here."""
        return None

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run takes, by the arm's finished runs or as predicted; it costs nothing."""
        took = [seconds for folder in run.folder.parent.glob("*") if (seconds := _launch_seconds(folder))]
        if not took:
            return self._predicted(run)
        expected = Estimate.about(median(took), _OFF)
        return RunPrice(seconds=expected, dollars=_FREE, basis="the finished runs of this arm")

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make the run; returns the name of the signal that stopped it."""
        assert run.arm.local is not None
        config = self._config(run, resume=any((run.folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN)))
        return _signal(train_locally(config, ranks=run.arm.local.world_size, bars=bars))

    def _predicted(self, run: PlannedRun) -> RunPrice:
        """What a run takes of an arm without a finished one."""
        raise NotImplementedError

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return config_of(
            self._experiment, run.arm, run.repeat, data=self._read, output=run.folder, local=True, resume=resume
        )


class LocalTrainings(_LocalRuns):
    """Trainings on a dataset."""

    def __init__(self, experiment: Experiment, data: Path, rates: Sequence[Path]) -> None:
        """`data`: the dataset; `rates`: folders of runs by which others are predicted. Raises DataError for a dataset
        that cannot be used, and ExperimentError for a folder without runs."""
        super().__init__(experiment, data)
        self._rates = [read_run(folder) for folder in find_runs(rates)] if rates else []
        with open_dataset(data) as dataset:
            self.data: str | None = dataset.digest
            self._size = DatasetSize(len(dataset.train), len(dataset.test))

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return _is_finished(run, self.data)

    def _predicted(self, run: PlannedRun) -> RunPrice:
        """By the rates of ranks that sleep, or by runs that were made before."""
        assert run.arm.local is not None
        config = self._config(run)
        if run.arm.local.sleep:
            return price_asleep(run.arm.local, config, self._size)
        ranks = run.arm.local.world_size
        alike = [each.folder for each in self._rates if is_alike(each, config.plain(), ranks)]
        if not alike:
            hint = "shoal calibrate --local with its ranks, model and --threads, and --rates"
            return cannot_tell(f"no rates of such ranks; {hint}", dollars=_FREE)
        try:
            found = predict_run(config, ranks=ranks, rates=alike)
        except ExperimentError as error:
            return cannot_tell(str(error), dollars=_FREE)
        return RunPrice(seconds=Estimate(**found["seconds"]), dollars=_FREE, basis=found["source"])


class LocalWords(_LocalRuns):
    """Trainings of vectors of words."""

    def __init__(
        self, experiment: Experiment, inputs: Sequence[str], output: Path, similarity: Sequence[str] = ()
    ) -> None:
        """`inputs`: the text, files, folders or s3://...; `similarity`: sets of pairs by which vectors are judged.
        Raises DataError for a text that is not there, or that has no end."""
        self._settings = _stream_settings(experiment, inputs)
        super().__init__(experiment, output / _TEXT)
        self._similarity = tuple(similarity)
        found = find_files(Inputs(files=tuple(inputs)), leave_out=str(output.resolve()))
        self.data: str | None = digest_of_files(found.files)

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return finished_summary(run.folder) is not None

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make the run; the text is read before, unless it was."""
        with readers_of(self._read, self._settings, bars):
            return super().make(run, bars)

    def _predicted(self, run: PlannedRun) -> RunPrice:  # noqa: ARG002
        return cannot_tell("no run of this arm has finished", dollars=_FREE)

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return replace(super()._config(run, resume=resume), similarity=self._similarity)


class _DeployedRuns:
    """What all trainings on the GPU nodes of deployments have in common."""

    def __init__(self, experiment: Experiment, where: Deployments) -> None:
        self.cores: int | None = None
        self.data: str | None = None
        self._experiment, self._where = experiment, where

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run on these deployments; empty where it can."""
        return self._where.why_not(arm)

    def deployment_of(self, arm: Arm) -> str | None:
        """The name of an arm's deployment."""
        return self._where.name_of(arm)

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make the run; returns the name of the signal that stopped it."""
        from bootstrap.training.remote import train_on_deployment

        deployment = self._where.of(run.arm)
        config = self._config(run, resume=was_stopped(run.folder))
        dataset = self._data_on(deployment)
        return _signal(train_on_deployment(deployment, config, dataset=dataset, output=run.folder, bars=bars))

    def _data_on(self, deployment: "Deployment") -> str | StreamSettings | None:
        """What a deployment's nodes learn from, as `train_on_deployment` takes it."""
        raise NotImplementedError

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return config_of(
            self._experiment, run.arm, run.repeat, data=Path("dataset"), output=run.folder, local=False, resume=resume
        )


class DeployedTrainings(_DeployedRuns):
    """Trainings on a dataset."""

    def __init__(self, experiment: Experiment, where: Deployments, data: str | None) -> None:
        """`data`: a dataset, a path or s3://...; None: each deployment's newest one."""
        super().__init__(experiment, where)
        self._dataset, self._size = data, None
        if data is not None:
            self.data, self._size = _look_into(data)

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run takes and costs, by the price list and what is known of GPUs."""
        if self._size is None:
            return cannot_tell("the rows of the deployment's newest dataset are not known here; name it by --data")
        return training_price(self._where.topology(run.arm), self._config(run), self._size)

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return _is_finished(run, self.data)

    def _data_on(self, deployment: "Deployment") -> str | None:  # noqa: ARG002
        return self._dataset


class DeployedWords(_DeployedRuns):
    """Trainings of vectors of words, whose nodes read the text."""

    def __init__(
        self, experiment: Experiment, where: Deployments, inputs: Sequence[str], similarity: Sequence[str]
    ) -> None:
        """`inputs`: the text, s3://...; `similarity`: sets of pairs by which vectors are judged. Raises DataError for a
        text that is not there, or that has no end."""
        super().__init__(experiment, where)
        self._settings, self._similarity = _stream_settings(experiment, inputs), tuple(similarity)
        self.data = digest_of_files(find_files(Inputs(files=tuple(inputs))).files)

    def price(self, run: PlannedRun) -> RunPrice:  # noqa: ARG002
        """Unknown: it is by the nodes' rate of words, which no run has told."""
        return cannot_tell("shoal plan NAME --words N tells what such a training takes")

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return finished_summary(run.folder) is not None

    def _data_on(self, deployment: "Deployment") -> StreamSettings:
        from bootstrap.training.readers import count_readers

        return replace(self._settings, readers=max(1, count_readers(deployment)))

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return replace(super()._config(run, resume=resume), similarity=self._similarity)


def _stream_settings(experiment: Experiment, inputs: Sequence[str]) -> StreamSettings:
    """How the text of an experiment is read. Raises DataError for one that has no end."""
    text = experiment.text or Text()
    settings = StreamSettings(
        sources=tuple(map(absolute, inputs)),
        tokeniser=text.tokeniser,
        lowercase=not text.keep_case,
        lemmatize=text.lemmatize,
    )
    if settings.endless:
        raise DataError("the runs of an experiment learn from the same text, and a socket sends it once; give files")
    return settings


def _look_into(address: str) -> tuple[str, DatasetSize]:
    """The digest and the size of a dataset."""
    if not is_s3(address):
        with open_dataset(Path(address)) as dataset:
            return dataset.digest, DatasetSize(len(dataset.train), len(dataset.test))
    with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
        return dataset.digest, DatasetSize(len(dataset.train), len(dataset.test))


def _is_finished(run: PlannedRun, data: str | None) -> bool:
    summary = finished_summary(run.folder)
    if summary and data is not None and summary.get("digest") != data:
        raise ExperimentError(f"{run.folder} holds a run on other data; choose another --output, or remove that folder")
    return bool(summary)


def _launch_seconds(folder: Path) -> float | None:
    """What the launch of a finished run took; None where that is not known."""
    return numbers(read_json(folder / LAUNCH) or {}).get("seconds") if finished_summary(folder) else None


def _signal(summary: dict[str, object]) -> str | None:
    return str(summary.get("stopped_by", "SIGINT")) if summary["stopped"] else None
