"""Ends a process when the process that started it ends, even if that one was killed.

Readers and ranks have their own sessions, so nothing else would end them. On an unbounded stream they would run
forever and occupy the folder that the next command needs.
"""

import ctypes
import os
import signal
from collections.abc import Mapping

_STARTER = "SHOAL_STARTER"
_PR_SET_PDEATHSIG = 1


def ends_with_this_process() -> Mapping[str, str]:
    """Return the environment variables for a child process that must end with this process."""
    return {_STARTER: str(os.getpid())}


def end_with_starter() -> None:
    """Have Linux send SIGTERM to this process when its starter ends, if the environment asks for it.

    Call this after the signal handlers are set. Handlers must tolerate repeated calls: Linux sends one signal for each
    thread of the starter that becomes the parent of this process. Child processes do not inherit the setting.
    """
    starter = os.environ.pop(_STARTER, None)
    if starter is None:
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != starter:  # the starter ended before prctl took effect
        os.kill(os.getpid(), signal.SIGTERM)
