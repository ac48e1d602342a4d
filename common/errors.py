"""Errors with a one-sentence message for the user, one class for each kind of failure.

A message can quote untrusted text, such as the name of an object or the error that a node reported. This text must not
look like further messages, so a line break or an escape sequence never reaches the message (`ReportedError`).
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.display import join_lines


class ReportedError(Exception):
    """Base class of errors with a message for the user. Each argument is one line of the message."""

    def __str__(self) -> str:
        return join_lines(map(str, self.args))


class DataError(ReportedError):
    """Input or a dataset is invalid or unreadable. The message names the file and says what to do."""


class TrainingError(ReportedError):
    """Training cannot start or continue. The message says why and what to do."""


class ExperimentError(ReportedError):
    """An experiment file, or a run or prediction of an experiment, is invalid.

    The message names this file, run or prediction, and says what to do.
    """


class ShoalError(ReportedError):
    """A command failed. The message is one sentence for the user."""


class UsageError(ShoalError):
    """The command line is invalid; the exit status is 2."""


class OutputError(ShoalError):
    """Writing to standard output failed. No message is printed if its reader closed the pipe (`is_unread`)."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write to standard output: {error.strerror or error}")
        self.is_unread = isinstance(error, BrokenPipeError)


def is_full_disk(error: BaseException) -> bool:
    """Return whether an error means that the disk is full.

    The errors of HDF5 and safetensors have no `errno`, only the number in the message.
    """
    texts = f"errno = {errno.ENOSPC},", f"os error {errno.ENOSPC})"
    return getattr(error, "errno", None) == errno.ENOSPC or any(text in str(error) for text in texts)


def disk_advice(error: BaseException) -> str:
    """Return what to do about an error of a file."""
    return "free some space" if is_full_disk(error) else "check the path and its permissions"


@contextmanager
def explain_full_disk(path: Path, option: str = "--output") -> Iterator[None]:
    """Convert to a DataError any "no space left" error while `path` is written. The message names `option`."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if not is_full_disk(error):
            raise
        raise DataError(
            f"no space left on the device of {path}; free some space, or choose another {option}"
        ) from error


@contextmanager
def explain_os_error(kind: type[Exception], failed: str, advice: str) -> Iterator[None]:
    """Convert an OSError to an exception of class `kind`, with the message `FAILED: reason of the OSError; ADVICE`."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failed}: {error.strerror or error}; {advice}") from error


def require_rules(*rules: tuple[object, str]) -> None:
    """Raise DataError with the message of the first violated rule. A rule is a condition and its error message."""
    for holds, sentence in rules:
        if not holds:
            raise DataError(sentence)
