"""Ensures that only one command at a time writes into an output folder.

The lock is on the folder itself, so no lock file is needed. The first rank of a run shares the lock, so the folder is
locked until both the command and the rank have exited. If a file system does not support locks on folders (NFS), print
a warning instead of failing.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.errors import ShoalError
from common.files import lock
from common.starter import END_SECONDS
from corpus.reading.s3 import is_s3
from shoal.cli.output import print_warning


@contextmanager
def sole_writer(output: str | Path) -> Iterator[None]:
    """Lock an output folder during the block. Creates a missing folder, and removes it if it is empty afterwards.

    Does nothing for an S3 address. Raises ShoalError if another command holds the lock.
    """
    if is_s3(str(output)):
        yield
        return
    folder = Path(output).absolute()
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    handle = _locked(folder)
    try:
        yield
    finally:
        for each in made:
            with suppress(OSError):  # not empty
                each.rmdir()
        if handle is not None:
            os.close(handle)


def _locked(folder: Path) -> int | None:
    """Open and lock the folder; return its file descriptor.

    Returns None if creating or locking the folder fails. A missing permission is then reported by the first write.
    """
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = lock(folder, is_folder=True)  # exclusive, so it waits for the ranks of a killed command
            if handle is not None:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ShoalError(
                f"another command or its run is writing to {folder}; wait until it has finished (the run of a killed "
                f"command ends within {2 * END_SECONDS} seconds), or choose another --output"
            ) from None
        except OSError as error:
            if os.access(folder, os.R_OK) and folder.is_dir():
                print_warning(
                    f"cannot lock {folder} ({error.strerror}); do not start another command that writes there"
                )
            return None
        if handle is not None:
            return handle
