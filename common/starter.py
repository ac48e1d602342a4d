"""Ends a process with the one that started it, also where that one is killed and cannot end anything itself.

Readers and ranks have sessions of their own, so nothing else would end them: on an unbounded stream they would run on
for ever, in a folder in which the next command wants to.
"""

import ctypes
import os
import signal
from collections.abc import Mapping

_STARTER = "SHOAL_STARTER"
_PR_SET_PDEATHSIG = 1


def ends_with_this_process() -> Mapping[str, str]:
    """What a process that is to end with this one has in its environment, and it alone."""
    return {_STARTER: str(os.getpid())}


def end_with_starter() -> None:
    """Have Linux send SIGTERM to this process once its starter is gone, if it is to end with that one.

    Call it after the handlers of signals are set, which may be called more than once: Linux sends the signal again for
    each thread of the starter that adopted this process. Processes that this one starts do not inherit it.
    """
    starter = os.environ.pop(_STARTER, None)
    if starter is None:
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != starter:  # it was gone before
        os.kill(os.getpid(), signal.SIGTERM)
