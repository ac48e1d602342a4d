"""Stands between the emulator and whoever started it: when either ends, by whatever signal, nothing stays behind.

It must itself never be among what it kills, so it does not bear the mark that it gives to the emulator.
"""

import os
import select
import subprocess
import sys

from embedded.processes import end

MARK = "EMBEDDED_AWS"
_GLANCE = 0.5  # seconds between looks at the parent, for the case that a fork of it holds the pipe


def main() -> int:
    folder = sys.argv[1]
    parent = os.getppid()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "embedded.server", folder],
        stdin=subprocess.DEVNULL,
        env=os.environ | {MARK: folder},
        start_new_session=True,
    )
    ended = os.pidfd_open(server.pid)
    try:
        while os.getppid() == parent:
            if select.select([sys.stdin, ended], [], [], _GLANCE)[0]:
                break
    finally:
        end(MARK, folder)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
