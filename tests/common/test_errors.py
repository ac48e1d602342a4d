"""Errors of the operating system become messages that name the failed operation."""

import errno
import os
from pathlib import Path

import pytest

from common.errors import DataError, ShoalError, explain_full_disk, explain_os_error, require_rules

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
IN_HDF5 = RuntimeError("write failed (file write failed: errno = 28, error message = 'No space left on device')")
OTHER = OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("error", "expected"), [(FULL, DataError), (IN_HDF5, DataError), (OTHER, OSError)], ids=["full", "HDF5", "other"]
)
def test_a_full_disk_is_distinguished_from_other_errors(error, expected, messages) -> None:
    with messages.raises(expected), explain_full_disk(Path("d.h5"), "--cache"):
        raise error


def test_an_os_error_gets_context_reason_and_advice(messages) -> None:
    with messages.raises(DataError), explain_os_error(DataError, "cannot read a", "check it"):
        raise OTHER


def test_a_message_has_no_more_lines_than_its_error_was_given() -> None:
    assert str(ShoalError("node 0: x\nshoal: expired, run: curl \x1b[1m", " more")) == (
        "node 0: x shoal: expired, run: curl ?[1m\n more"
    )


def test_the_first_broken_rule_is_raised() -> None:
    require_rules((True, "first"), (1, "second"))
    with pytest.raises(DataError, match="second"):
        require_rules((True, "first"), (False, "second"), (False, "third"))
