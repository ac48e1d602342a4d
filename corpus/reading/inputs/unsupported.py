"""Recognises files of unsupported formats by their beginnings, and rejects them with a message that says what to do.

Without these checks, an image or a file in UTF-16 would count as millions of malformed lines.
"""

import re
from collections.abc import Sequence

from common.errors import DataError
from corpus.reading.compression import compression
from corpus.reading.encodings import is_utf8, refuse_marked_encoding, refuse_other_encoding
from corpus.reading.lines import CONVERT_RETURNS

SIGNATURE_BYTES = 6
"""Number of bytes from the start of a file that `check_signature` needs."""

_SIGNATURES = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
}
# https://www.rfc-editor.org/rfc/rfc8878#name-skippable-frames: pzstd writes a skippable frame at the start of a file.
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_UNSUPPORTED_NAMES = re.compile(r"\.(zip|tar(\.\w+)?|t[gbx]z2?|7z|rar|z|lz4|lzma|br|xls[xm]?|ods)$", re.IGNORECASE)
_FOREIGN = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<(!doctype|html|head|\?xml|error)|%PDF|version https://git-lfs)", re.IGNORECASE
)
_TAG = re.compile(rb"\s*<(/?)[A-Za-z_][\w.:-]*(\s[^<>]*)?>\s*")
_ARCHIVES = (*_SIGNATURES.values(), b"PK\x03\x04")
_TAR_MAGIC = slice(257, 262)
_MAX_RETURNS = 0.05
"""Maximum number of carriage returns for each line of plain text."""
_READ = (
    "convert it to JSON lines, CSV, TSV, fastText or plain text in UTF-8 (uncompressed, .gz, .bz2, .xz or .zst), or "
    "to Parquet"
)


class BinaryFileError(DataError):
    """The file is not text, but an image, for example. Such a file is skipped if it was found in a folder."""


def check_signature(address: str, beginning: bytes) -> None:
    """Raise DataError if the compression of a file is not supported or does not match the file's name.

    `beginning` has the first SIGNATURE_BYTES of the file as it is stored.
    """
    if _UNSUPPORTED_NAMES.search(address):
        raise DataError(f"{address} is an archive, a spreadsheet, or has an unsupported compression; {_READ}")
    packed = compression(address)
    found = next((suffix for suffix, magic in _SIGNATURES.items() if beginning.startswith(magic)), None)
    if found and found != packed:
        raise DataError(f"{address} contains {found.lstrip('.')} data, but its name does not end in {found}; rename it")
    cut = packed and _SIGNATURES[packed].startswith(beginning)
    if packed and not found and not cut and not (packed == ".zst" and _SKIPPABLE.match(beginning)):
        raise DataError(
            f"cannot read {address}: its name ends in {packed}, but it does not contain {packed.lstrip('.')} data; "
            "rename it, or download it again"
        )


def refuse_unsupported(name: str, data: bytes, lines: Sequence[bytes]) -> None:
    """Raise DataError if a file is not text in UTF-8, or is text that cannot contain reviews, such as a web page.

    `data` is the decompressed beginning of the file, and `lines` has the complete lines in it.
    """
    begins = data[:1024]
    if data.startswith(_ARCHIVES) or data[_TAR_MAGIC] == b"ustar":
        raise DataError(f"{name} is an archive, or is compressed twice; unpack it once, and give the result")
    refuse_marked_encoding(name, data)
    if b"\0" in begins and (not is_utf8(begins, whole=False) or 10 * begins.count(0) > len(begins)):
        raise BinaryFileError(f"{name} is an image or another binary file, not text; leave it out, or {_READ}")
    if _FOREIGN.match(begins) or _are_elements(lines):
        raise DataError(
            f"{name} is a web page, XML, PDF or a Git LFS pointer, not reviews; download the file again, or {_READ}"
        )
    newlines = data.rstrip(b"\r\n").count(b"\n")
    if data.count(b"\r") - data.count(b"\r\n") > max(1, 20 * newlines):
        raise DataError(f"{name} ends its lines with carriage returns only; {CONVERT_RETURNS}")
    refuse_other_encoding(name, [lines])
    if sum(not is_utf8(line) for line in lines) > len(lines) / 2:
        raise DataError(f"{name} is not text in UTF-8, nor in another common encoding; leave it out, or {_READ}")


def refuse_joined_texts(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError if carriage returns are so frequent in plain text that they probably end lines."""
    if sum(line.rstrip(b"\r").count(b"\r") for line in lines) > max(1, _MAX_RETURNS * len(lines)):
        raise DataError(f"many lines of {name} end with carriage returns only; {CONVERT_RETURNS}")


def _are_elements(lines: Sequence[bytes]) -> bool:
    """Return whether the first line is an opening tag, and a later line a closing tag, as in XML without a head."""
    tags = [found[1] for line in lines if (found := _TAG.fullmatch(line))]
    return tags[:1] == [b""] and _TAG.fullmatch(lines[0]) is not None and b"/" in tags
