"""Runs a command against the emulator, or the emulator in the foreground for a different shell.

Ctrl-C must not stop the emulator while a command uses it. The command also receives the signal, and may
need the emulator until the command exits.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.emulator_error import EmulatorError

_POLL_SECONDS = 0.5
_END_SECONDS = 10.0


def require_command(words: Sequence[str], aws: EmbeddedAws) -> None:
    """Raise EmulatorError if the command does not exist. Call this before the start of the emulator, which takes
    longer."""
    if words and shutil.which(words[0], path=aws.environment["PATH"]) is None:
        raise EmulatorError(f"the command {words[0]} does not exist; check the command after --")


def serve(words: Sequence[str], aws: EmbeddedAws) -> int:
    """Run a command against the emulator, and return its exit status (128 + N after signal N).

    Without a command, print the environment variables of the emulator, wait for KeyboardInterrupt, and raise it again.
    Raises EmulatorError if the command does not start, or if the emulator exits during the wait.
    """
    if words:
        return _run(words, aws)
    for variable, value in aws.environment.items():
        print(f"export {variable}={shlex.quote(value)}")
    sys.stdout.flush()
    print("ready; paste these lines into another shell. Ctrl-C stops the emulator.", file=sys.stderr)
    try:
        while not aws.ended(_POLL_SECONDS):
            pass
    except KeyboardInterrupt:
        print("stopping the emulator and all its processes", file=sys.stderr)
        raise
    raise EmulatorError(_ended_message(aws))


def _run(words: Sequence[str], aws: EmbeddedAws) -> int:
    running: subprocess.Popen[bytes] | None = None
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        running = _started(words, aws)
        reported = False
        while not _ended(running, _POLL_SECONDS):
            if not reported and aws.ended(0):
                print(_ended_message(aws), file=sys.stderr)
                reported = True
    finally:
        signal.signal(signal.SIGINT, before)
        if running is not None and running.poll() is None:
            running.terminate()
            _ended(running, _END_SECONDS)
    return running.returncode if running.returncode >= 0 else 128 - running.returncode


def _started(words: Sequence[str], aws: EmbeddedAws) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(words, env={**os.environ, **aws.environment})
    except OSError as error:
        raise EmulatorError(f"cannot run {words[0]} ({error.strerror}); check the command after --") from None


def _ended(running: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended_message(aws: EmbeddedAws) -> str:
    return (
        f"the emulator on port {aws.port} exited unexpectedly, and its resources are lost; start it again. Its log "
        f"ends with:\n{aws.log_tail()}"
    )
