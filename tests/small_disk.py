"""Runs a command on a small disk in memory, in its own user namespace, so that the disk becomes full."""

import shutil
import subprocess
from pathlib import Path

import pytest

_IN_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


def _can_mount() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*_IN_A_NAMESPACE, "true"], capture_output=True).returncode
    )


NEEDS_A_SMALL_DISK = pytest.mark.skipif(
    not _can_mount(), reason="this system forbids user namespaces, in which the test mounts a small disk"
)


def run_on_small_disk(folder: Path, kilobytes: int, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell script in `folder`, with a disk of this size at `small`."""
    (folder / "small").mkdir()
    return subprocess.run(
        [*_IN_A_NAMESPACE, "sh", "-c", f"mount -t tmpfs -o size={kilobytes}k none small && {script}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
