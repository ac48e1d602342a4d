"""Defines the parts of a stream. A part is a file of rows of words, which a reader writes for trainers.

Each row has `ROW_TOKENS` tokens, and each part has the same number of rows, so that trainers know the size of parts
that do not exist yet. The text is one sequence of words and end-of-line tokens, which is cut into rows. If the sources
end or have no new lines for some time, the rest of the part is padded with end-of-line tokens. A part also contains the
reader's position in its sources after the part.

A token is a number in the part's own list of words. So readers need no common vocabulary, and are independent of each
other.

The file of a part is a zip archive of NumPy arrays (.npz). It is written under a temporary name and then renamed, so
that an incomplete part is never visible. The checksums of zip detect damage. The content is checked nevertheless,
because another machine might have written it to a shared file system.
"""

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from common.checked_values import within
from common.errors import DataError
from common.files import read_regular, write_whole
from common.json_values import from_json, parse_json_object

ROW_TOKENS = 128
END_OF_LINE = 0
FIRST_WORD = 1
"""Token of the first word of a part."""

_FORMAT = 1
_NAME = re.compile(r"part-([0-9]{9})\.npz")

Tokens = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
_Count = Annotated[int, within(0, 1 << 62)]


@dataclass(frozen=True, kw_only=True)
class Position:
    """Progress of a reader in its sources, since its first start."""

    offsets: Mapping[str, _Count] = field(default_factory=dict)
    """For each file or object, the number of its bytes that are in this part and earlier parts."""
    lines: _Count = 0
    words: _Count = 0
    text_bytes: _Count = 0
    malformed: _Count = 0
    """Number of malformed lines, which were skipped."""
    begun: Mapping[str, _Count] = field(default_factory=dict)
    """For each file in which the part ends inside a line, the number of this line's tokens that are in parts."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """ETag of each object. An offset is valid only for the object with this ETag."""
    ended: tuple[str, ...] = ()
    """Addresses of compressed files that were read to their end."""


@dataclass(frozen=True, kw_only=True)
class Part:
    number: int
    """Number of the part among the parts of its reader, from 0."""
    words: tuple[str, ...]
    """Distinct words. The first word has the token `FIRST_WORD`."""
    counts: Counts
    """Number of occurrences of each word; shape (words,)."""
    tokens: Tokens
    """Tokens; shape (rows, ROW_TOKENS)."""
    after: Position
    """Position of the reader after this part."""


def part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:09}.npz"


def part_numbers(folder: Path) -> list[int]:
    """Return the numbers of the parts in a reader's folder, ascending. A missing folder is treated as an empty one."""
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    return sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)


def write_part(folder: Path, part: Part) -> None:
    """Write a part to its reader's folder, completely or not at all. Raises OSError."""
    header = {"format": _FORMAT, "number": part.number, "after": asdict(part.after)}
    content = io.BytesIO()
    np.savez(
        content,
        head=np.frombuffer(json.dumps(header).encode(), np.uint8),
        words=np.frombuffer("\n".join(part.words).encode(), np.uint8),
        counts=part.counts.astype("<i8"),
        tokens=part.tokens.astype("<i4"),
    )
    write_whole(part_path(folder, part.number), content.getbuffer())


def read_part(path: Path) -> Part:
    """Read a part.

    Raises DataError if the file is not a complete part in the current format, and OSError if it is unreadable.
    """
    content = read_regular(path)  # np.load might not close the file after an error
    try:
        if any(each.compress_type != zipfile.ZIP_STORED for each in zipfile.ZipFile(io.BytesIO(content)).infolist()):
            raise DataError("it is compressed")  # a small compressed file could fill the memory
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            head, words, counts, tokens = (arrays[name] for name in ("head", "words", "counts", "tokens"))
        header = parse_json_object(head.astype(np.uint8).tobytes().decode())
        part = Part(
            number=header["number"],
            words=tuple(words.astype(np.uint8).tobytes().decode().split("\n")) if len(words) else (),
            counts=counts.astype(np.int64),
            tokens=tokens.astype(np.int32),
            after=from_json(Position, header["after"]),
        )
    except (
        zipfile.BadZipFile,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        MemoryError,
        DataError,
    ) as error:
        raise DataError(
            f"{path} is not a complete part of a stream: {error}; remove its folder, and start the reader again"
        ) from error
    if rule := _violated_rule(part, header.get("format"), path):
        raise DataError(
            f"{path} is not a part of a stream of this version: {rule}; remove its folder, and start the reader again"
        )
    return part


def _violated_rule(part: Part, version: Any, path: Path) -> str | None:
    """Return a clause about the first rule that a part violates, or None for a valid part."""
    tokens = part.tokens
    rules = (
        (version == _FORMAT, f"it is not of format {_FORMAT}"),
        (
            part_path(path.parent, part.number) == path if isinstance(part.number, int) else False,
            "its name does not match its number",
        ),
        (tokens.ndim == 2 and tokens.shape[1:] == (ROW_TOKENS,), f"its rows do not have {ROW_TOKENS} tokens"),
        (len(tokens) > 0, "it has no rows"),
        (part.counts.shape == (len(part.words),), "its words and their counts differ in number"),
        (len(set(part.words)) == len(part.words), "it repeats a word"),
        (all(part.words), "it has an empty word"),
    )
    for holds, sentence in rules:
        if not holds:
            return sentence
    if tokens.min() < 0 or tokens.max() >= len(part.words) + FIRST_WORD:
        return "it has tokens without words"
    return None if (part.counts > 0).all() else "it has words that do not occur"
