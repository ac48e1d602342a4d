"""Refuses files of unsupported formats by their beginning, with a message that says how to convert them.

Without these checks a web page, a JSON array or a file in UTF-16 would be counted as millions of malformed lines.
"""

import re
from collections.abc import Sequence

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
_ARCHIVES = {
    "zip": b"PK\x03\x04",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "rar": b"Rar!\x1a\x07",
    "lz4": b"\x04\x22\x4d\x18",
    "compress (.Z)": b"\x1f\x9d",
    "lzip": b"LZIP",
}
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
_ARCHIVE_NAMES = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|zip|7z|rar|Z|lz4|lzma|br)$")
_UNSUPPORTED = {
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow file",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
    b"\x80\x04": "a Python pickle",
}
_PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml|error)", re.IGNORECASE)
_TAR_MAGIC = slice(257, 262)
_MOST = 0.9
_SHOWN_LETTERS = 60


class BinaryFileError(DataError):
    """A file that is not text, such as a picture: in a folder it is skipped."""


def check_signature(address: str, beginning: bytes) -> None:
    """Raise DataError for a file whose compression does not fit its name, or is not supported.

    `beginning` is the file's first SIGNATURE_BYTES as they are stored.
    """
    packed = compression(address)
    if _ARCHIVE_NAMES.search(address):
        raise DataError(f"{address} is an archive, or has a compression that is not supported; unpack it first")
    for suffix, magic in _SIGNATURES.items():
        if beginning.startswith(magic) and packed != suffix:
            raise DataError(
                f"{address} holds {suffix.lstrip('.')} data, but its name does not say so; rename it to end in {suffix}"
            )
    for kind, magic in _ARCHIVES.items():
        if beginning.startswith(magic):
            raise DataError(f"{address} holds {kind} data, but its name does not say so; unpack it first")
    if packed and not beginning.startswith(_SIGNATURES[packed]) and not _SIGNATURES[packed].startswith(beginning):
        raise DataError(
            f"cannot read {address}: it holds no {packed.lstrip('.')} data, though its name says so; "
            "rename it, or download it again"
        )


def refuse_unsupported(name: str, data: bytes) -> None:
    """Raise DataError for a file that is not text, by its first bytes."""
    for beginning, what in _UNSUPPORTED.items():
        if data.startswith(beginning):
            raise DataError(f"{name} is {what}; export its reviews as JSON lines, CSV or Parquet, and give that")
    if data[_TAR_MAGIC] == b"ustar":
        raise DataError(f"{name} holds a tar archive; unpack it first")
    if data.startswith(_PICTURES):
        raise BinaryFileError(f"{name} is a picture; leave it out")
    if encoding := _utf16(data):
        raise DataError(f"{name} is in UTF-16; give --encoding {encoding}")
    if _PAGE.match(data):
        begins = printable(data.lstrip()[:_SHOWN_LETTERS].decode("utf-8", "replace").splitlines()[0])
        raise DataError(
            f"{name} is a web page or XML ({begins}), not reviews; look at where it came from, and get it again"
        )


def _utf16(data: bytes) -> str | None:
    """The name of the encoding of text in UTF-16; None for anything else."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = data[:1024:2], data[1:1024:2]
    for name, half, other in (("utf-16-be", even, odd), ("utf-16-le", odd, even)):
        if len(half) > 8 and half.count(0) > _MOST * len(half) and not other.count(0):
            return name
    return None


def refuse_undecodable(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError where most of the lines are not UTF-8."""
    broken = sum(not _is_utf8(line) for line in lines)
    if broken > len(lines) / 2 and any(b"\0" in line for line in lines):
        raise BinaryFileError(f"{name} is not UTF-8 text, but a picture or another binary file; leave it out")
    if broken > len(lines) / 2:
        raise DataError(
            f"{name} is not UTF-8 text: {broken} of its first {len(lines)} lines are not; if it is text, give its "
            "--encoding, such as cp1252 for that of Windows in western Europe"
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_array(line: bytes) -> bool:
    from orjson import JSONDecodeError, loads

    try:
        return isinstance(loads(line), list)
    except JSONDecodeError:
        return False


def refuse_other_json(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError for JSON that is not an object a line."""
    first = lines[0].strip()
    if not re.match(rb"\[\s*\{", first) and _is_array(first):
        raise DataError(f"a line of {name} is a JSON array, which names no fields; write an object a line")
    if first == b"{" or (first.startswith(b"{") and first.endswith((b",", b"[", b"{"))):
        raise DataError(
            f"{name} is JSON, but none of its first objects ends; write each review as an object of its own"
        )
    if re.match(rb"\{u?'", first):
        raise DataError(
            f"{name} holds Python's notation, not JSON (its strings are in single quotes); convert it: python3 -c "
            "'import ast, json, sys; [print(json.dumps(ast.literal_eval(line))) for line in sys.stdin]' < OLD > NEW"
        )
