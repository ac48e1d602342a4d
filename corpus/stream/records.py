"""Chooses the text fields of a stream's lines from the beginning of its first file, by the rules for review files."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from common.errors import DataError
from corpus.reading.inputs.detect import PARQUET, detect_format
from corpus.reading.inputs.finding import current_files
from corpus.reading.sources import UNLABELLED, ReadingOptions
from corpus.reading.storage import open_blocks


def text_fields(sources: Iterable[str], chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the text fields if the first file has a JSON object per line, or an empty tuple if each line is a text.

    `chosen` has the fields that the user chose; it is returned as long as no file has content. Raises DataError for a
    table, and for ambiguous fields.
    """
    files = (file for address in sources for file in current_files(address) if file.size)
    file = next(files, None)
    block = next(open_blocks(file.address), b"") if file else b""
    if file is None or not block.strip():
        return tuple(chosen)
    if block.lstrip().startswith((b"{", b"[")) or chosen:
        options = ReadingOptions(kind="json" if chosen else None, text=tuple(chosen))
        known = detect_format(file.address, block, len(block) >= file.size, options, UNLABELLED)
        if known is None or known.format.kind == "json":
            return known.format.text if known else tuple(chosen)
    if block.startswith(PARQUET) or _is_table(file.address, block):
        raise DataError(
            f"{file.address} is a table, and its lines are not texts; write its texts to a file, one per line"
        )
    return ()


def _is_table(name: str, block: bytes) -> bool:
    """Return whether a block is the beginning of a table that has a header with known names."""
    with suppress(DataError):
        known = detect_format(name, block, False, ReadingOptions())
        return known is not None and known.format.header
    return False
