"""Training and prediction on this machine."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.cores import cores
from common.errors import TrainingError
from shoal.api.arguments import errors_name_arguments
from trainer.classification.labelling import Labeller, Prediction
from trainer.classification.model_folder import load_model as read_model
from trainer.config import TrainConfig, configured, options_for
from trainer.registry import COMMANDS

_INTEGER = re.compile("0|-?[1-9][0-9]*", re.ASCII)

if TYPE_CHECKING:
    from shoal.runs.sources.source import DataSource


class Model:
    """Trained classifier."""

    def __init__(self, address: Path | str) -> None:
        """Load a model; see `load_model`."""
        self._model = read_model(address)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of a prediction's `probabilities`."""
        return self._model.class_names

    def predict(self, texts: Sequence[str], *, threshold: float | None = None) -> list[Prediction]:
        """Classify texts.

        Args:
            texts: N texts.
            threshold: For two classes: probability above which a text is positive (default: the model's threshold).

        Returns:
            N predictions, in the order of the texts. `probabilities` has the probability of each class. For two
                classes, `probability` is that of the positive class, and `label` is 1 (positive) or 0. For more
                classes, `label` is the name of the most probable class, and `probability` its probability. Names are
                returned as integers if all of them are integers. A text without a word that the model knows has the
                label None.

        Raises:
            TypeError: `texts` is a string, or a text is not a string.
            ValueError: `threshold` is not from 0 to 1.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, such as [text], not one string")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{number}] must be a str, not {type(text).__name__}")
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold}, but must be from 0 to 1")
        found = Labeller(self._model, threshold, threads=cores())(texts)
        numbers = {name: int(name) for name in self._model.classes if _INTEGER.fullmatch(name)}
        if len(numbers) < len(self._model.classes):
            return found
        return [each._replace(label=numbers.get(str(each.label), each.label)) for each in found]


@errors_name_arguments(model="address")
def load_model(address: Path | str) -> Model:
    """Load a trained classifier.

    Args:
        address: Output folder of a training run, or folder of a model: a path or s3://...

    Raises:
        TrainingError: The folder has no model, or the model is unreadable.
        DataError: Reading from S3 failed.
    """
    return Model(address)


@errors_name_arguments(nodes="ranks")
def train(data: Path | str, output: Path | str, *, ranks: int = 1, **options: Any) -> dict[str, Any]:
    """Train a classifier on a dataset, with a progress bar on standard error.

    Ctrl-C stops the training with a checkpoint, and KeyboardInterrupt is raised. `resume=True` continues from the
    checkpoint. If the last step is already done, the training finishes normally.

    Args:
        data: Dataset made by `preprocess`.
        output: Folder for the results.
        ranks: Number of processes on this machine that train together.
        options: Options of `shoal train`, with underscores: `epochs=6, learning_rate=0.01, resume=True`.

    Returns:
        The content of summary.json, such as `accuracy`, `seconds` and `rows_of_ranks`.

    Raises:
        DataError: The dataset is invalid or unreadable.
        TrainingError: An option is invalid, or the training failed.
        ShoalError: The training ended without a result for another reason.
        KeyboardInterrupt: The training was stopped.
    """
    from shoal.runs.sources.dataset import DatasetSource

    _require_options("classes", options)
    config = configured({**options, "data": Path(data), "output": Path(output)})
    return _trained(DatasetSource(str(data)), config, ranks)


@errors_name_arguments(input="files", nodes="ranks")
def embed(
    files: Path | str | Sequence[Path | str],
    output: Path | str,
    *,
    ranks: int = 1,
    tokeniser: str = "punctuation",
    lowercase: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Learn word embeddings from text, with a progress bar on standard error. Ctrl-C and `resume` work as in `train`.

    Args:
        files: Paths of files and folders, patterns, or addresses s3://... Each line is a text, or a JSON object with a
            field of a known name, such as `reviewText`.
        output: Folder for the results. The vectors are in its file `model/vectors.txt`, of shape (words, `embedding`).
        ranks: Number of processes on this machine that train together.
        tokeniser: How to split a line into words: "punctuation", "treebank", "spaces" or "letters".
        lowercase: Whether to convert words to lower case.
        options: Options of `shoal embed`, with underscores: `model="skipgram", embedding=300, epochs=5`.

    Returns:
        The content of summary.json, such as `vocabulary` and `loss`.

    Raises:
        DataError: The text is invalid or unreadable.
        TrainingError: An option is invalid, or the training failed.
        ShoalError: The training ended without a result for another reason.
        KeyboardInterrupt: The training was stopped.
    """
    from corpus.stream.records import text_fields
    from corpus.stream.stream_settings import StreamSettings, absolute
    from shoal.runs.sources.stream import StreamSource

    named = [files] if isinstance(files, Path | str) else files
    settings = StreamSettings(
        sources=tuple(absolute(str(each)) for each in named), tokeniser=tokeniser, lowercase=lowercase
    )
    settings = replace(settings, text=text_fields(settings.sources, ()))
    _require_options("words", options)
    model = {} if options.get("preset") else {"model": "skipgram"}
    config = configured({**model, **options, "data": Path("stream"), "output": Path(output)})
    return _trained(StreamSource(settings), config, ranks)


def _require_options(learns: str, given: Iterable[str]) -> None:
    """Raise TypeError unless these names are options of the command that learns `classes` or `words`."""
    known = {each.name for each in options_for(learns)}
    for name in given:
        if name not in known:
            raise TypeError(f"{COMMANDS[learns]}() got an unexpected keyword argument '{name}'")


def _trained(source: "DataSource", config: TrainConfig, ranks: int) -> dict[str, Any]:
    from shoal.backends.local import LocalBackend
    from shoal.progress import Bars
    from shoal.runs.train import train as train_at

    if ranks < 1:
        raise TrainingError(f"ranks is {ranks}, but must be at least 1")
    with Bars(unit="row"):
        summary = train_at(source, config, LocalBackend(ranks))
    if "stopped_by" in summary:
        raise KeyboardInterrupt
    return summary
