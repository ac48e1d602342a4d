"""Ends a process when the process that started it ends, even if that process was killed.

Most processes that Shoal starts have their own session or process group, so no signal of the terminal would stop them.
They would run on, and write into the folder that the next command uses. Linux does not pass the setting on to child
processes, so each process that starts other processes must set it for them.

    python common/starter.py PARENT PROGRAM...    run a program that ends with its parent, the process PARENT
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping
from threading import Thread

END_SECONDS = 60
"""Maximum seconds from the end of a starter to the end of the process, which can save its work until then."""

_STARTER = "SHOAL_STARTER"
_PR_SET_PDEATHSIG = 1
"""Option of prctl (https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html, read on 2026-11-30).

The setting survives exec. Linux sends the signal when the *thread* that started the process ends.
"""
_LOOK_SECONDS = 1.0


def ends_with_this_process() -> Mapping[str, str]:
    """Return the environment variables to give to a child process that calls `end_with_starter`."""
    return {_STARTER: str(os.getpid())}


def end_with_starter() -> None:
    """Let this process receive SIGTERM when its starter ends, and SIGKILL END_SECONDS later.

    Without the variables of `ends_with_this_process`, do nothing. Call this function after the signal handlers are set.
    The handlers must tolerate repeated calls: if a thread of the starter ends, Linux sends the signal and makes another
    thread the parent.
    """
    starter = os.environ.pop(_STARTER, None)
    if starter is not None:
        end_with_parent(int(starter))
        Thread(target=_kill_late, args=[int(starter)], daemon=True).start()


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """Ask Linux to send a signal to this process when its parent process `parent` ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before prctl took effect
        os.kill(os.getpid(), number)


def ending_with_this_process(*command: str) -> list[str]:
    """Return the command line that runs a program of another project so that it ends with this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def _kill_late(starter: int) -> None:
    """Kill this process if it does not end, for example because it waits for another process that was killed."""
    while os.getppid() == starter:
        time.sleep(_LOOK_SECONDS)
    time.sleep(END_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    _, parent, *command = sys.argv
    end_with_parent(int(parent))
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
