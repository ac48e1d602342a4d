"""Recognises text in other encodings than UTF-8, and refuses it with the command that converts it.

Lines that are not UTF-8 are mostly those with accents. If they were only left out, the rest would be a biased sample.
Which of the encodings with one byte for each letter it is, only a reader can tell, so the message shows a line in the
most frequent of them, CP1252.
"""

import codecs
import re
from collections.abc import Iterable, Sequence

from common.display import printable
from common.errors import DataError
from corpus.reading.formats import BYTE_ORDER_MARK
from corpus.reading.lines import LongLine, split_lines
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
_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
"""Byte-order marks. That of UTF-32 can begin like that of UTF-16."""
_SHOWN_BEFORE, _SHOWN_LETTERS = 20, 40

# Escape sequences of RFC 1468 (Japanese) and RFC 1557 (Korean). Texts in these encodings have ASCII bytes only
# (https://www.rfc-editor.org/rfc/rfc1468 etc., 2026-11-30).
_ISO_2022 = {"ISO-2022-KR": b"\x1b$)C", "ISO-2022-JP": b"\x1b$"}


class EncodingError(DataError):
    """A text is in another encoding than UTF-8. The message has the command that converts it."""


def refuse_marked_encoding(name: str, data: bytes) -> None:
    """Raise EncodingError if the beginning of a file is in UTF-16 or UTF-32 with a byte-order mark, or in ISO-2022."""
    encoding = next((name for name, mark in _MARKS.items() if data.startswith(mark)), None)
    if encoding is None and data.isascii():
        encoding = next((name for name, escape in _ISO_2022.items() if escape in data), None)
    if encoding is not None:
        raise EncodingError(f"{name} is in {encoding}, not UTF-8; convert it with `iconv -f {encoding} -t UTF-8`")


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
    command = f"`iconv -f {_CODEC} -t UTF-8`"
    raise EncodingError(
        f"{name} has lines that are not UTF-8; in {_CODEC}, one reads "
        f"{printable(foreign[0][first : first + _SHOWN_LETTERS])!r}. If that is right, convert "
        f"{f'only such lines with {command}, because others are UTF-8' if mixed else f'it with {command}'}; otherwise "
        "use the encoding of the file in this command"
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


def _is_foreign(line: bytes) -> bool:
    """Return whether a line that is not UTF-8 looks like text in another encoding, and not like damage.

    In a text that was cut inside a character, most characters outside ASCII are UTF-8.
    """
    damaged = line.decode("utf-8", "replace")
    was_utf8 = sum(not letter.isascii() for letter in damaged) >= 2 * damaged.count("\ufffd")
    letters = {letter for letter in line.decode(_CODEC, "replace") if letter.isalpha()}
    return not was_utf8 and not _CONTROL.search(line) and len(letters) >= _MIN_LETTERS
