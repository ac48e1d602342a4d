"""Refuses tables with a log, which says which files of their folder count: the others hold rows that are removed."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from common.errors import DataError

TABLE_LOGS = {
    # https://github.com/delta-io/delta/blob/master/PROTOCOL.md
    "_delta_log/*": ("Delta Lake", "delta"),
    # https://iceberg.apache.org/spec/#file-system-tables
    "metadata/*.metadata.json": ("Iceberg", "iceberg"),
    # https://hudi.apache.org/tech-specs/
    ".hoodie/hoodie.properties": ("Hudi", "hudi"),
    ".hoodie_partition_metadata*": ("Hudi", "hudi"),
}
"""Files in a table's folder that say which of its files count: the table's format, and what Spark calls it."""

Entry = tuple[str, int, str]
"""The address of a file, its size in bytes, and a value that changes with its content."""


def log_of(address: str) -> str | None:
    """The key of TABLE_LOGS that a file's address matches."""
    return next((log for log in TABLE_LOGS if PurePosixPath(address).match(log)), None)


def without_logs(entries: Sequence[Entry]) -> list[Entry]:
    """The files without the logs of tables. Raises DataError for a file of a table: its rows may have been removed."""
    logs = {name.rsplit("/", 1 + log.count("/"))[0]: log for name, _, _ in entries if (log := log_of(name))}
    taken = [entry for entry in entries if not logs or not log_of(entry[0])]
    for folder, log in logs.items():
        if any(name.startswith(f"{folder}/") and name.endswith(".parquet") for name, _, _ in taken):
            kind, name = TABLE_LOGS[log]
            what, root = ("a table", folder) if "/" in log else ("a part of a table", "TABLE")
            raise DataError(
                f"{folder} is {what} of {kind}, whose files may hold rows that the table has no more; write the rows "
                f'that it has to another folder, such as by Spark: spark.read.format("{name}").load("{root}")'
                '.write.parquet("NEW"), and give that'
            )
    return taken


def logs_above(path: Path) -> list[Path]:
    """The logs of a table that has a file in itself, in `data`, or in a folder for each value of a column."""
    logs = logs_in(path.parent)
    return logs or (logs_above(path.parent) if path.parent.name == "data" or "=" in path.parent.name else [])


def logs_in(folder: Path) -> list[Path]:
    return [found for log in TABLE_LOGS for found in islice(folder.glob(log), 1)]
