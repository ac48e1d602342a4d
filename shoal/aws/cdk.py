"""Execution of the command `cdk` on the project's app. The output of `cdk` is appended to a log file. If `cdk` fails,
the error message contains the end of the log."""

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from common.errors import ShoalError
from common.private_folders import temporary_folder
from common.starter import ending_with_this_process
from infra.policies import QUALIFIER, TOOLKIT, TOOLKIT_STACK

ROOT = Path(__file__).parents[2]
"""Folder of app.py. In a checkout, it also contains cdk.json, from which `cdk` reads the app's command."""

WHEELS = ROOT / "build" / "wheels" / "here"
"""Folder of the wheels for this machine, which nodes of the emulator install. Nodes on AWS install wheels for their own
platform."""

TOPOLOGIES = ROOT / "topologies"
"""Folder of the topology files."""

BOOTSTRAP = ("bootstrap", "--qualifier", QUALIFIER, "--toolkit-stack-name", TOOLKIT_STACK)
"""Arguments of `cdk` that prepare a region for Shoal. The region gets roles that no other CDK app uses."""

_LAST_LINES = 25
_CHECK_SECONDS = 1.0
_CHECK_PAUSE, _MAX_CHECKS = 0.05, 200
"""Seconds between two checks whether the processes have exited, and the number of checks before SIGKILL."""


def prepare(
    *,
    account: str,
    region: str,
    environment: Mapping[str, str],
    log: Path,
    execution: Sequence[str] = (),
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run `cdk bootstrap` for a region of an account. This is necessary once per region, not once per topology.

    `execution` contains the ARNs of policies that limit what CloudFormation is allowed to do. With these policies, no
    role of the bootstrap can change a stack of another app. If `execution` is empty, CloudFormation is allowed to do
    everything, which is the CDK's default.

    `cdk` runs in an empty folder. In the folder of app.py, it would first run the app, which takes longer than the
    bootstrap.
    """
    with temporary_folder("shoal-cdk-") as empty:
        place = f"aws://{account}/{region}"
        run(
            [*BOOTSTRAP, place, *(role_limits(execution) if execution else [])],
            environment=environment,
            assembly=empty / "assembly",
            log=log,
            root=empty,
            watch=watch,
        )


def role_limits(execution: Sequence[str]) -> list[str]:
    """Return options for BOOTSTRAP that limit the roles that it creates. All roles get a permissions boundary, and
    CloudFormation's role also gets the policies `execution` (ARNs)."""
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
    """Run `cdk ARGUMENTS`.

    `assembly` is the folder for the synthesized templates, and `log` is the file for the output. `watch` is called
    every second while `cdk` runs.

    Raises ShoalError if `cdk` is not installed or fails; for a failure, the message contains the end of the log. When
    this function returns or raises, `cdk` and its child processes have exited.
    """
    command = ["cdk", *arguments, "--output", os.fspath(assembly), "--no-color", "--no-notices"]
    if root == ROOT and not (ROOT / "cdk.json").exists():  # Shoal is installed as a package
        command += ["--app", shlex.join([sys.executable, os.fspath(ROOT / "app.py")])]
        root = log.parent
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **environment}
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        # The CDK's support for Node.js 20 ended on 2026-10-30 ("Supported Node.js versions for the AWS CDK", read on
        # 2026-11-29).
        raise ShoalError(
            "the command `cdk` is not installed; in a checkout of Shoal run `make setup` and add .venv/bin to PATH, "
            "elsewhere install Node.js 22 or newer and run: npm install --global aws-cdk@2"
        )
    with log.open("ab") as output:
        running = subprocess.Popen(
            ending_with_this_process(*command),
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    try:
        while not _ends_within(running, _CHECK_SECONDS):
            watch()
    finally:
        _end_group(running)
    if running.returncode:
        last = log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        raise ShoalError(f"`cdk {' '.join(arguments)}` failed; the end of {log}:", *last)


def _end_group(leader: "subprocess.Popen[bytes]") -> None:
    """Terminate the process group of `leader`, because some child processes can outlive their parent."""
    signals = itertools.chain([signal.SIGTERM], itertools.repeat(0, _MAX_CHECKS), [signal.SIGKILL])
    with suppress(ProcessLookupError):
        for number in signals:
            os.killpg(leader.pid, number)
            leader.poll()
            time.sleep(_CHECK_PAUSE)
    leader.wait()


def _ends_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
