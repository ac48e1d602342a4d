"""Refuses files of unsupported formats by their beginning, with a message that says how to convert them.

Without these checks a web page, a JSON array or a file in UTF-16 would be counted as millions of malformed lines.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from zipfile import BadZipFile, ZipFile

from common.display import printable
from common.errors import DataError
from corpus.reading.compression import ZIP, DamagedArchiveError, compression, zip_member
from corpus.reading.storage import open_range

SIGNATURE_BYTES = 6
"""How many bytes of a file `check_signature` needs."""

QUOTED = re.compile(rb'"(?:[^"]|"")+"')

_SIGNATURES = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
    ZIP: b"PK\x03\x04",
}
_ARCHIVES = {
    "7z": b"7z\xbc\xaf\x27\x1c",
    "rar": b"Rar!\x1a\x07",
    "lz4": b"\x04\x22\x4d\x18",
    "compress (.Z)": b"\x1f\x9d",
    "lzip": b"LZIP",
}
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
# https://www.rfc-editor.org/rfc/rfc8878#name-skippable-frames: pzstd writes one at the start of a file.
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_ARCHIVE_NAMES = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|7z|rar|z|lz4|lzma|br)$", re.IGNORECASE)
_SPREADSHEET_NAMES = re.compile(r"\.(xlsx?|xlsm|xlsb|ods|numbers)$", re.IGNORECASE)
_UNSUPPORTED = {
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
}
_PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml|error)", re.IGNORECASE)
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LIST = re.compile(rb'\s*\{\s*"([^"\\]*)"\s*:\s*\[\s*\{')
"""The beginning of an object whose first field is a list of objects."""
_ANSWER = re.compile(
    rb'[^\t]+(\t[01]\.[0-9]{4})+\t|\{"label": "[^"]*", "probability": [01]\.[0-9]{1,4}, ("probabilities"|"text"): '
)
"""The beginning of a line of bootstrap/cli/answer_lines.py."""
_ISO_2022_JP = b"\x1b$B"
"""The escape sequence that switches to Japanese characters (RFC 1468)."""
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
    if _SPREADSHEET_NAMES.search(address):
        raise DataError(f"{address} is a spreadsheet; save its sheet as CSV in UTF-8, and give that")
    if beginning.startswith(_SIGNATURES[ZIP]):
        _check_zip(address)
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
    if packed == ".zst" and _SKIPPABLE.match(beginning):
        return
    if packed and not beginning.startswith(_SIGNATURES[packed]) and not _SIGNATURES[packed].startswith(beginning):
        raise DataError(
            f"cannot read {address}: it holds no {packed.lstrip('.')} data, though its name says so; "
            "rename it, or download it again"
        )


def _check_zip(address: str) -> None:
    """Raise DataError for a zip archive that is not of one file, and say what is in it."""
    with closing(open_range(address, ahead=0)) as file:
        with suppress(BadZipFile):
            what = "a spreadsheet or another office document"
            if "[Content_Types].xml" in ZipFile(file).namelist():
                raise DataError(f"{address} is {what}; save its sheet as CSV, and give that")
        try:
            zip_member(file)
        except DamagedArchiveError as error:
            raise DataError(
                f"cannot read the zip archive {address}: {error}; give one of a single file, unpack what holds reviews "
                "(unzip -p OLD MEMBER > NEW), or download it again"
            ) from error


def refuse_unsupported(name: str, data: bytes) -> None:
    """Raise DataError for a file that is not text, by its first bytes."""
    for beginning, what in _UNSUPPORTED.items():
        if data.startswith(beginning):
            raise DataError(f"{name} is {what}; export its reviews as JSON lines, CSV or Parquet, and give that")
    inner = next((kind for kind, magic in {**_SIGNATURES, **_ARCHIVES}.items() if data.startswith(magic)), None)
    if inner and compression(name):
        raise DataError(f"{name} is compressed twice: it holds {inner.lstrip('.')} data; unpack it once, and give that")
    if data.startswith(_LFS_POINTER):
        raise DataError(f"{name} is a pointer of Git LFS, not the file that it stands for; get that by git lfs pull")
    if data[_TAR_MAGIC] == b"ustar":
        raise DataError(f"{name} holds a tar archive; unpack it first")
    if data.startswith(_PICTURES):
        raise BinaryFileError(f"{name} is a picture; leave it out")
    _refuse_encoding(name, data)
    if _PAGE.match(data):
        begins = printable(data.lstrip()[:_SHOWN_LETTERS].decode("utf-8", "replace").splitlines()[0])
        raise DataError(
            f"{name} is a web page or XML ({begins}), not reviews; look at where it came from, and get it again"
        )


def _refuse_encoding(name: str, data: bytes) -> None:
    """Raise DataError for text of which the letters or the ends of lines are written in another way."""
    if b"\n" not in data and data.count(b"\r") > 1 and b"\0" not in data:
        raise DataError(f"{name} ends its lines by carriage returns alone; convert it: tr '\\r' '\\n' < OLD > NEW")
    if _ISO_2022_JP in data:
        raise DataError(f"{name} is in ISO-2022-JP; give --encoding iso2022_jp")
    if encoding := _utf32(data) or _utf16(data):
        raise DataError(f"{name} is in {encoding[:6].upper()}; give --encoding {encoding}")


def _utf32(data: bytes) -> str | None:
    """As `_utf16`, for UTF-32, of which the two high bytes are hardly ever used."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    parts = [data[place:1024:4] for place in range(4)]
    for name, (highest, high, _, low) in (("utf-32-be", parts), ("utf-32-le", parts[::-1])):
        if len(highest) > 4 and not any(highest) and high.count(0) > _MOST * len(high) and not low.count(0):
            return name
    return None


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
            "--encoding, such as cp1252 (western Europe), cp1251 (Cyrillic), gb18030 (Chinese) or shift_jis (Japanese)"
        )


def refuse_stream(name: str, data: bytes) -> None:
    """Raise DataError for the beginning of a stream that is no text in UTF-8; only whole lines of it are decoded."""
    try:
        if kind := next((kind for kind, magic in {**_SIGNATURES, **_ARCHIVES}.items() if data.startswith(magic)), None):
            raise DataError(f"{name} holds {kind.lstrip('.')} data, not text")
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


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _loaded(line: bytes) -> object:
    """A line parsed as JSON; None where it is not JSON."""
    from orjson import JSONDecodeError, loads

    try:
        return loads(line)
    except JSONDecodeError:
        return None


def are_quoted(lines: Sequence[bytes]) -> bool:
    """Whether nearly all lines are values in quotes, each with a comma behind it or without one."""
    quoted = sum(QUOTED.fullmatch(line.strip().removesuffix(b",")) is not None for line in lines)
    return quoted >= _MOST * len(lines)


def refuse_quoted_texts(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError for plain texts of which the quotes and brackets belong to another format."""
    listed = re.match(rb'\[\s*("|$)', lines[0].strip())
    if listed or (len(lines) > 2 and are_quoted(lines)):
        what = "a list of strings" if listed else "a table of one column: its lines are in quotes"
        raise DataError(
            f"{name} looks like {what}; give --format csv for a table, write a text a line without quotes, or give "
            "--format text if they belong to the texts"
        )


def refuse_escaped_newlines(name: str, lines: Sequence[bytes], separator: bytes, columns: int) -> None:
    """Raise DataError where a line of columns ends in a backslash, and it or the next one has too few of them."""
    for line, following in pairwise(lines):
        if line.endswith(b"\\") and min(line.count(separator), following.count(separator)) < columns - 1:
            ends = printable(line[-_SHOWN_LETTERS:].decode("utf-8", "replace"))
            # https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-field-line-handling
            raise DataError(
                f"in {name} a newline within a value stands behind a backslash, as in {ends!r}, which is how MySQL "
                "writes tables; write it with FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"'"
            )


def refuse_list_of_reviews(name: str, objects: Sequence[Mapping[str, object]]) -> None:
    """Raise DataError where the only object of a file has a list of objects."""
    for key, value in objects[0].items() if len(objects) == 1 else ():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            raise _list_of_reviews(name, key)


def _list_of_reviews(name: str, key: str) -> DataError:
    return DataError(
        f"{name} is one JSON object with a list of objects in {key!r}; write an object of that a line: "
        f"jq -c '.[{json.dumps(key)}][]' OLD > NEW"
    )


def refuse_other_json(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError for JSON that is not an object a line."""
    first = lines[0].strip()
    if not re.match(rb"\[\s*\{", first) and isinstance(_loaded(first), list):
        raise DataError(f"a line of {name} is a JSON array, which names no fields; write an object a line")
    if (
        first.startswith(b'"')
        and any(b"\\" in line for line in lines)
        and all(isinstance(_loaded(line), str) for line in lines)
    ):
        raise DataError(
            f"each line of {name} is a JSON string, which names no field; write an object a line: "
            "jq -c '{text: .}' OLD > NEW"
        )
    if listed := _LIST.match(b"\n".join(lines)):
        raise _list_of_reviews(name, listed[1].decode("utf-8", "replace"))
    if first == b"{" or (first.startswith(b"{") and first.endswith((b",", b"[", b"{"))):
        raise DataError(
            f"{name} is JSON, but none of its first objects ends; write each review as an object of its own"
        )
    if re.match(rb"\{u?'", first):
        raise DataError(
            f"{name} holds Python's notation, not JSON (its strings are in single quotes); convert it: python3 -c "
            "'import ast, json, sys; [print(json.dumps(ast.literal_eval(line))) for line in sys.stdin]' < OLD > NEW"
        )
