"""Defines the part of a stream: a file of rows of words that a reader writes for trainers, with the source position
after it.

Each row has `ROW_TOKENS` tokens, and each part has the same number of rows. Text is one sequence of words and ends of
lines, cut into rows. If a source ends or is silent for long, the last rows are padded with ends of lines. So trainers
know the size of parts that do not yet exist.

Tokens are numbers of the part's own words. So readers need no vocabulary and are independent of each other.

A part is a zip archive of NumPy (.npz). It is written under another name and then renamed, so that no half part is
visible; checksums of zip detect damage. Its content is checked nevertheless: it may come from another machine, through
a share.
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

from common.errors import DataError
from common.files import write_whole
from common.json_values import from_json, parse_json_object, within

ROW_TOKENS = 128
END_OF_LINE = 0
FIRST_WORD = 1
"""Token of the first word of a part."""

_FORMAT = 1
_NAME = re.compile(r"part-([0-9]{9})\.npz")
_MAX_WORD_CHARACTERS = 1000
_MAX_ROWS = 1 << 22

Tokens = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
_Count = Annotated[int, within(0, 1 << 62)]


@dataclass(frozen=True, kw_only=True)
class Position:
    """Progress of a reader in its sources since its very first start."""

    offsets: Mapping[str, _Count] = field(default_factory=dict)
    """For each file or object, the number of its bytes in this part or an earlier one."""
    lines: _Count = 0
    words: _Count = 0
    text_bytes: _Count = 0
    malformed: _Count = 0
    """Lines that were skipped."""
    begun: Mapping[str, _Count] = field(default_factory=dict)
    """For each source with a line that a part cut at its end: the number of the line's tokens in parts.
    """
    identities: Mapping[str, str] = field(default_factory=dict)
    """ETag of each object; an offset is meaningless in another object."""
    ended: tuple[str, ...] = ()
    """Compressed files that were read to their end."""


@dataclass(frozen=True, kw_only=True)
class Part:
    number: int
    """Number of the part among those of its reader, from 0."""
    words: tuple[str, ...]
    """Distinct words. The first one has the token `FIRST_WORD`."""
    counts: Counts
    """Occurrences of each word; shape (words,)."""
    tokens: Tokens
    """Tokens; shape (rows, ROW_TOKENS)."""
    after: Position
    """Position of the reader after this part."""


def part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:09}.npz"


def part_numbers(folder: Path) -> list[int]:
    """Return the numbers of the parts in a reader's folder, ascending; empty if the folder does not exist."""
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
    """Read a part. Raises DataError if the file is not a complete part of this version, and OSError."""
    content = path.read_bytes()  # np.load may leave a path open after an error
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
    """Return a clause about the first rule that a part violates, or None."""
    tokens = part.tokens
    rules = (
        (version == _FORMAT, f"it is not of format {_FORMAT}"),
        (
            part_path(path.parent, part.number) == path if isinstance(part.number, int) else False,
            "its name does not match its number",
        ),
        (tokens.ndim == 2 and tokens.shape[1:] == (ROW_TOKENS,), f"its rows do not have {ROW_TOKENS} tokens"),
        (0 < len(tokens) <= _MAX_ROWS, f"it has {len(tokens):,} rows"),
        (part.counts.shape == (len(part.words),), "its words and their counts differ in number"),
        (len(set(part.words)) == len(part.words), "it repeats a word"),
        (all(0 < len(word) <= _MAX_WORD_CHARACTERS for word in part.words), "it has an empty or a too long word"),
    )
    for holds, sentence in rules:
        if not holds:
            return sentence
    if tokens.min() < 0 or tokens.max() >= len(part.words) + FIRST_WORD:
        return "it has tokens without words"
    return None if (part.counts > 0).all() else "it has words that do not occur"
