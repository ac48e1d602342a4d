"""Runs code of a test as another user of this machine."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a folder that all users may write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def as_another(check: Callable[[], bool]) -> bool:
    """Return the result of `check` in a process of another user, if the tests run as root."""
    child = os.fork()
    if not child:
        status = 2
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
