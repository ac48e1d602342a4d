"""`python -m shoal_local_aws.hadoop.shell`: the commands of `hadoop fs` that copy, list and remove files.

Messages and exit codes are those of "Apache Hadoop 3.4.1: FileSystem Shell".
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.hadoop.paths import Entry, Files, make_folder


def main() -> int:
    command, *words = sys.argv[1:] or [""]
    options = {word for word in words if word.startswith("-")}
    paths = [word for word in words if word not in options]
    files = Files()
    try:
        if command == "-put":
            *sources, target = paths
            for source in sources:
                files.put(Path(source), target)
        elif command in _COMMANDS:
            for path in paths:
                _COMMANDS[command](files, path, options)
        else:
            raise EmulatorError(f"the embedded Hadoop does not support the command fs {command}")
    except EmulatorError as error:
        sys.stderr.write(f"{command.removeprefix('-')}: {error}\n")
        return 1
    return 0


def _existing(files: Files, path: str) -> Entry:
    entry = files.find(path)
    if entry is None:
        raise EmulatorError(f"`{path}': No such file or directory")
    return entry


def _below(files: Files, entry: Entry, *, deep: bool) -> Iterator[Entry]:
    """Yield a file, or the content of a folder; with `deep`, also that of all folders in it."""
    if not entry.folder:
        yield entry
        return
    for child in files.children(entry.path):
        yield child
        if deep and child.folder:
            yield from _below(files, child, deep=True)


def _remove(files: Files, path: str, options: set[str]) -> None:
    if (entry := files.find(path)) is None and "-f" in options:
        return
    entry = entry or _existing(files, path)
    if entry.folder and not options & {"-R", "-r"}:
        raise EmulatorError(f"`{path}': Is a directory")
    for each in list(_below(files, entry, deep=True)):
        if not each.folder:
            files.remove(each.path)


def _list(files: Files, path: str, options: set[str]) -> None:
    for entry in _below(files, _existing(files, path), deep="-R" in options):
        mode, replicas = ("drwxr-xr-x", "-") if entry.folder else ("-rw-r--r--", "1")
        sys.stdout.write(f"{mode}   {replicas} hadoop hadoop {entry.size:>10} 2026-01-01 00:00 {entry.path}\n")


def _cat(files: Files, path: str, _: set[str]) -> None:
    with files.open(_existing(files, path).path) as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


_COMMANDS = {"-cat": _cat, "-ls": _list, "-mkdir": lambda _files, path, _options: make_folder(path), "-rm": _remove}

if __name__ == "__main__":
    sys.exit(main())
