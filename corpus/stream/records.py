"""Chooses the text fields of a stream's lines from the beginnings of its files, by the rules for review files."""

from collections.abc import Iterable, Sequence

from common.errors import DataError
from corpus.reading.compression import BLOCK_BYTES
from corpus.reading.inputs.detect import PARQUET, UnclearFormatError, detect_format, has_table_name
from corpus.reading.inputs.finding import current_files
from corpus.reading.inputs.unsupported import BinaryFileError
from corpus.reading.sources import UNLABELLED, ReadingOptions
from corpus.reading.storage import open_blocks

_FILES = 20


def text_fields(sources: Iterable[str], chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the text fields if the files have a JSON object per line, or an empty tuple if each line is a text.

    At most 20 files are inspected. `chosen` has the fields that the user chose; it is returned as long as no file has
    content. Raises DataError for tables and other records, for ambiguous fields, and if files differ.
    """
    files = [file for address in sources for file in current_files(address) if file.size]
    found: dict[tuple[str, ...], str] = {}
    for file in files[:: -(-len(files) // _FILES) or 1]:
        fields = _fields_of(file.address, chosen)
        if fields is not None:
            found.setdefault(fields, file.address)
    if len(found) > 1:
        (one, first), (other, second), *_ = ((", ".join(each) or "the whole line", of) for each, of in found.items())
        raise DataError(
            f"the text of {first} is {one}, but that of {second} is {other}; learn from files of one kind, or name a "
            "common field with --text-field"
        )
    return next(iter(found), tuple(chosen))


def _fields_of(address: str, chosen: Sequence[str]) -> tuple[str, ...] | None:
    """Return the text fields of a file, or None if the file has no text at its beginning."""
    block = next(open_blocks(address), b"")
    if not block.strip():
        return None
    if block.startswith(PARQUET) or (has_table_name(address) and not chosen):
        raise _table(address)
    options = ReadingOptions(kind="json" if chosen else None, text=tuple(chosen))
    try:
        known = detect_format(address, block, len(block) < BLOCK_BYTES, options, UNLABELLED)
    except BinaryFileError:
        return None  # the reader counts its lines as malformed
    except UnclearFormatError:
        raise _table(address) from None
    kind = known.format.kind if known else "text"
    if kind == "array":
        raise DataError(f"{address} is a JSON array; write one object per line")
    if kind == "fasttext":
        raise DataError(f"{address} has labels of fastText, which are not words; remove them")
    if known is None or kind in ("json", "text"):
        return known.format.text if known else tuple(chosen)
    raise _table(address)


def _table(address: str) -> DataError:
    return DataError(f"{address} is a table, and its lines are not texts; write its texts to a file, one per line")
