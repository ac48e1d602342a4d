"""Splits a JSON array of objects into its elements, in bounded memory.

The array is the whole file, or the only list of objects in the one object of a file, such as `{"reviews": [...]}`.
Several arrays, one after the other, are read like one. This module only finds where elements end. Each element is then
parsed like a line, so the rules for JSON lines hold, and an element with an invalid value does not hide the elements
after it. A parser of whole files, such as ijson, stops at the first error. After an element with invalid syntax, such
as a quote that is not escaped, the ends of elements are uncertain, so `require_syntax` refuses the file.
"""

import json
import re
from collections.abc import Iterator

from common.display import printable
from common.errors import DataError
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError
from corpus.reading.formats import MAX_LINE_BYTES
from corpus.reading.tally import excerpt_of

_SPACE = re.compile(rb"[ \t\r\n]*")
# Loops over strings are unrolled, so that the time is linear in damaged files, too. Possessive quantifiers match
# wrongly before Python 3.11.5 (https://github.com/python/cpython/issues/106052, read on 2026-11-30).
_IN_QUOTES = rb'[^"\\]*(?:\\.[^"\\]*)*'
_STRING = re.compile(rb'"%b"' % _IN_QUOTES, re.DOTALL)
_INSIDE_STRING = re.compile(_IN_QUOTES, re.DOTALL)
_INSIDE_VALUE = re.compile(rb'[^"{}\[\]]*(?:"%b"[^"{}\[\]]*)*' % _IN_QUOTES, re.DOTALL)
_OUTSIDE_VALUE = re.compile(rb'[^"{}\[\],]*(?:"%b"[^"{}\[\],]*)*' % _IN_QUOTES, re.DOTALL)
_MOST_ELEMENTS = 256
_CUT = "the JSON array is not closed"


def require_syntax(element: bytes, name: str, number: int) -> None:
    """Raise DataError if an element that the parser rejects is invalid for another reason than its values."""
    try:
        # Unlike the strict parser, this one accepts NaN, numbers of any size, surrogates and control characters.
        json.loads(element.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        pass  # the brackets are balanced
    except ValueError as error:
        shown = excerpt_of(element)
        raise DataError(
            f"element {number} of the JSON array in {name}, which begins {shown!r}, is not JSON ({error}), so the end "
            "of the element is uncertain; correct the file, or write one object per line"
        ) from None


class ArrayFile:
    """Reader of the elements of a file's JSON array, from the blocks of the file without a byte-order mark."""

    def __init__(self, blocks: Iterator[bytes], name: str) -> None:
        self._blocks, self._name = blocks, name
        self._data, self._at = b"", 0
        self.keys: list[str] = []
        """Keys of the object that contains the array, as far as they were read."""

    def elements(self) -> Iterator[list[bytes]]:
        """Yield the elements in lists.

        Raises DamagedArchiveError after all complete elements if the array is not closed. Raises DataError for another
        list of objects, for other text after the array, and for a value of more than MAX_LINE_BYTES.
        """
        some: list[bytes] = []
        size = 0
        try:
            for element in self._all_elements():
                some.append(element)
                size += len(element)
                if len(some) == _MOST_ELEMENTS or size >= BLOCK_BYTES:
                    yield some
                    some, size = [], 0
        except (DamagedArchiveError, DataError):
            if some:
                yield some
            raise
        if some:
            yield some

    def _all_elements(self) -> Iterator[bytes]:
        if self._next() == b"{":
            self._at += 1
            yield from self._only_list_of_object()
        while self._next() == b"[":
            self._at += 1
            yield from self._list()
        if self._next():
            raise DataError(
                f"{self._name} has other text after its JSON array; remove it, or write one object per line"
            )

    def _only_list_of_object(self) -> Iterator[bytes]:
        found: str | None = None
        while self._next() == b'"':
            self.keys.append(key := self._string())
            if self._next() != b":":
                break
            self._at += 1
            is_list = self._next() == b"["
            self._at += is_list
            if is_list and self._next() == b"{":
                if found is not None:
                    raise DataError(
                        printable(
                            f"{self._name} has two lists of objects, {found!r} and {key!r}; write the one with the "
                            "texts to a file"
                        )
                    )
                found = key
                yield from self._list()
            else:
                self._value(int(is_list))
            if self._next() == b",":
                self._at += 1
        if self._next() != b"}":
            raise DamagedArchiveError(_CUT)
        self._at += 1

    def _list(self) -> Iterator[bytes]:
        """Yield the elements of a list, from the first one to the closing bracket."""
        while True:
            self._next()
            yield self._value(0)
            end = self._next()
            self._at += 1
            if end != b",":
                if end != b"]":
                    raise DamagedArchiveError(_CUT)
                return

    def _value(self, depth: int) -> bytes:
        """Return the bytes before the comma or bracket that ends a value. `depth` brackets of it are already read."""
        scanned, in_string = self._at, False
        while True:
            pattern = _INSIDE_STRING if in_string else _INSIDE_VALUE if depth else _OUTSIDE_VALUE
            scanned = pattern.match(self._data, scanned).end()  # type: ignore[union-attr]
            found = self._data[scanned : scanned + 1]
            if found == b'"':
                in_string = not in_string  # the pattern stops before a string only if its end is not yet read
            elif in_string or not found:  # all is read, perhaps up to a backslash
                self._require_length(scanned - self._at)
                scanned -= self._at
                if not self._read():
                    raise DamagedArchiveError(_CUT)
                continue
            elif found in b"[{":
                depth += 1
            elif depth:
                depth -= 1
            else:
                value, self._at = self._data[self._at : scanned].strip(b" \t\r\n"), scanned
                self._require_length(len(value))
                return value
            scanned += 1

    def _require_length(self, size: int) -> None:
        if size > MAX_LINE_BYTES:
            raise DataError(
                f"{self._name} has a value of more than 4 MiB, which begins {excerpt_of(self._data[self._at :])!r}; "
                "shorten it, or write one object per line"
            )

    def _string(self) -> str:
        while not (found := _STRING.match(self._data, self._at)):
            if len(self._data) - self._at > MAX_LINE_BYTES or not self._read():
                raise DamagedArchiveError(_CUT)
        self._at = found.end()
        return found[0][1:-1].decode("utf-8", "replace")

    def _next(self) -> bytes:
        """Move to the next character that is not white space, and return it, or b"" at the end of the file."""
        while True:
            self._at = _SPACE.match(self._data, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._data) or not self._read():
                return self._data[self._at : self._at + 1]

    def _read(self) -> bool:
        """Append a block to the data after `_at`, which then begin at 0. Return whether there was a block."""
        block = next(self._blocks, b"")
        self._data, self._at = self._data[self._at :] + block, 0
        return bool(block)
