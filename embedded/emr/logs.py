"""Uploads the logs of a cluster's steps, bootstrap actions and tasks to the places where EMR puts them.

The standard error of a task is only in the log of its container, never in the log of its step.
"""

import gzip
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from embedded.hadoop.yarn import LOGS
from embedded.service import Record, upload_log


class ClusterLogs:
    """The logs of one cluster.

    Args:
        record: the record that DescribeCluster returns; without a `LogUri` no logs are uploaded.
        root: the folder that is `/` of the primary node.
    """

    def __init__(self, record: Record, root: Path) -> None:
        self._record = record
        self._containers = root / LOGS

    def keep(self, folder: Path, place: str) -> None:
        """Upload the output of a command from `folder` to a place such as `steps/<id>`."""
        for name in ("controller", "stdout", "stderr"):
            self._keep(folder / name, f"{place}/{name}")

    def keep_tasks(self) -> None:
        """Upload the standard errors of a streaming job's tasks, once."""
        for log in self._containers.glob("*/*/stderr"):
            if log.stat().st_size:
                self._keep(log, f"containers/{log.relative_to(self._containers)}")
        shutil.rmtree(self._containers, ignore_errors=True)

    def _keep(self, log: Path, place: str) -> None:
        if self._record["LogUri"]:
            parts = urlsplit(self._record["LogUri"])
            key = "/".join(part for part in (parts.path.strip("/"), self._record["Id"], f"{place}.gz") if part)
            upload_log(parts.netloc, key, gzip.compress(log.read_bytes()))
