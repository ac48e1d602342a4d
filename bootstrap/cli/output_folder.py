"""One command at a time writes into a folder of results: it locks the folder itself, so that no file is added.

The lock ends with the process, however that ends. Do not fail where a file system has no such locks, as NFS has none of
folders: there only a warning is possible.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bootstrap.cli.output import print_warning
from common.errors import ShoalError
from common.files import lock
from corpus.reading.s3 import is_s3


@contextmanager
def sole_writer(output: str | Path) -> Iterator[None]:
    """Hold the lock of a folder of results, which is made for that, and removed if it is left empty.

    An address on S3 has no lock. Raises ShoalError where another command writes there.
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
            with suppress(OSError):  # it has what the command wrote
                each.rmdir()
        if handle is not None:
            os.close(handle)


def _locked(folder: Path) -> int | None:
    """The folder, open and locked; None where it cannot be: what needs it then says why it cannot be written."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = lock(folder, is_folder=True)
        except BlockingIOError:
            raise ShoalError(
                f"{folder} is being written by another command; wait until it ends, or choose another --output"
            ) from None
        except OSError as error:
            if os.access(folder, os.R_OK) and folder.is_dir():
                print_warning(f"{folder} cannot be locked ({error.strerror}); run no other command on it meanwhile")
            return None
        if handle is not None:
            return handle
