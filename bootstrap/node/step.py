"""Run the command of an EMR step so that the step can be cancelled: `python -m bootstrap.node.step BUCKET RUN TOKEN
COMMAND...`.

After a cancellation, this program waits until EMR kills it. If the program exited by itself, EMR would consider the
step failed and cancel the steps of other runs.
"""

import signal
import subprocess
import sys
import time

from common.starter import ending_with_this_process

_LOOK_SECONDS = 1.0
_HOLD_SECONDS = 300
"""Maximum seconds to wait for EMR to kill the program."""


def main() -> int:
    bucket, run, token, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    client = subprocess.Popen(ending_with_this_process(*command))
    try:
        return _wait(client, bucket, run, token)
    except SystemExit:  # EMR's SEND_INTERRUPT
        from bootstrap.node.cancellation import end_work

        end_work(client, run)
        raise


def _wait(client: "subprocess.Popen[bytes]", bucket: str, run: str, token: str) -> int:
    """Return the exit status of the command, or 1 if it was cancelled."""
    launch = None
    while True:
        try:
            code = client.wait(_LOOK_SECONDS)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            if launch is None:
                from bootstrap.node.cancellation import StepWork  # imports boto3; many steps end before that

                launch = StepWork(bucket, run, token)
        if launch.is_cancelled():
            launch.end(client)
            time.sleep(_HOLD_SECONDS)
            return 1


if __name__ == "__main__":
    sys.exit(main())
