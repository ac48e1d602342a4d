"""Texts for a model to label, of files, with their ratings or labels, or of standard input, a text a line."""

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
from corpus.reading.formats import Codes
from corpus.reading.inputs.understanding import Understanding, understand_inputs
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


def label_lines(
    model: "TrainedModel", file: BinaryIO, tally: Tally, *, threshold: float
) -> Iterator[tuple[Sequence[str], "Sequence[Prediction]"]]:
    """Each batch of lines, as they come, with the model's predictions; `tally` counts the lines."""
    from trainer.classification.labelling import Labeller

    label = Labeller(model, threshold, expected=bytes_to_come(file), threads=cores())
    for batch in plain_texts(_checked(blocks(file)), _STANDARD_INPUT, tally):
        yield batch.texts, label(batch.texts)


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces. Raises DataError where the first one shows that they are no text."""
    for first in pieces:
        try:
            refuse_unsupported(_STANDARD_INPUT, first, first.split(b"\n")[:-1])
        except DataError as error:
            raise DataError(f"{error}; write it to a file, and give that by its name") from None
        yield first
        yield from pieces


def bytes_to_come(file: BinaryIO) -> int:
    """The size of a file; 0 for a pipe or a terminal, whose size is not known."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """What a file has now, up to a megabyte: the line that a person typed, or all that a program has written."""
    with suppress(OSError):  # the file is no pipe
        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _BLOCK_BYTES)  # otherwise a program waits after 64 KiB
    while block := file.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
        yield block
