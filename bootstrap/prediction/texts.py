"""Texts of files for a model to label, and the ratings or labels that the files have for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.cores import cores
from common.display import plural
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.batches import TextBatch
from corpus.reading.formats import Codes
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.reading.tally import Tally
from corpus.reading.texts import join_batches, read_texts

if TYPE_CHECKING:
    from trainer.classification.labelling import Prediction
    from trainer.classification.trained_model import TrainedModel


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Files whose texts are to be labelled, and how they are read."""

    understanding: Understanding
    settings: Settings
    """What ratings and labels of the files mean."""


def find_text_files(
    files: Sequence[str],
    options: ReadingOptions,
    settings: Settings,
    *,
    exclude: Sequence[str] = (),
    unlabelled: bool = False,
) -> TextFiles:
    """Find the files, and how they and their ratings or labels are read.

    `settings` define what ratings mean; `exclude` are patterns of what is left out of folders and patterns. With
    `unlabelled`, files whose rating or label is not found are read without it, unless an option names it. Raises
    DataError for files that cannot be read, or where it is not clear how.
    """
    try:
        understanding = understand_inputs(Inputs(files=tuple(files), exclude=tuple(exclude), options=options))
    except DataError as error:
        if not unlabelled or options.rating or options.label or options.positive_label:
            raise
        try:
            understanding = understand_inputs(Inputs(unlabelled=tuple(files), exclude=tuple(exclude), options=options))
        except DataError:
            raise error from None
    return TextFiles(understanding=understanding, settings=understanding.settings(settings))


def read_text_files(files: TextFiles, tally: Tally) -> Iterator[TextBatch]:
    """The texts of the files, in their order; see `read_texts`. A rating or label may be missing or unknown."""
    return read_texts(files.understanding.sources, Codes(files.settings, others=True), tally)


def label_text_files(
    model: "TrainedModel", files: TextFiles, tally: Tally, *, threshold: float
) -> Iterator[tuple[TextBatch, "Sequence[Prediction]"]]:
    """Each batch of texts with the model's predictions; `tally` counts the records that are read.

    Raises DataError at the end where no record could be read.
    """
    from trainer.classification.labelling import Labeller

    label = Labeller(model, threshold, expected=files.understanding.plain_bytes, threads=cores())
    for batch in join_batches(read_text_files(files, tally)):
        yield batch, label(batch.texts)
    if tally.counts["lines"] == tally.counts["malformed"]:
        raise DataError(f"no record of the input can be read: {malformed_records(tally)}")


def malformed_records(tally: Tally) -> str:
    """How many records are malformed, and where the first ones of each reason are."""
    places = [f"  {each.reason}: {each.file}, line {each.line}: {each.begins}" for each in tally.malformed_lines()]
    return "\n".join([f"{tally.counts['malformed']:,} of {plural(tally.counts['lines'], 'record')}", *places])
