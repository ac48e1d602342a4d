"""Executes the training runs of an experiment. They are ordinary runs, with a source and a place.

A stopped run continues from its checkpoint. A run without a usable checkpoint starts again, and replaces its earlier
files.
"""

from dataclasses import replace
from pathlib import Path

from bootstrap.experiments.places import Where
from bootstrap.progress import Bars
from bootstrap.training.sources.source import Source
from bootstrap.training.sources.stream import StreamSource
from bootstrap.training.train import train
from common.errors import ExperimentError
from corpus.stream.stream_settings import StreamSettings, absolute
from experiments.plans.experiment_files import config_of
from experiments.plans.parts import Arm, Experiment, PlannedRun, Text
from experiments.plans.prices import RunPrice
from trainer.config import TrainConfig
from trainer.output.run_files import finished_summary

_TEXT = ".text"
"""Folder in the output folder for the text that was read. No arm can have this name."""


class Trainings:
    def __init__(
        self, experiment: Experiment, where: Where, source: Source, *, similarity: tuple[str, ...] = ()
    ) -> None:
        """`similarity`: sets of word pairs that evaluate word embeddings. Raises DataError for an unreadable source."""
        self.where = where
        self.data, self._size = source.digest(), source.size()
        self._experiment, self._source, self._similarity = experiment, source, similarity

    def why_not(self, arm: Arm) -> str:
        """Return why the chosen place cannot execute the arm's runs, or ""."""
        return self.where.why_not(arm)

    def price(self, run: PlannedRun) -> RunPrice:
        return self.where.price(run, self._config(run, resume=False), self._size)

    def is_finished(self, run: PlannedRun) -> bool:
        """Return whether the run has already finished."""
        summary = finished_summary(run.folder)
        if summary and self._size is not None and summary.get("digest") != self.data:
            raise ExperimentError(
                f"{run.folder} contains a run on different data; choose another --output, or remove that folder"
            )
        return bool(summary)

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Execute the run; return the name of the signal that stopped it, or None."""
        config = self._config(run, resume=self.where.can_resume(run))
        summary = train(self._source, config, self.where.place(run.arm), bars)
        return str(summary.get("stopped_by", "SIGINT")) if summary["stopped"] else None

    def _config(self, run: PlannedRun, *, resume: bool) -> TrainConfig:
        local = self.where.cores is not None
        config = config_of(self._experiment, run, data=Path("dataset"), local=local, resume=resume)
        return replace(config, similarity=self._similarity)


def text_of(experiment: Experiment, inputs: tuple[str, ...], output: Path) -> StreamSource:
    """Return the text source of an experiment on word embeddings. The text is read once, into the output folder."""
    text = experiment.text or Text()
    settings = StreamSettings(
        sources=tuple(map(absolute, inputs)),
        tokeniser=text.tokeniser,
        lowercase=not text.keep_case,
        lemmatize=text.lemmatize,
    )
    return StreamSource(settings, folder=output / _TEXT)
