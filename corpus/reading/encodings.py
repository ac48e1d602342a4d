"""Recognises text in other encodings than UTF-8, and refuses it with the command that converts it.

Lines that are not UTF-8 are mostly those with accents. If they were only left out, the rest would be a biased sample.
Which of the encodings with one byte for each letter it is, only a reader can tell, so the message shows a line in the
most frequent of them, CP1252.
"""

import codecs
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from common.display import printable
from common.errors import DataError
from corpus.reading.compression import compression
from corpus.reading.formats import BYTE_ORDER_MARK
from corpus.reading.lines import LongLine, split_lines
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_blocks
from corpus.reading.tally import Tally

STANDARD_INPUT = "standard input"

_NEARLY_ALL = 0.9
_SAMPLE_BYTES = 32 << 10
_MIN_LETTERS = 3
"""Number of different letters in a line of text."""
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Bytes that hardly ever occur in text, but often in random bytes."""
_CODEC = "CP1252"
_MIN_WIDE = 8
"""Number of characters up to which bytes with NUL show no encoding."""
_SHOWN_BEFORE, _SHOWN_LETTERS = 20, 40
_UNPACK = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

# Encodings with ASCII bytes only: RFC 1468, 1554, 1557, 1922 (ISO-2022), 1843 (HZ), 2152 (UTF-7),
# https://www.rfc-editor.org/rfc/rfc1843 etc., 2026-11-30. Python has no codec for ISO-2022-CN.
_ESCAPES = re.compile(rb"\x1b\$[@AB()*+]")
_ISO_2022 = {
    "iso2022_kr": "ISO-2022-KR",
    "iso2022_jp": "ISO-2022-JP",
    "iso2022_jp_2": "ISO-2022-JP-2",
    "iso2022_jp_3": "ISO-2022-JP-3",
}
_HZ = re.compile(rb"~\{(?:[!-w][!-~])+~\}")
# Digits alone are rather a number, as in "+100".
_UTF_7 = re.compile(rb"\+(?![0-9]+\b)[A-Za-z0-9+/]{3,}")
_MIN_UTF_7_SEQUENCES = 3


class EncodingError(DataError):
    """A text is in another encoding than UTF-8. The message has the command that converts it."""


def refuse_wide_or_escaped(name: str, data: bytes) -> None:
    """Raise EncodingError if the beginning of a file is in UTF-16, UTF-32, or an encoding with ASCII bytes only."""
    if encoding := _wide_encoding(data) or _escaped_encoding(data):
        raise EncodingError(f"{name} is in {encoding}, not UTF-8; {_conversion(name, encoding)}")


def refuse_other_encoding(name: str, pieces: Iterable[Sequence[bytes] | LongLine]) -> None:
    """Raise EncodingError if nearly all lines that are not UTF-8 look like text in another encoding.

    `pieces` has the lines of the file `name` in parts, such as those of `split_lines`.
    """
    broken: list[bytes] = []
    room, mixed = _SAMPLE_BYTES, False
    for lines in pieces:
        if isinstance(lines, LongLine):
            continue
        whole = b"\n".join(lines)
        if is_utf8(whole):
            mixed = mixed or not whole.removeprefix(BYTE_ORDER_MARK).isascii()
            continue
        for line in lines:
            if is_utf8(line):
                mixed = mixed or not line.removeprefix(BYTE_ORDER_MARK).isascii()
            elif len(line) <= room:
                broken.append(line)
                room -= len(line)
    foreign = [line.decode(_CODEC, "replace") for line in broken if _is_foreign(line)]
    if not foreign or len(foreign) < _NEARLY_ALL * len(broken):
        return
    first = max(0, next(at for at, letter in enumerate(foreign[0]) if not letter.isascii()) - _SHOWN_BEFORE)
    raise EncodingError(
        f"{name} has lines that are not UTF-8; in {_CODEC}, one reads "
        f"{printable(foreign[0][first : first + _SHOWN_LETTERS])!r}. If that is right, "
        f"{_conversion(name, _CODEC, mixed=mixed)}; otherwise use the encoding of the file in this command"
    )


def check_encoding_of_malformed(tally: Tally) -> None:
    """Raise EncodingError if one encoding explains nearly all lines of a file that were malformed as not UTF-8.

    The file with the first such line is read again.
    """
    place = next((each for each in tally.malformed_lines() if each.reason == "not_utf8"), None)
    # Strings in Parquet declare themselves as UTF-8, so a file with others is damaged.
    if place and not place.file.endswith(".parquet"):
        refuse_other_encoding(place.file, split_lines(open_blocks(place.file)))


def is_utf8(data: bytes, *, whole: bool = True) -> bool:
    """Return whether the bytes are UTF-8. If `whole` is false, the last character may be incomplete."""
    try:
        codecs.utf_8_decode(data, "strict", whole)
    except UnicodeDecodeError:
        return False
    return True


def _can_decode(data: bytes, codec: str, *, whole: bool = True) -> bool:
    """Return whether a codec can decode the bytes. If `whole` is false, the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder(codec)().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True


def _is_foreign(line: bytes) -> bool:
    """Return whether a line that is not UTF-8 looks like text in another encoding, and not like damage.

    In a text that was cut inside a character, most characters outside ASCII are UTF-8.
    """
    damaged = line.decode("utf-8", "replace")
    was_utf8 = sum(not letter.isascii() for letter in damaged) >= 2 * damaged.count("\ufffd")
    letters = {letter for letter in line.decode(_CODEC, "replace") if letter.isalpha()}
    return not was_utf8 and not _CONTROL.search(line) and len(letters) >= _MIN_LETTERS


def _wide_encoding(data: bytes) -> str | None:
    """Return the name of UTF-16 or UTF-32, with or without a byte-order mark, or None."""
    for mark, encoding in ((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32")):
        if data.startswith(mark):
            return encoding
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if b"\0" not in data:
        return None
    ascii_letters = {"": 0}
    for encoding in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE"):
        with suppress(UnicodeDecodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(data)
            if text[_MIN_WIDE:] and all(
                letter in "\t\r\n" or unicodedata.category(letter) not in ("Cc", "Cn", "Co") for letter in {*text}
            ):
                ascii_letters[encoding] = sum(map(str.isascii, text))
    return max(ascii_letters, key=ascii_letters.__getitem__) or None


def _escaped_encoding(data: bytes) -> str | None:
    """Return the name of an encoding that writes all characters as ASCII, or None."""
    if not data.isascii():
        return None
    if _ESCAPES.search(data):
        return next((name for codec, name in _ISO_2022.items() if _can_decode(data, codec, whole=False)), "ISO-2022-CN")
    if _HZ.search(data) and _can_decode(data, "hz", whole=False):
        return "HZ"
    # A UTF-7 encoder writes each plus sign as "+-", so other text is hardly ever UTF-7 in all places.
    if len(_UTF_7.findall(data)) >= _MIN_UTF_7_SEQUENCES and _can_decode(data, "utf-7", whole=False):
        return "UTF-7"
    return None


def _conversion(name: str, encoding: str, *, mixed: bool = False) -> str:
    """Return a clause with the command that converts a file to UTF-8.

    If the file is `mixed`, some of its lines are UTF-8 already, and iconv would garble them.
    """
    convert = f"iconv -f {encoding} -t UTF-8"
    if mixed:
        convert = _python(
            'codecs.register_error("other", lambda error: (error.object[error.start:]'
            f'.decode("{encoding}", "replace"), len(error.object)))',
            'decode("utf-8", "other")',
        )
    elif encoding == "HZ":  # not in the iconv of glibc
        convert = _python("", 'decode("hz")')
    if name == STANDARD_INPUT:
        return f"convert it in the pipe with `{convert}`"
    packed = compression(name)
    folder, slash, base = name.rpartition("/")
    plain = PurePosixPath(base[: -len(packed)] if packed else base)
    new = f"{folder}{slash}{plain.stem}.utf8{plain.suffix}"
    steps = [convert]
    if packed:
        steps.insert(0, f"{_UNPACK[packed]} -dc")
    if is_s3(name):
        command = " | ".join([f"aws s3 cp {shlex.quote(name)} -", *steps, f"aws s3 cp - {shlex.quote(new)}"])
    else:
        steps[0] += f" < {shlex.quote(name)}"
        command = f"{' | '.join(steps)} > {shlex.quote(new)}"
    return f"convert it with `{command}`, and give the new file in place of this one"


def _python(before: str, decode: str) -> str:
    """Return a shell command that decodes each line of its input."""
    code = f"import codecs, sys; {before + '; ' if before else ''}"
    return f"python3 -c '{code}[sys.stdout.buffer.write(line.{decode}.encode()) for line in sys.stdin.buffer]'"
