"""Stops a child process when its parent process exits, even if the parent was killed.

Readers and ranks run in their own process sessions, so no signal of the terminal would stop them. On an unbounded
stream they would run forever and keep the lock on the folder that the next command needs.
"""

import ctypes
import os
import signal
from collections.abc import Mapping

_STARTER = "SHOAL_STARTER"
_PR_SET_PDEATHSIG = 1


def ends_with_this_process() -> Mapping[str, str]:
    """Return the environment variables to give to a child process that must stop when this process exits."""
    return {_STARTER: str(os.getpid())}


def end_with_starter() -> None:
    """Ask Linux to send SIGTERM to this process when its parent exits, if `ends_with_this_process` set the environment.

    Call this function after the signal handlers are set. The handlers must tolerate repeated calls: if a thread of the
    parent process exits, Linux sends the signal and makes another thread the parent. Child processes do not inherit the
    setting.
    """
    starter = os.environ.pop(_STARTER, None)
    if starter is None:
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != starter:  # the parent exited before prctl took effect
        os.kill(os.getpid(), signal.SIGTERM)
