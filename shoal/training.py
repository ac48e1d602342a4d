"""Training and prediction on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.cores import cores
from common.errors import TrainingError
from shoal.arguments import errors_name_arguments
from trainer.classification.labelling import Labeller, Prediction
from trainer.classification.model_folder import load_model as read_model
from trainer.config import TrainConfig, configured, default_model

if TYPE_CHECKING:
    from bootstrap.training.sources.source import Source


class Model:
    """A trained classifier."""

    def __init__(self, address: Path | str) -> None:
        """Read a model; see `load_model`."""
        self._model = read_model(address)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of a prediction's `probabilities`."""
        return self._model.class_names

    def predict(self, texts: Sequence[str], *, threshold: float | None = None) -> list[Prediction]:
        """Classify texts.

        Args:
            texts: N texts.
            threshold: Of two classes: above which probability a text is positive (default: the model's own).

        Returns:
            N predictions, in the order of the texts. `probabilities` are those of all classes. Of two classes
                `probability` is that of the positive one, and `label` is 1 (positive) or 0. Of more classes `label` is
                the name of the most probable one, and `probability` is its own. A text without a word that
                the model knows has the label None.

        Raises:
            TypeError: `texts` is one string, or a text is no string.
            ValueError: `threshold` is not from 0 to 1.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one string, and must be a list of texts, such as [text]")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{number}] is a {type(text).__name__}, and must be a str")
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold}, and must be from 0 to 1")
        return Labeller(self._model, threshold, threads=cores())(texts)


@errors_name_arguments(model="address")
def load_model(address: Path | str) -> Model:
    """Read a model.

    Args:
        address: The output folder of a training, or a model's own folder: a path or s3://...

    Raises:
        TrainingError: There is no model, or one that cannot be read.
        DataError: S3 cannot be read.
    """
    return Model(address)


@errors_name_arguments(nodes="ranks")
def train(data: Path | str, output: Path | str, *, ranks: int = 1, **options: Any) -> dict[str, Any]:
    """Train a classifier on a dataset, with a progress bar on standard error.

    Ctrl-C stops the training with a checkpoint, and is raised when it has stopped; `resume=True` goes on from there. A
    training that is just ending ends as usual.

    Args:
        data: A dataset that `preprocess` made.
        output: The folder of the results.
        ranks: Processes on this machine that learn together.
        options: Those of `shoal train`, with underscores: `epochs=6, learning_rate=0.01, resume=True`.

    Returns:
        The content of summary.json: `accuracy`, `seconds`, `rows_of_ranks` and so on.

    Raises:
        DataError: The dataset cannot be used.
        TrainingError: The options cannot be, or the training failed.
        ShoalError: It ended without a result for another reason.
    """
    from bootstrap.training.sources.dataset import DatasetSource

    given = {**default_model(options), **options}
    return _trained(DatasetSource(str(data)), configured({**given, "data": Path(data), "output": Path(output)}), ranks)


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
    """Learn word embeddings from text, with a progress bar on standard error. It is stopped and resumed as `train`.

    Args:
        files: Paths of files and folders, patterns, or addresses s3://..., of which each line is a text, or a JSON
            object with a field of a known name, such as `reviewText`.
        output: The folder of the results; `model/vectors.txt` in it has the vectors, (words, `embedding`) numbers.
        ranks: Processes on this machine that learn together.
        tokeniser: How a line becomes words: "punctuation", "treebank", "spaces" or "letters".
        lowercase: Whether words become lower case.
        options: Those of `shoal embed`, with underscores: `model="skipgram", embedding=300, epochs=5`.

    Returns:
        The content of summary.json: `vocabulary`, `loss` and so on.

    Raises:
        DataError: The text cannot be used.
        TrainingError: The options cannot be, or the training failed.
        ShoalError: It ended without a result for another reason.
    """
    from bootstrap.training.sources.stream import StreamSource
    from corpus.stream.records import text_fields
    from corpus.stream.stream_settings import StreamSettings, absolute

    named = [files] if isinstance(files, Path | str) else files
    settings = StreamSettings(
        sources=tuple(absolute(str(each)) for each in named), tokeniser=tokeniser, lowercase=lowercase
    )
    settings = replace(settings, text=text_fields(settings.sources, ()))
    model = {} if options.get("preset") else {"model": "skipgram"}
    config = configured({**model, **options, "data": Path("stream"), "output": Path(output)})
    return _trained(StreamSource(settings), config, ranks)


def _trained(source: "Source", config: TrainConfig, ranks: int) -> dict[str, Any]:
    from bootstrap.progress import Bars
    from bootstrap.training.places.this_machine import ThisMachine
    from bootstrap.training.train import train as carry_out

    if ranks < 1:
        raise TrainingError(f"ranks is {ranks}, but must be at least 1")
    with Bars(unit="row") as bars:
        summary = carry_out(source, config, ThisMachine(ranks), bars)
    if "stopped_by" in summary:
        raise KeyboardInterrupt
    return summary
