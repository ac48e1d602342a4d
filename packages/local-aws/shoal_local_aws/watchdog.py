"""Watches the emulator and the process that started it. When that process exits, even by a signal, stops the emulator.

When the emulator exits, the watchdog exits. Do not start the watchdog with the mark that it gives to the emulator's
processes, because it would kill itself.
"""

import os
import select
import subprocess
import sys

from shoal_local_aws.processes import kill_marked

MARK = "EMBEDDED_AWS"
_POLL_SECONDS = 0.5
"""Interval between checks in seconds. A closed pipe is no sufficient sign, because a fork of the parent may keep it
open."""


def main() -> int:
    folder = sys.argv[1]
    parent = os.getppid()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "shoal_local_aws.server", folder],
        stdin=subprocess.DEVNULL,
        env=os.environ | {MARK: folder},
        start_new_session=True,
    )
    try:
        while os.getppid() == parent and server.poll() is None:
            if select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
                break
    finally:
        kill_marked(MARK, folder)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
