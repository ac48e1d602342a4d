"""The trainings of an experiment, on this machine or on deployments: ordinary runs of `shoal train`.

A run that was stopped goes on from its checkpoint. Where it left none that can be used it begins anew; what it left is
of this experiment alone.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from bootstrap.experiments.places import Deployments
from bootstrap.progress import Bars
from bootstrap.training.local import train_locally
from bootstrap.training.prediction import predict_run
from corpus.cores import cores
from corpus.dataset import open_dataset
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_range
from experiments.errors import ExperimentError
from experiments.finding import find_runs
from experiments.plans.parts import Arm, Experiment
from experiments.plans.planned import PlannedRun
from experiments.plans.prices import DatasetSize, RunPrice, cannot_tell, price_asleep, training_price
from experiments.plans.settings import config_of
from experiments.prediction.estimate import Estimate
from experiments.prediction.rates import is_alike
from experiments.runs import LAUNCH, numbers, read_run
from trainer.config import TrainConfig
from trainer.output.files import CHECKPOINT_PATTERN, CHECKPOINTS, finished_summary, read_json, was_stopped

_READ_AHEAD = 1 << 20
_OFF = 0.1
"""By what share a run's time is expected to differ from those of other repeats."""


class LocalTrainings:
    """Trainings on this machine."""

    def __init__(self, experiment: Experiment, data: Path, rates: Sequence[Path]) -> None:
        """`data`: the dataset; `rates`: folders of runs by which others are predicted. Raises DataError for a dataset
        that cannot be used, and ExperimentError for a folder without runs."""
        self.cores: int | None = cores()
        self._experiment, self._dataset = experiment, data
        self._rates = [read_run(folder) for folder in find_runs(rates)] if rates else []
        with open_dataset(data) as dataset:
            self.data: str | None = dataset.digest
            self._size = DatasetSize(len(dataset.train), len(dataset.test))

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run here; empty where it can."""
        return "" if arm.local else "it says nothing of this machine (`local`)"

    def deployment_of(self, _arm: Arm) -> str | None:
        """None: it runs here."""
        return None

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run takes, by the arm's finished runs, by the rates of ranks that sleep, or by runs that were made
        before; it costs nothing."""
        assert run.arm.local is not None
        config = self._config(run)
        free = Estimate.exact(0.0)
        took = [seconds for folder in run.folder.parent.glob("*") if (seconds := _launch_seconds(folder))]
        if took:
            expected = Estimate.about(median(took), _OFF)
            return RunPrice(seconds=expected, dollars=free, basis="the finished runs of this arm")
        if run.arm.local.sleep:
            return price_asleep(run.arm.local, config, self._size)
        ranks = run.arm.local.world_size
        alike = [each.folder for each in self._rates if is_alike(each, config.plain(), ranks)]
        if not alike:
            hint = "shoal calibrate --local with its ranks, model and --threads, and --rates"
            return cannot_tell(f"no rates of such ranks; {hint}", dollars=free)
        try:
            found = predict_run(config, ranks=ranks, rates=alike)
        except ExperimentError as error:
            return cannot_tell(str(error), dollars=free)
        return RunPrice(seconds=Estimate(**found["seconds"]), dollars=free, basis=found["source"])

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return _is_finished(run, self.data)

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make the run; returns the name of the signal that stopped it."""
        assert run.arm.local is not None
        config = self._config(run, resume=any((run.folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN)))
        return _signal(train_locally(config, ranks=run.arm.local.world_size, bars=bars))

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return config_of(
            self._experiment, run.arm, run.repeat, data=self._dataset, output=run.folder, local=True, resume=resume
        )


class DeployedTrainings:
    """Trainings on the GPU nodes of deployments."""

    def __init__(self, experiment: Experiment, where: Deployments, data: str | None) -> None:
        """`data`: a dataset, a path or s3://...; None: each deployment's newest one."""
        self.cores: int | None = None
        self._experiment, self._where, self._dataset = experiment, where, data
        self.data: str | None = None
        self._size: DatasetSize | None = None
        if data is not None:
            self.data, self._size = _look_into(data)

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run on these deployments; empty where it can."""
        return self._where.why_not(arm)

    def deployment_of(self, arm: Arm) -> str | None:
        """The name of an arm's deployment."""
        return self._where.name_of(arm)

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run takes and costs, by the price list and what is known of GPUs."""
        if self._size is None:
            return cannot_tell("the rows of the deployment's newest dataset are not known here; name it by --data")
        return training_price(self._where.topology(run.arm), self._config(run), self._size)

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run has come to its end before."""
        return _is_finished(run, self.data)

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make the run; returns the name of the signal that stopped it."""
        from bootstrap.training.remote import train_on_deployment

        deployment = self._where.of(run.arm)
        config = self._config(run, resume=was_stopped(run.folder))
        return _signal(train_on_deployment(deployment, config, dataset=self._dataset, output=run.folder, bars=bars))

    def _config(self, run: PlannedRun, *, resume: bool = False) -> TrainConfig:
        return config_of(
            self._experiment, run.arm, run.repeat, data=Path("dataset"), output=run.folder, local=False, resume=resume
        )


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
