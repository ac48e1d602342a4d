"""Reads texts for a model to label: from files, which can have ratings or labels, or from lines of standard input."""

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from common.cores import cores
from common.display import plural
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.batches import TextBatch
from corpus.reading.formats import LabelEncoder
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.inputs.unsupported import refuse_unsupported
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.reading.tally import Tally
from corpus.reading.texts import join_batches, plain_texts, read_texts

if TYPE_CHECKING:
    from trainer.classification.labelling import Prediction
    from trainer.classification.trained_model import TrainedModel

_BLOCK_BYTES = 1 << 20
_STANDARD_INPUT = "standard input"


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
    try:
        inspection = inspect_inputs(Inputs(files=tuple(files), exclude=tuple(exclude), options=options))
    except DataError as error:
        if not unlabelled or options.rating or options.label or options.positive_label:
            raise
        try:
            inspection = inspect_inputs(Inputs(unlabelled=tuple(files), exclude=tuple(exclude), options=options))
        except DataError:
            raise error from None
    return TextFiles(inspection=inspection, settings=inspection.settings(settings))


def read_text_files(files: TextFiles, tally: Tally) -> Iterator[TextBatch]:
    """Yield the texts of the files in order; see `read_texts`. Ratings and labels may be missing or unknown."""
    return read_texts(files.inspection.sources, LabelEncoder(files.settings, others=True), tally)


def label_text_files(
    model: "TrainedModel", files: TextFiles, tally: Tally, *, threshold: float
) -> Iterator[tuple[TextBatch, "Sequence[Prediction]"]]:
    """Yield batches of texts with the model's predictions. `tally` counts the records.

    Raises DataError at the end if all records were malformed.
    """
    from trainer.classification.labelling import Labeller

    label = Labeller(model, threshold, expected=files.inspection.plain_bytes, threads=cores())
    for batch in join_batches(read_text_files(files, tally)):
        yield batch, label(batch.texts)
    if tally.counts["lines"] == tally.counts["malformed"]:
        raise DataError(f"all records of the input are malformed: {malformed_records(tally)}")


def malformed_records(tally: Tally) -> str:
    """Return as text the number of malformed records, and the places of the first malformed records by reason."""
    places = [f"  {each.reason}: {each.file}, line {each.line}: {each.begins}" for each in tally.malformed_lines()]
    return "\n".join([f"{tally.counts['malformed']:,} of {plural(tally.counts['lines'], 'record')}", *places])


def label_lines(
    model: "TrainedModel", file: BinaryIO, tally: Tally, *, threshold: float
) -> Iterator[tuple[Sequence[str], "Sequence[Prediction]"]]:
    """Yield batches of lines, as they arrive, with the model's predictions. `tally` counts the lines."""
    from trainer.classification.labelling import Labeller

    label = Labeller(model, threshold, expected=bytes_to_come(file), threads=cores())
    for batch in plain_texts(_checked(blocks(file)), _STANDARD_INPUT, tally):
        yield batch.texts, label(batch.texts)


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces unchanged. Raises DataError if the first piece is not text."""
    for first in pieces:
        try:
            refuse_unsupported(_STANDARD_INPUT, first, first.split(b"\n")[:-1])
        except DataError as error:
            raise DataError(f"{error}; save the input to a file, and give the name of the file") from None
        yield first
        yield from pieces


def bytes_to_come(file: BinaryIO) -> int:
    """Return the size of a file; 0 (unknown) for a pipe or a terminal."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield bytes as soon as they arrive, up to 1 MiB at a time: a typed line, or all that a program has written."""
    with suppress(OSError):  # the file is not a pipe
        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _BLOCK_BYTES)  # by default, the writing program blocks after 64 KiB
    while block := file.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
        yield block
