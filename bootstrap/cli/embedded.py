"""`shoal embedded`: the AWS emulator in the foreground, for one's own `cdk` and `shoal` commands."""

import argparse
import shlex
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bootstrap import cdk
from bootstrap.cli.output import say


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "embedded",
        help="run an AWS emulator on this machine",
        description="Start an AWS emulator on this machine's loopback interface, prepare it for the CDK, and print the "
        "environment that another shell needs to use it. It runs until Ctrl-C; then all that was in it is gone.",
        epilog="Example: shoal embedded; in another shell paste the printed lines, then `shoal deploy demo`, "
        "`shoal preprocess --deployment demo ...`, `shoal destroy demo`.",
    )
    parser.add_argument("--port", type=int, metavar="P", help="where to listen (default: a free port)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from embedded.aws import EmbeddedAws

    with TemporaryDirectory(prefix="shoal-embedded-") as name:
        folder = Path(name)
        with EmbeddedAws(folder, args.port) as aws:
            say(f"preparing the emulator on port {aws.port} ...")
            cdk.prepare(environment=aws.environment, assembly=folder / "assembly", log=folder / "cdk.log")
            for variable, value in aws.environment.items():
                print(f"export {variable}={shlex.quote(value)}")  # noqa: T201
            sys.stdout.flush()
            say("ready; paste these lines into another shell. Ctrl-C ends the emulator.")
            try:
                signal.pause()
            except KeyboardInterrupt:
                say("ending the emulator and all that runs in it")
    return 0
