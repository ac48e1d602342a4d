"""The error of this package, and the message for a full disk."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(Exception):
    """Input or a dataset that cannot be used. Its message is one sentence that names the file and what to do."""


class FinalError(DataError):
    """An error that the same command will raise again, so that finished steps before it are useless."""


def is_full_disk(error: BaseException) -> bool:
    """Whether an error means that the disk is full; HDF5 has the number only in its message."""
    return getattr(error, "errno", None) == errno.ENOSPC or f"errno = {errno.ENOSPC}," in str(error)


@contextmanager
def explain_full_disk(path: Path, option: str = "--output") -> Iterator[None]:
    """Turn any "no space left" error while `path` is written into a DataError that names the option."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if not is_full_disk(error):
            raise
        raise DataError(f"no space left on the device of {path}; free some, or choose another {option}") from error
