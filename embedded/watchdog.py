"""Watches the emulator and the process that started it: when either ends, by any signal, it ends what remains.

This process does not carry the mark that it gives to the emulator, so that it does not kill itself.
"""

import os
import select
import subprocess
import sys

from embedded.processes import kill_marked

MARK = "EMBEDDED_AWS"
_POLL_SECONDS = 0.5  # seconds between looks at the parent, for the case that a fork of it holds the pipe


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
            if select.select([sys.stdin, ended], [], [], _POLL_SECONDS)[0]:
                break
    finally:
        kill_marked(MARK, folder)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
