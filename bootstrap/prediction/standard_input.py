"""Labels texts from standard input, a text a line; each is labelled before the next one arrives."""

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

from common.cores import cores
from common.errors import DataError
from corpus.reading.inputs.unsupported import refuse_unsupported
from corpus.reading.tally import Tally
from corpus.reading.texts import plain_texts
from trainer.classification.labelling import Labeller, Prediction
from trainer.classification.trained_model import TrainedModel

_BLOCK_BYTES = 1 << 20
_NAME = "standard input"


def label_lines(
    model: TrainedModel, file: BinaryIO, tally: Tally, *, threshold: float
) -> Iterator[tuple[Sequence[str], Sequence[Prediction]]]:
    """Each batch of lines, as they come, with the model's predictions; `tally` counts the lines."""
    label = Labeller(model, threshold, expected=bytes_to_come(file), threads=cores())
    for batch in plain_texts(_checked(blocks(file)), _NAME, tally):
        yield batch.texts, label(batch.texts)


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces. Raises DataError where the first one shows that they are no text."""
    for first in pieces:
        try:
            refuse_unsupported(_NAME, first, first.split(b"\n")[:-1])
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
