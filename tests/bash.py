"""Runs scripts of nodes in real bash, with fake programs that only record their arguments."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.waiting import PATIENCE

_FLOCK = shutil.which("flock")  # looked up first, because a fake program may have that name


class Bash:
    """Shell in its own folder. A file `canary` anywhere below it means that injected code was executed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "node $(touch canary)"
        self._programs, self._calls = folder / "programs", folder / "calls"
        self._programs.mkdir()
        for made in ("opt/shoal", "opt/pytorch/bin", "usr/local/bin", "var/log", "mnt/share", "tmp"):
            (self.root / made).mkdir(parents=True)
        (self.root / "opt" / "shoal" / "busy.lock").touch()
        for name in ("shoal-python", "systemctl", "exportfs", "mount", "umount", "chown", "dnf", "sudo"):
            self.add(name)
        for name in ("findmnt", "mountpoint"):
            self.add(name, "exit 1")
        with zipfile.ZipFile(folder / "empty.zip", "w"):
            pass
        copy = f'case $last in *.zip) cp {folder}/empty.zip "$last" ;; esac'
        self.add("aws", f'[ "$4" = - ] && cat >{folder}/report; last=${{@: -1}}; {copy}')

    def add(self, name: str, then: str = "exit 0") -> None:
        """Add a fake program that records its name and arguments, then runs `then`."""
        program = self._programs / name
        write = f'{{ {_FLOCK} 9; printf "%s\\0" {name} "$@" >>{self._calls}; }} 9>>{self._calls}.lock'
        program.write_text(f"#!/bin/bash\n{write}\n{then}\n")
        program.chmod(0o755)

    def run(self, *command: str, **environment: str) -> None:
        """Run bash with these arguments; `ended` is the result."""
        path = os.pathsep.join([str(self._programs), os.defpath])
        self.ended = subprocess.run(
            ["bash", *command],
            cwd=self.folder,
            env={"PATH": path, "NODE_ROOT": str(self.root), "HOSTNAME": "played", **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def recorded_words(self) -> list[str]:
        """Return all recorded words, in order."""
        return self._calls.read_text().split("\0") if self._calls.exists() else []

    def injected(self) -> bool:
        return any(self.folder.rglob("canary"))
