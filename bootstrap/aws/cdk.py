"""The real CDK command on the project's own app, with its output kept and shown when it fails."""

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bootstrap.errors import ShoalError

ROOT = Path(__file__).parents[2]
"""The folder of app.py; in a checkout also that of cdk.json, by which the command `cdk` finds app.py itself."""

TOPOLOGIES = ROOT / "topologies"
"""The topologies that the app chooses from."""

_LAST_LINES = 25
_LOOK_SECONDS = 1.0
_BETWEEN_LOOKS, _MOST_LOOKS = 0.05, 200
"""Seconds, and how often it is looked whether all have ended before they are made to."""


def prepare(
    *,
    account: str,
    region: str,
    environment: Mapping[str, str],
    log: Path,
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run `cdk bootstrap` for a region of an account: needed once, whatever the topology.

    It runs in an empty folder. Beside app.py the CDK would run the app first, which takes longer than all the rest.
    """
    with TemporaryDirectory(prefix="shoal-cdk-") as folder:
        place, nowhere = f"aws://{account}/{region}", Path(folder)
        run(
            ["bootstrap", place],
            environment=environment,
            assembly=nowhere / "assembly",
            log=log,
            root=nowhere,
            watch=watch,
        )


def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    assembly: Path,
    log: Path,
    root: Path = ROOT,
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run `cdk ARGUMENTS`; `assembly` is the folder for what it synthesises, `log` the file for what it says.

    `watch` is called every second while it runs. Raises ShoalError with the end of the log when it fails, or when it
    is not installed; it has ended, with the app that it started, however this ends.
    """
    command = ["cdk", *arguments, "--output", os.fspath(assembly), "--no-color", "--no-notices"]
    if root == ROOT and not (ROOT / "cdk.json").exists():  # an installed Shoal
        command += ["--app", shlex.join([sys.executable, os.fspath(ROOT / "app.py")])]
        root = log.parent
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as written:
            running = subprocess.Popen(
                command,
                cwd=root,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
    except FileNotFoundError:
        raise ShoalError(
            "the command `cdk` is not installed; in a checkout of Shoal run `make setup` and add .venv/bin to PATH, "
            "elsewhere install Node.js 20 or newer and run: npm install --global aws-cdk@2"
        ) from None
    try:
        while not _ended(running, _LOOK_SECONDS):
            watch()
    finally:
        _end(running)
    if running.returncode:
        last = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:])
        raise ShoalError(f"`cdk {' '.join(arguments)}` failed; the end of {log}:\n{last}")


def _end(leader: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started, of which some may be left when it has ended itself."""
    signals = itertools.chain([signal.SIGTERM], itertools.repeat(0, _MOST_LOOKS), [signal.SIGKILL])
    with suppress(ProcessLookupError):
        for number in signals:
            os.killpg(leader.pid, number)
            leader.poll()
            time.sleep(_BETWEEN_LOOKS)
    leader.wait()


def _ended(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether it ends within so many seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
