"""Training runs on hosts, started by the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from common.names import RUNS
from tests.ssh_hosts import SshHosts
from tests.waiting import PATIENCE, until

LONG = ("--epochs", "20", "--slow", "0:8", "--slow", "1:8", "--checkpoint-minutes", "0.01")


class Training:
    """Running command of a training run."""

    def __init__(self, hosts: SshHosts, dataset: Path, output: Path, *more: str, where: tuple[str, ...] = ()) -> None:
        place = where or ("--hosts", str(hosts.file))
        options = ["--data", str(dataset), "--output", str(output), "--threads", "1", "--seed", "3", "--json"]
        command = [sys.executable, "-m", "shoal.cli.main", "train", "--model", "lstm", *place, *options, *more]
        self._hosts = hosts
        self._known = self._runs()
        self.process = subprocess.Popen(
            command, env=hosts.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _runs(self) -> set[Path]:
        return set((self._hosts.folder / RUNS).glob("*"))

    def until(self, name: str) -> Path:
        """Wait until the new run has files of this pattern in the shared folder; return the run's folder."""

        def found() -> list[Path]:
            assert self.process.poll() is None, self.process.communicate()
            return [run for run in self._runs() - self._known if list(run.glob(name))]

        run: Path = until(found)[0]
        return run

    def ended(self, status: int = 0) -> dict[str, Any]:
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == status, errors
        return {**json.loads(output), "errors": " ".join(errors.split())}
