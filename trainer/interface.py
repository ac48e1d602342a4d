"""Training and prediction for programs: what `from trainer import ...` gives. See docs/python.md."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.cores import cores
from common.errors import TrainingError as TrainingError
from corpus.dataset import open_dataset
from trainer.classification.labelling import Labeller
from trainer.classification.labelling import Prediction as Prediction
from trainer.classification.loading import load_model as read_model
from trainer.classification.program_export import program_line
from trainer.config import TrainConfig, configured, default_model
from trainer.output.run_files import SUMMARY, finished_summary, prepare_output, read_json, require_free_output
from trainer.rank_processes import LOG, failure_in, start_ranks
from trainer.start_model import start_options


class Model:
    """A trained model."""

    def __init__(self, address: Path | str) -> None:
        """Read a model; see `load_model`."""
        self._model = read_model(address)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of a prediction's `probabilities`."""
        return self._model.class_names

    def predict(self, texts: Sequence[str], *, threshold: float | None = None) -> list[Prediction]:
        """Label N texts; returns N predictions in their order.

        A prediction's `probabilities` are those of all classes. Of two classes its `probability` is that of the
        positive one, and its `label` is 1 (positive) where that is above `threshold`, by default the model's, else 0
        (negative). Of more classes, and those of fastText's program, its `label` is the name of the most probable one,
        and its `probability` is that of the label. A text that keeps no word has the label None.
        """
        return Labeller(self._model, threshold, threads=cores())(texts)

    def program_line(self, text: str) -> str:
        """A text as fastText's program has to get it with the `model.bin` of this model (`shoal export --fasttext`), to
        answer what `predict` answers: the words that the model reads, each one outside its vocabulary replaced."""
        return program_line(self._model, text)


def load_model(address: Path | str) -> Model:
    """Read a model: from the output folder of a training, from a model's own folder, from a `model.pt` of an earlier
    version, or from a `.bin` of fastText's program, each a path or s3://... Raises TrainingError, and DataError where
    S3 cannot be read."""
    return Model(address)


def train(data: Path | str, output: Path | str, *, ranks: int = 1, **options: Any) -> dict[str, Any]:
    """Train a model on a dataset with `ranks` processes on this machine; returns the content of summary.json.

    `options` are those of `shoal train`, with underscores: `epochs=6, learning_rate=0.01, resume=True`. Ctrl-C stops
    the run with a checkpoint, from which `resume=True` continues, and is raised when the run has ended. Raises
    DataError for a dataset that cannot be used, TrainingError for options that cannot be, and for a run that failed.
    """
    given = start_options({**default_model(options), **options})
    config = configured({**given, "data": Path(data), "output": Path(output)})
    if config.resume and (finished := finished_summary(config.output)):
        return finished
    if not config.resume:
        require_free_output(config.output, force=config.force)
    with open_dataset(config.data):
        pass  # one that cannot be used is reported before ranks are started
    interrupt = _run(config, ranks)
    if interrupt is not None:
        raise interrupt
    summary = read_json(config.output / SUMMARY)
    if summary is None:
        log = config.output / LOG
        raise failure_in(log.read_text("utf-8", "replace"), f"the log is {log}")
    return summary


def _run(config: TrainConfig, ranks: int) -> KeyboardInterrupt | None:
    """Run the ranks to their end; returns the interrupt that asked them to stop, if there was one."""
    if ranks < 1:
        raise TrainingError(f"ranks is {ranks}, but must be at least 1")
    prepare_output(config.output)
    (config.output / SUMMARY).unlink(missing_ok=True)
    interrupt = None
    with (config.output / LOG).open("w") as log, start_ranks(config, ranks=ranks, log=log) as running:
        while running.poll() is None:
            try:
                running.wait()
            except KeyboardInterrupt as again:
                if interrupt is not None:
                    running.kill()
                    raise
                interrupt = again
                running.send_signal(signal.SIGTERM)
    return interrupt
