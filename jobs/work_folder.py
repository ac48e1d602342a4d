"""The work folder of a run on this machine: locked by one process, continued by the next, removed at the end.

Rename a folder before it is removed, because a partly removed one would look like finished work. Its name stands for
its input, settings and code, and other users can predict it.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from common.errors import DataError, FinalError, JobError, explain_os_error
from common.private_folders import locked, make_private_folder

_WORK_NAME = re.compile(r"(\.shoal-(?:work-[0-9a-f]{12}|gone-[0-9a-f]{32}))(?:\.lock)?")


@contextmanager
def work_folder(
    home: Path, name: str, has_finished: Callable[[Path], bool], *, private: bool = False
) -> Iterator[Path]:
    """A folder in `home` for the work of this name (12 hexadecimal digits), with what an earlier run of it left.

    It is removed afterwards, and so is an empty `home` that this call created. But where the work fails for a temporary
    reason and `has_finished` returns true, the folder remains, and the error names it. Folders of other work
    in `home` are removed. The folder is private to this user; with `private` so is `home`, for a parent that all users
    may write to. Raises DataError when either cannot be created or is not private, or another process uses the folder.
    """
    folder = home / f".shoal-work-{name}"
    if home.exists() and not home.is_dir():
        raise DataError(f"{home} is a file; choose another --output, a folder")
    was_there = home.exists()
    try:
        with ExitStack() as claim:
            with explain_os_error(DataError, f"cannot write to {home}", "choose another --output"):
                if private:
                    make_private_folder(home, "set TMPDIR to another folder")
                home.mkdir(parents=True, exist_ok=True)
                _remove_leftovers(home, folder)
                free = claim.enter_context(locked(folder))
            if not free:
                raise DataError(
                    f"another run processes the same input in {home}; wait for it, or choose another --output"
                )
            with explain_os_error(DataError, f"cannot write to {home}", "choose another --output"):
                make_private_folder(folder, "choose another --output")
            try:
                yield folder
            except (DataError, JobError) as error:
                if isinstance(error, FinalError) or not has_finished(folder):
                    _remove(folder)
                    raise
                kept = f"; the finished steps remain in {folder}; run it again with the same settings to continue"
                raise type(error)(f"{error}{kept}") from error
            except BaseException:
                _remove(folder)
                raise
            _remove(folder)
    finally:
        if not was_there:
            with suppress(OSError):  # it is not empty
                home.rmdir()


def _remove_leftovers(home: Path, but: Path) -> None:
    for name in {found[1] for path in home.iterdir() if (found := _WORK_NAME.fullmatch(path.name))}:
        if (left := home / name) != but:
            with suppress(OSError), locked(left) as free:  # of another user, or gone meanwhile
                if free:
                    _remove(left)


def _remove(folder: Path) -> None:
    """Rename a folder and remove it, so that a crash leaves nothing that looks like work."""
    gone = folder.with_name(f".shoal-gone-{uuid4().hex}")
    with suppress(FileNotFoundError):
        folder.replace(gone)
        shutil.rmtree(gone, ignore_errors=True)
