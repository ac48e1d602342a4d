"""Decompresses files in bounded memory: all members of .gz, .bz2 and .xz files, and all frames of .zst files.

Do not use the standard library's file objects, which can lose buffered bytes if the data are damaged. The functions of
this module yield all data before the damage, then raise an exception.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

_READ_BYTES = 64 << 10
# Small, so that a block, its lines and their texts fit into the cache of one core.
BLOCK_BYTES = 128 << 10
_XZ_BYTES = 1 << 30
"""Memory limit of the xz decoder, in bytes. Files of `xz -9` need 65 MiB (man xz). The format allows up to 4 GiB."""


class DamagedArchiveError(Exception):
    """The compressed data are damaged or end too early."""

    advice = "copy the file again"


class ArchiveMemoryError(DamagedArchiveError):
    """Decompression needs more than _XZ_BYTES of memory."""

    advice = "decompress it with `xz --decompress`, and give the result"


class _Decoder(Protocol):
    """Common interface of the standard library's decompressors. A decoder decompresses one member of a file."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """Adapter that gives zlib's decompressor the interface of the other decoders."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        block = self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)
        self.needs_input = not self._decoder.unconsumed_tail
        return block


def _zstd() -> _Decoder:
    from backports import zstd

    # The default limit on the window of Zstandard is 2 ** 27 bytes
    # (https://docs.python.org/3.14/library/compression.zstd.html). A larger limit uses no memory until the data fill
    # the window.
    largest = zstd.DecompressionParameter.window_log_max
    return zstd.ZstdDecompressor(options={largest: largest.bounds()[1]})


def _xz() -> _Decoder:
    return lzma.LZMADecompressor(memlimit=_XZ_BYTES)


COMPRESSIONS: dict[str, Callable[[], _Decoder]] = {
    ".gz": _Gzip,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": _xz,
    ".zst": _zstd,
}


def compression(address: str) -> str | None:
    """Return the suffix of a compressed file's name, such as `.gz`, or None for an uncompressed file."""
    suffix = PurePosixPath(address).suffix.lower()
    return suffix if suffix in COMPRESSIONS else None


def decompress(file: BinaryIO, suffix: str) -> Iterator[bytes]:
    """Yield the content of a compressed file in blocks of at most 256 KiB.

    Raises DamagedArchiveError after it yielded all data before the damage.
    """
    pending = b""
    try:
        for block in _members(file, suffix):
            # Join small blocks, because a file can have many small members.
            pending = pending + block if pending else block
            if len(pending) >= BLOCK_BYTES:
                yield pending
                pending = b""
    except DamagedArchiveError:
        if pending:
            yield pending
        raise
    if pending:
        yield pending


def _members(file: BinaryIO, suffix: str) -> Iterator[bytes]:
    new_decoder = COMPRESSIONS[suffix]
    decoder = new_decoder()
    started = is_full = False
    data = b""
    while True:
        # After a full block, a decoder can have more output even if it reports that it needs input.
        if decoder.needs_input and not data and not is_full:
            data = file.read(_READ_BYTES)
            if not data:
                if started:
                    raise DamagedArchiveError("the compressed data end too early")
                return
        if not started and suffix in (".gz", ".xz"):
            data = data.lstrip(b"\0")  # on tapes and in xz files, zeros can follow a member
            if not data:
                continue
        started = True
        block = _decompress(decoder, data)
        data = b""
        is_full = len(block) == BLOCK_BYTES and not decoder.eof
        if block:
            yield block
        if decoder.eof:
            data = decoder.unused_data
            decoder = new_decoder()
            started = False


def _decompress(decoder: _Decoder, data: bytes) -> bytes:
    try:
        return decoder.decompress(data, BLOCK_BYTES)
    except Exception as error:  # each library raises exceptions of a different class
        # liblzma's LZMA_MEMLIMIT_ERROR has this text in Python (Modules/_lzmamodule.c,
        # https://github.com/python/cpython/blob/v3.11.7/Modules/_lzmamodule.c, read on 2026-11-30)
        if "Memory usage limit exceeded" in str(error):
            raise ArchiveMemoryError(f"decompression needs more than {_XZ_BYTES >> 20:,} MiB of memory") from error
        raise DamagedArchiveError(f"the compressed data are damaged: {error}") from error
