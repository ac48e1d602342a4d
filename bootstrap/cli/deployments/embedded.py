"""`shoal embedded`: the AWS emulator in the foreground, for `cdk` and `shoal` commands of the user.

Do not end the emulator at once on Ctrl-C while a command runs against it, because the command gets the signal, too, and
may have to finish its work.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from bootstrap.aws import cdk
from bootstrap.cli.command import command, option
from bootstrap.cli.output import print_error, say
from bootstrap.interrupt import mark_handled
from common.errors import ShoalError
from common.private_folders import temporary_folder

if TYPE_CHECKING:
    from shoal_local_aws.aws import EmbeddedAws

_POLL_SECONDS = 0.5
_END_SECONDS = 10.0


@command(
    json="",
    help="""\
Start an AWS emulator on this machine's loopback interface and prepare it for the CDK. With a command, run that against
it, end it afterwards, and exit with the command's status. Without a command, print the environment that another shell
needs to use it, and run until Ctrl-C. When it ends, all that was in it is gone.

It has no passwords: while it runs, every user of this machine can use it, and what they start in it runs as you. It
refuses web pages.
""",
    epilog="Examples: shoal embedded -- cdk deploy -c topology=demo; or shoal embedded, and in another shell paste "
    "the printed lines, then `shoal deploy demo`, `shoal preprocess --deployment demo ...`, `shoal destroy demo`.",
)
@option("--port", type=click.IntRange(0, 65535), metavar="P", help="where to listen (default: a free port)")
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[-- COMMAND]...",
    help="a command with its arguments, which is run against the emulator",
)
def run(port: int | None, words: tuple[str, ...]) -> int:
    from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws

    with temporary_folder("shoal-embedded-") as folder:
        emulator = EmbeddedAws(folder, port)
        if words and shutil.which(words[0], path=emulator.environment["PATH"]) is None:
            raise ShoalError(f"there is no command {words[0]}; check what follows --")
        with emulator as aws:
            say(f"preparing the emulator on port {aws.port} ...")
            cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=folder / "cdk.log")
            if words:
                return _run(words, aws)
            _wait_for_interrupt(aws)
    return 0


def _wait_for_interrupt(aws: "EmbeddedAws") -> None:
    """Wait for Ctrl-C. Raises ShoalError where the emulator ends by itself."""
    for variable, value in aws.environment.items():
        print(f"export {variable}={shlex.quote(value)}")  # noqa: T201
    sys.stdout.flush()
    say("ready; paste these lines into another shell. Ctrl-C ends the emulator.")
    try:
        while not aws.ended(_POLL_SECONDS):
            pass
    except KeyboardInterrupt as interrupt:
        mark_handled(interrupt)
        say("ending the emulator and all that runs in it")
    else:
        raise ShoalError(_ended_message(aws))


def _run(words: tuple[str, ...], aws: "EmbeddedAws") -> int:
    """Run a command against the emulator; returns its exit status, as a shell reports it where a signal ended it."""
    try:
        running = subprocess.Popen(words, env={**os.environ, **aws.environment})
    except OSError as error:
        raise ShoalError(f"{words[0]} cannot be run ({error.strerror}); check what follows --") from None
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        reported = False
        while not _ended(running, _POLL_SECONDS):
            if not reported and aws.ended(0):
                print_error(_ended_message(aws))
                reported = True
    finally:
        signal.signal(signal.SIGINT, before)
        if running.poll() is None:
            running.terminate()
            _ended(running, _END_SECONDS)
    return running.returncode if running.returncode >= 0 else 128 - running.returncode


def _ended(running: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended_message(aws: "EmbeddedAws") -> str:
    return (
        f"the emulator on port {aws.port} has ended by itself, and all that was in it is gone; start it again. Its log "
        f"ended with:\n{aws.log_tail()}"
    )
