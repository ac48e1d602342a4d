"""Watches the emulator and the process that started it. When that process exits, even by a signal, stops the emulator.

When the emulator exits, the watchdog exits. When the watchdog is killed, the emulator stops itself. Do not start the
watchdog with the mark that it gives to the emulator's processes, because it would kill itself.
"""

import os
import select
import subprocess
import sys
import time

from shoal_local_aws.processes import kill_marked

MARK = "EMBEDDED_AWS"
_POLL_SECONDS = 0.5
"""Interval between checks in seconds. A closed pipe is no sufficient sign, because a fork of the parent may keep it
open."""


def main() -> int:
    folder = sys.argv[1]
    parent = os.getppid()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "shoal_local_aws.server", folder, str(os.getpid())],
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


def end_with(watchdog: int, folder: str) -> None:
    """Wait until this process's parent, the watchdog, exits. Then kill the emulator's processes, including this one."""
    while os.getppid() == watchdog:
        time.sleep(_POLL_SECONDS)
    kill_marked(MARK, folder)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
