"""An object of S3 as a file that can be read across lost connections.

The client's own retries cover the request only, but the connection can be lost hours later, during the body. Then the
rest is requested again, on condition that the object is still the same.
"""

import io
import time
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, cast

from common.errors import DataError
from corpus.reading import s3

if TYPE_CHECKING:
    from botocore.response import StreamingBody

_ATTEMPTS = 8
FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_BUFFER_BYTES = 1 << 20


def open_object(address: str, start: int, ahead: int | None) -> BinaryIO:
    """The object from byte `start` on; see `corpus.reading.storage.open_range`."""
    return cast(BinaryIO, io.BufferedReader(_Object(address, start, ahead), _BUFFER_BYTES))


class _Object(io.RawIOBase):
    """The bytes of an object; seekable. A request is for at least `ahead` bytes; None is for all that follow."""

    def __init__(self, address: str, start: int, ahead: int | None) -> None:
        super().__init__()
        self._address = address
        self._place = s3.place_of(address)
        self._position = start
        self._ahead = ahead
        self._body: StreamingBody | None = None
        with s3.explained_errors(address, "read"):
            head = s3.head(s3.client(), self._place)
        self._size = head["ContentLength"]
        self._etag = head["ETag"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + (0, self._position, self._size)[whence]
        if position != self._position:
            self._drop()
            self._position = position
        return position

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        cause: Exception | None = None
        # One attempt may find the answer at its end, because all of its bytes were read; the next has to give bytes.
        for attempt in range(_ATTEMPTS):
            if self._position >= self._size:
                return 0
            try:
                body = self._body or self._request(len(buffer))
                if data := body.read(len(buffer)):
                    buffer[: len(data)] = data
                    self._position += len(data)
                    return len(data)
            except _cut() as error:
                cause = error
                time.sleep(min(_LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt))
            self._drop()
        raise DataError(
            f"cannot read {self._address}: its connection is lost ({cause}); check the network and run it again"
        ) from cause

    def close(self) -> None:
        self._drop()
        super().close()

    def _request(self, size: int) -> "StreamingBody":
        last = self._size if self._ahead is None else min(self._size, self._position + max(size, self._ahead))
        with s3.explained_errors(self._address, "read"):
            self._body = s3.get(s3.client(), self._place, self._position, last, etag=self._etag)
        return self._body

    def _drop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


@cache
def _cut() -> tuple[type[Exception], ...]:
    """The errors that a lost connection can raise."""
    from botocore.exceptions import HTTPClientError, IncompleteReadError
    from urllib3.exceptions import HTTPError

    return HTTPClientError, IncompleteReadError, HTTPError, ConnectionError, TimeoutError
