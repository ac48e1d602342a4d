"""`python -m bootstrap.agent.step BUCKET RUN TOKEN COMMAND...`: the command of a step of EMR, which can be cancelled.
It tells how far its job is.

It does not end by itself once it is cancelled: EMR would take the step as failed, and cancel the steps of other runs.
"""

import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bootstrap.agent.job_progress import ClientOutput

if TYPE_CHECKING:
    from bootstrap.agent.cancellation import Launch

_LOOK_SECONDS = 1.0
_HOLD_SECONDS = 300
"""How long it waits for EMR to end it."""


def main() -> int:
    bucket, run, token, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    # A file, and no pipe: what goes on after this process would break with the pipe.
    with tempfile.TemporaryFile() as printed:
        client = subprocess.Popen(command, stderr=printed)
        output = ClientOutput(printed.fileno(), token, command)
        try:
            return _wait(client, output, bucket, run, token)
        except SystemExit:  # EMR's SEND_INTERRUPT
            from bootstrap.agent.cancellation import end_work

            end_work(client, run)
            output.pass_on()
            raise


def _wait(client: "subprocess.Popen[bytes]", output: ClientOutput, bucket: str, run: str, token: str) -> int:
    """The exit status of the command, or 1 where it was cancelled."""
    launch: Launch | None = None
    while True:
        try:
            code = client.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            launch = launch or _launch(bucket, run, token)  # many steps have ended before this has loaded boto3
        else:
            output.end(code)
            if code:
                launch = launch or _launch(bucket, run, token)
                launch.tell(output.progress)
                output.ask_task()
                launch.tell(output.progress)
            return code if code >= 0 else 128 - code
        output.pass_on()
        if launch.is_cancelled():
            launch.end(client)
            time.sleep(_HOLD_SECONDS)
            return 1
        output.ask_driver()
        launch.tell(output.progress)


def _launch(bucket: str, run: str, token: str) -> "Launch":
    from bootstrap.agent.cancellation import Launch

    return Launch(bucket, run, token)


if __name__ == "__main__":
    sys.exit(main())
