"""Runs the command `cdk` on the project's app; its output goes to a log, and is shown when it fails."""

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

from common.errors import ShoalError
from common.private_folders import temporary_folder
from infra.policies import QUALIFIER, TOOLKIT, TOOLKIT_STACK

ROOT = Path(__file__).parents[2]
"""The folder of app.py; in a checkout also of cdk.json, by which `cdk` finds app.py."""

WHEELS = ROOT / "build" / "wheels" / "here"
"""The libraries that emulated nodes install; those that are deployed are for AWS's machines."""

TOPOLOGIES = ROOT / "topologies"
"""The folder of the topologies that the app knows."""

BOOTSTRAP = ("bootstrap", "--qualifier", QUALIFIER, "--toolkit-stack-name", TOOLKIT_STACK)
"""The command that prepares a region with roles that are not those of other apps of the CDK."""

_LAST_LINES = 25
_LOOK_SECONDS = 1.0
_BETWEEN_LOOKS, _MOST_LOOKS = 0.05, 200
"""Seconds between two checks whether the processes have ended, and the number of checks before SIGKILL."""


def prepare(
    *,
    account: str,
    region: str,
    environment: Mapping[str, str],
    log: Path,
    execution: Sequence[str] = (),
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run `cdk bootstrap` for a region of an account, which is needed once, for all topologies.

    `execution` has the ARNs of the policies of what CloudFormation may do, and then no role of the bootstrap may
    change a stack of another app; empty: everything, as the CDK has it.

    It runs in an empty folder. Beside app.py the CDK would first run the app, which takes longer than the bootstrap.
    """
    with temporary_folder("shoal-cdk-") as nowhere:
        place = f"aws://{account}/{region}"
        run(
            [*BOOTSTRAP, place, *(limits(execution) if execution else [])],
            environment=environment,
            assembly=nowhere / "assembly",
            log=log,
            root=nowhere,
            watch=watch,
        )


def limits(execution: Sequence[str]) -> list[str]:
    """The options of BOOTSTRAP that limit the roles which it makes: CloudFormation's by the policies of these ARNs."""
    boundary = ["--custom-permissions-boundary", TOOLKIT, "--apply-permissions-boundary-to-all-roles"]
    return ["--cloudformation-execution-policies", ",".join(execution), *boundary]


def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    assembly: Path,
    log: Path,
    root: Path = ROOT,
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run `cdk ARGUMENTS`; `assembly` is the folder for what it synthesises, `log` the file for its output.

    `watch` is called every second while it runs. Raises ShoalError when it is not installed, or, with the end of the
    log, when it fails. The command and the app that it started have ended in every case.
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
        # Its support of Node.js 20 ended on 2026-10-30 ("Supported Node.js versions for the AWS CDK", read 2026-11-29).
        raise ShoalError(
            "the command `cdk` is not installed; in a checkout of Shoal run `make setup` and add .venv/bin to PATH, "
            "elsewhere install Node.js 22 or newer and run: npm install --global aws-cdk@2"
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
    """End a process and all that it started; some of these can outlive it."""
    signals = itertools.chain([signal.SIGTERM], itertools.repeat(0, _MOST_LOOKS), [signal.SIGKILL])
    with suppress(ProcessLookupError):
        for number in signals:
            os.killpg(leader.pid, number)
            leader.poll()
            time.sleep(_BETWEEN_LOOKS)
    leader.wait()


def _ended(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether the process ends within `seconds`."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
