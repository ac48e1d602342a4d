"""Refuses files of unsupported formats by their beginning, with a message that says what to do.

Without these checks a web page, a picture or a file in UTF-16 would be counted as millions of malformed lines.
"""

import codecs
import re
from collections.abc import Sequence
from itertools import pairwise

from common.display import printable
from common.errors import DataError
from corpus.reading.compression import compression

SIGNATURE_BYTES = 6
"""How many bytes of a file `check_signature` needs."""

_SIGNATURES = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
}
# https://www.rfc-editor.org/rfc/rfc8878#name-skippable-frames: pzstd writes one at the start of a file.
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_UNSUPPORTED_NAMES = re.compile(r"\.(zip|tar(\.\w+)?|t[gbx]z2?|7z|rar|z|lz4|lzma|br|xls[xm]?|ods)$", re.IGNORECASE)
_UNSUPPORTED = {
    b"PK\x03\x04": "a zip archive, or an office document",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"\x04\x22\x4d\x18": "an lz4 archive",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow file",
    # https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
    b"\xff\xff\xff\xff": "an Arrow stream",
    b"FEA1": "a Feather file",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
    b"\x80\x04": "a Python pickle",
    # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
    b"version https://git-lfs.github.com/spec/": "a pointer of Git LFS, whose file `git lfs pull` gets",
}
_PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml|error)", re.IGNORECASE)
_ANSWER = re.compile(
    rb'[^\t]+(\t[01]\.[0-9]{4})+\t|\{"label": "[^"]*", "probability": [01]\.[0-9]{1,4}, ("probabilities"|"text"): '
)
"""The beginning of a line of bootstrap/cli/learning/predict.py."""
_SEPARATOR_LINE = re.compile(rb'"?sep=."?\r?')
_TAR_MAGIC = slice(257, 262)
_SHOWN_LETTERS = 60


class BinaryFileError(DataError):
    """A file that is not text, such as a picture: in a folder it is skipped."""


def check_signature(address: str, beginning: bytes) -> None:
    """Raise DataError for a file whose compression does not fit its name, or is not supported.

    `beginning` is the file's first SIGNATURE_BYTES as they are stored.
    """
    if _UNSUPPORTED_NAMES.search(address):
        raise DataError(
            f"{address} is an archive, a spreadsheet, or has a compression that is not supported; unpack it, or save "
            "it as CSV in UTF-8, and give that"
        )
    packed = compression(address)
    found = next((suffix for suffix, magic in _SIGNATURES.items() if beginning.startswith(magic)), None)
    if found and found != packed:
        raise DataError(
            f"{address} holds {found.lstrip('.')} data, but its name does not say so; rename it to end in {found}"
        )
    cut = packed and _SIGNATURES[packed].startswith(beginning)
    if packed and not found and not cut and not (packed == ".zst" and _SKIPPABLE.match(beginning)):
        raise DataError(
            f"cannot read {address}: it holds no {packed.lstrip('.')} data, though its name says so; "
            "rename it, or download it again"
        )


def refuse_unsupported(name: str, data: bytes) -> None:
    """Raise DataError for a file that is not text in UTF-8, by its first bytes."""
    for beginning, what in _UNSUPPORTED.items():
        if data.startswith(beginning):
            raise DataError(f"{name} is {what}; unpack it, or export its reviews as JSON lines, CSV or Parquet")
    if inner := next((kind for kind, magic in _SIGNATURES.items() if data.startswith(magic)), None):
        again = " and is compressed twice" if compression(name) else ""
        raise DataError(f"{name} holds {inner.lstrip('.')} data{again}; unpack it once, and give that")
    if data[_TAR_MAGIC] == b"ustar":
        raise DataError(f"{name} holds a tar archive; unpack it first")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name} is in UTF-16 or UTF-32; give --encoding utf-16 or utf-32")
    begins = data[:1024]
    if b"\0" in begins and (not is_utf8(begins) or 10 * begins.count(0) > len(begins)):
        raise BinaryFileError(
            f"{name} is a picture or another binary file, or text of two or four bytes a letter; leave it out, or give "
            "--encoding, such as utf-16-le"
        )
    if b"\n" not in data and data.count(b"\r") > 1:
        raise DataError(f"{name} ends its lines by carriage returns alone; convert it: tr '\\r' '\\n' < OLD > NEW")
    if _PAGE.match(data):
        shown = printable(data.lstrip()[:_SHOWN_LETTERS].decode("utf-8", "replace").splitlines()[0])
        raise DataError(
            f"{name} is a web page or XML ({shown}), not reviews; look at where it came from, and get it again"
        )


def refuse_undecodable(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError where most of the lines are not UTF-8, or are in ISO-2022-JP."""
    broken = sum(not is_utf8(line, whole=True) for line in lines)
    if broken > len(lines) / 2 or any(b"\x1b$B" in line for line in lines):  # RFC 1468
        raise DataError(
            f"{name} is not UTF-8 text; if it is text, give its --encoding, such as cp1252 (western Europe), cp1251 "
            "(Cyrillic), gb18030 (Chinese), shift_jis or iso2022_jp (Japanese)"
        )


def refuse_stream(name: str, data: bytes) -> None:
    """Raise DataError for the beginning of a stream that is no text in UTF-8; only whole lines of it are decoded."""
    try:
        refuse_unsupported(name, data)
        refuse_undecodable(name, data.split(b"\n")[:-1])
    except DataError as error:
        raise DataError(f"{error}; write it to a file, and give that by its name") from None


def refuse_answers(name: str, lines: Sequence[bytes], fields: Sequence[str]) -> None:
    """Raise DataError where all lines are answers of `shoal predict`, and the user names no fields of them."""
    if not fields and all(map(_ANSWER.match, lines)):
        raise DataError(
            f"{name} holds answers of shoal predict, which no person has checked; leave it out, or name its fields by "
            "--text-field and --label-field"
        )


def refuse_separator_line(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError where the first line tells Excel the separator."""
    if _SEPARATOR_LINE.fullmatch(lines[0]):
        raise DataError(
            f"the first line of {name} is for Excel alone ({printable(lines[0].decode('latin-1'))}); leave it out: "
            "tail -n +2 OLD > NEW"
        )


def refuse_escaped_newlines(name: str, lines: Sequence[bytes], separator: bytes, columns: int) -> None:
    """Raise DataError where a line of columns ends in a backslash, and it or the next one has too few of them."""
    for line, following in pairwise(lines):
        escaped = (len(line) - len(line.rstrip(b"\\"))) % 2
        if escaped and min(line.count(separator), following.count(separator)) < columns - 1:
            ends = printable(line[-_SHOWN_LETTERS:].decode("utf-8", "replace"))
            # https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-field-line-handling
            raise DataError(
                f"in {name} a newline within a value stands behind a backslash, as in {ends!r}, which is how MySQL "
                "writes tables; write it with FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"'"
            )


def is_utf8(data: bytes, *, whole: bool = False) -> bool:
    """Whether these bytes are text in UTF-8, of which the last letter may be cut unless they are `whole`."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True
