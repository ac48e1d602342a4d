"""Reads texts for a model to label: from files, which can have ratings or labels, or from lines of standard input."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from common.cores import cores
from common.display import plural
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.batches import TextBatch
from corpus.reading.encodings import STANDARD_INPUT, EncodingError
from corpus.reading.formats import MAX_LINE_BYTES, Format, LabelEncoder
from corpus.reading.inputs.detect import PARQUET, DetectedFormat, UnclearFormatError, detect_format
from corpus.reading.inputs.fields import UnclearFieldsError, reading_settings
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.inputs.unsupported import refuse_unsupported
from corpus.reading.sources import UNLABELLED, Inputs, ReadingOptions
from corpus.reading.tally import Tally
from corpus.reading.texts import join_batches, read_text_stream, read_texts

if TYPE_CHECKING:
    from trainer.classification.labelling import Prediction
    from trainer.classification.trained_model import TrainedModel

Inspected = TypeVar("Inspected")

_BLOCK_BYTES = 1 << 20
_BEGINNING_BYTES = 64 << 10
"""Size of the beginning of standard input from which its format must be clear."""


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Files with texts to label, and how to read them."""

    inspection: InputInspection
    settings: Settings
    """Settings that interpret the files' ratings or labels."""


def find_text_files(
    files: Sequence[str],
    options: ReadingOptions,
    settings: Settings,
    *,
    exclude: Sequence[str] = (),
    unlabelled: bool = False,
) -> TextFiles:
    """Find the files, and detect how to read them and their ratings or labels.

    `settings`: the scale of ratings. `exclude`: patterns of files to leave out. `unlabelled`: accept files without a
    detectable rating or label, unless an option names the rating or label field.

    Raises DataError for unreadable or ambiguous files.
    """
    given, left_out = tuple(files), tuple(exclude)

    def inspect(has_labels: bool) -> InputInspection:
        files, unlabelled = ((), given)[has_labels], (given, ())[has_labels]
        return inspect_inputs(Inputs(files=files, unlabelled=unlabelled, exclude=left_out, options=options))

    inspection = _with_labels_or_without(inspect, options) if unlabelled else inspect(True)
    return TextFiles(inspection=inspection, settings=inspection.settings(settings))


def _with_labels_or_without(inspect: Callable[[bool], Inspected], options: ReadingOptions) -> Inspected:
    """Return the result of `inspect(True)`, or of `inspect(False)` if the input has no detectable rating or label."""
    try:
        return inspect(True)
    except DataError as error:
        if options.rating or options.label or options.positive_label:
            raise
        try:
            return inspect(False)
        except EncodingError:
            raise
        except DataError as second:
            # Of an unclear format or field, the advice for texts without labels helps.
            raise (second if isinstance(error, UnclearFormatError | UnclearFieldsError) else error) from None


def read_text_files(files: TextFiles, tally: Tally) -> Iterator[TextBatch]:
    """Yield the texts of the files in order; see `read_texts`. Ratings and labels may be missing or unknown."""
    return join_batches(read_texts(files.inspection.sources, LabelEncoder(files.settings, others=True), tally))


def label_texts(
    model: "TrainedModel", batches: Iterable[TextBatch], tally: Tally, *, threshold: float, expected: int = 0
) -> Iterator[tuple[TextBatch, "Sequence[Prediction]"]]:
    """Yield batches of texts, as they arrive, with the model's predictions.

    `tally` counts the records of the batches. `expected`: the size of all texts in bytes, if known. Raises DataError at
    the end if all records were malformed.
    """
    from trainer.classification.labelling import Labeller

    label = Labeller(model, threshold, expected=expected, threads=cores())
    for batch in batches:
        yield batch, label(batch.texts)
    if tally.counts["lines"] == tally.counts["malformed"] > 0:
        count, *places = malformed_records(tally)
        raise DataError(f"all records of the input are malformed: {count}", *places)


def malformed_records(tally: Tally) -> list[str]:
    """Return the number of malformed records, and the places of the first malformed records by reason, as lines."""
    places = [f"  {each.reason}: {each.file}, line {each.line}: {each.begins}" for each in tally.malformed_lines()]
    return [f"{tally.counts['malformed']:,} of {plural(tally.counts['lines'], 'record')}", *places]


def read_standard_input(file: BinaryIO, options: ReadingOptions, tally: Tally) -> Iterator[TextBatch]:
    """Detect how to read standard input from the lines that arrive first, as for a file. Return its texts in batches.

    If its first lines are plain text, all of it is. Raises DataError for an ambiguous format, for Parquet, and for
    compressed input.
    """
    content = blocks(file)
    known, pieces = None, list[bytes]()
    for piece in content:
        pieces.append(piece)
        beginning = b"".join(pieces)
        if b"\n" in piece or len(beginning) > MAX_LINE_BYTES:
            try:
                known = _detect_stream(beginning, False, options)
                break
            except DataError:
                # A JSON array can have its first element in a later piece.
                if len(beginning) >= _BEGINNING_BYTES or not beginning.lstrip().startswith((b"[", b"{")):
                    raise
    else:
        known = _detect_stream(b"".join(pieces), True, options)
    encoder = LabelEncoder(reading_settings(known.labelled, options), others=True)
    return read_text_stream(chain(pieces, content), STANDARD_INPUT, known.format, encoder, tally)


def _detect_stream(beginning: bytes, whole: bool, options: ReadingOptions) -> DetectedFormat:
    lines = [line for line in beginning.split(b"\n") if line.strip()]
    try:
        if beginning.startswith(PARQUET):
            raise DataError(f"{STANDARD_INPUT} is Parquet")
        refuse_unsupported(STANDARD_INPUT, beginning, lines if whole else lines[:-1])
    except EncodingError:
        raise
    except DataError as error:
        raise DataError(f"{error}; save the input to a file, and give the name of the file") from None
    known = _with_labels_or_without(
        lambda labels: detect_format(STANDARD_INPUT, beginning, whole, options, None if labels else UNLABELLED),
        options,
    )
    return known or DetectedFormat(Format(kind="text"), False, Counter())


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield bytes as soon as they arrive, up to 1 MiB at a time: a typed line, or all that a program has written."""
    while block := file.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
        yield block
