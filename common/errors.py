"""The errors whose text is one sentence for the user, by what failed, and the message for a full disk."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(Exception):
    """Input or a dataset that cannot be used. Its message is one sentence that names the file and what to do."""


class JobError(Exception):
    """A job failed for another reason than its input. Its message is one sentence for the user."""


class TrainingError(Exception):
    """Training cannot start or continue. The text is one sentence for the user, with the cause and what to do."""


class ExperimentError(Exception):
    """An input that cannot be used; the message is a sentence for the user, which names it and says what to do."""


class ShoalError(Exception):
    """Something failed; the text is one sentence for the user."""


class UsageError(ShoalError):
    """The arguments do not fit together; the exit status is 2."""


class OutputError(ShoalError):
    """Standard output cannot be written, or nobody reads it any more, which needs no sentence."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror or error}")
        self.is_unread = isinstance(error, BrokenPipeError)


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


@contextmanager
def explain_os_error(kind: type[Exception], failed: str, advice: str) -> Iterator[None]:
    """Turn an OSError into an error of this kind, of which the sentence says what failed, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failed}: {error.strerror or error}; {advice}") from error


def require_rules(*rules: tuple[object, str]) -> None:
    """Raise DataError with the sentence of the first rule that does not hold."""
    for holds, sentence in rules:
        if not holds:
            raise DataError(sentence)
