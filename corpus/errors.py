"""The error of this package: data that cannot be used as it is, and a disk that cannot take more of them."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(Exception):
    """Input or a dataset that cannot be used; its text is one sentence for the user, with the file and a way out."""


def is_full_disk(error: BaseException) -> bool:
    """Whether an error says that the disk is full; HDF5 says so in its text alone."""
    return getattr(error, "errno", None) == errno.ENOSPC or f"errno = {errno.ENOSPC}," in str(error)


@contextmanager
def explain_full_disk(path: Path, option: str = "--output") -> Iterator[None]:
    """Turn "no space left" while `path` is written, however it is worded, into a sentence that names the option."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if not is_full_disk(error):
            raise
        raise DataError(f"no space left on the device of {path}; free some, or choose another {option}") from error
