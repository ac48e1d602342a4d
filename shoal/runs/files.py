"""Files of a run, in a bucket or folder, and their copy to the output folder of the run."""

import errno
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bootstrap.node.store import Store, StoredFile, ignore
from common.display import size
from common.errors import ShoalError, explain_os_error
from common.names import RUNS
from shoal.aws import checked
from shoal.aws.objects import is_marker
from shoal.aws.paths import path_below
from trainer.output.run_files import RECORD, SUMMARY
from trainer.output.summary import read_summary


@dataclass(frozen=True, kw_only=True)
class Copied:
    """Result of copying the files of a run."""

    output: Path
    source: str
    """Address of the run's folder in the store."""
    files: list[Path] = field(default_factory=list)
    """Files of the run that exist in the output folder after the copy."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags that the objects had in the store before the copy, by file name.

    An object that changes during the copy then has a different tag in the store.
    """
    refused: list[str] = field(default_factory=list)
    """One message for each object that was not copied, because no file of a run has such a name."""
    sizes: list[int] = field(default_factory=list)
    """Sizes in bytes of the newly copied files."""

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """Content of the run's summary, or None. Raises ShoalError if it is invalid."""
        return read_summary(self.output) if self.output / SUMMARY in self.files else None


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """Files of a run in a store."""

    store: Store
    folder: str
    """Common prefix of the files' keys."""
    known: int | None = None
    """Size in bytes of the part of the record that an earlier launch wrote; None to show the whole record."""
    on_copied: Callable[[Copied], None] = lambda _: None
    """Function that is called after the files were copied."""

    @property
    def address(self) -> str:
        return f"{self.store.name}/{self.folder}"

    @property
    def record_key(self) -> str:
        return f"{self.folder}{RECORD}"

    def copy(self, output: Path) -> Copied:
        """Copy the files to the output folder. Raises ShoalError if it is not writable, or the summary is invalid."""
        copied = copy_results(self.store, self.folder.removeprefix(RUNS).rstrip("/"), output)
        _ = copied.summary  # after an error, the run must not count as copied
        self.on_copied(copied)
        return copied


def copy_results(
    store: Store,
    run: str,
    output: Path,
    *,
    into: str = "",
    files: Mapping[str, StoredFile] | None = None,
    skip: bool = False,
    count: Callable[[int], None] = ignore,
) -> Copied:
    """Copy the files of a run to its output folder.

    Args:
        store: The store of the run's files.
        run: The name of the run.
        output: The output folder of the run.
        into: A folder in the output folder, with a final slash (default: the output folder itself).
        files: The files to copy, by name (default: all files of the run).
        skip: Skip files that exist with the same size and modification time in seconds. Do not set it for a run that
        has just ended, because such a run might have written a file twice within one second.
        count: Called with the number of bytes of each copied chunk.

    Raises:
        ShoalError: The output folder is not writable.
    """
    folder = f"{RUNS}{run}/"
    copied = Copied(output=output, source=f"{store.name}/{folder}")
    if files is None:
        files = {key.removeprefix(folder): stored for key, stored in store.list(folder).items()}
    for name, stored in files.items():
        if is_marker(f"{folder}{name}", stored.size):
            continue
        try:
            path = path_below(output, f"{into}{checked.result(name)}")
        except ShoalError as error:
            copied.refused.append(str(error))
            continue
        if stored.size > (most := checked.most_bytes(name)):
            copied.refused.append(f"{name} has {size(stored.size)}, but such a file has at most {size(most)}")
            continue
        if skip and _is_there(path, stored):
            count(stored.size)
        else:
            with explain_os_error(ShoalError, f"cannot write {path}", "free some space, or choose another folder"):
                output.mkdir(parents=True, exist_ok=True)
                if stored.size > shutil.disk_usage(output).free:
                    raise OSError(errno.ENOSPC, f"it has {size(stored.size)}, which the disk does not have")
                store.get(f"{folder}{name}", path, changed=stored.changed, count=count)
            copied.sizes.append(stored.size)
        copied.files.append(path)
        copied.tags[name] = stored.tag
    return copied


def _is_there(path: Path, file: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size and int(path.stat().st_mtime) == int(file.changed)
