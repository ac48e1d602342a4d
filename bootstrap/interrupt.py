"""Signals that stop a command, from the signal handler to the exit status.

Do not treat every interrupt as Ctrl-C, because after SIGTERM the exit status must be 143. A plain KeyboardInterrupt is
Ctrl-C. Libraries can swallow an interrupt: with a bare `except:` (mrjob, when it looks up the user's name) or in
compiled code during an import. Therefore an interrupt that is garbage-collected without having been handled is raised
again.
"""

import signal
from typing import ClassVar

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that tell a command to stop."""

_AGAIN_SECONDS = 0.05


class Interrupt(KeyboardInterrupt):
    """KeyboardInterrupt with a signal number. If it is garbage-collected unhandled, the process receives SIGALRM."""

    is_raised_again: ClassVar[bool] = False
    """Whether SIGALRM is sent; true only while the process has a handler for SIGALRM."""
    dropped: ClassVar[int] = signal.SIGINT
    """Signal of the last interrupt that was not handled."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.handled = False

    def __del__(self) -> None:
        if Interrupt.is_raised_again and not self.handled:
            Interrupt.dropped = self.number
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


class Detached(Exception):  # noqa: N818
    """Raised if the command exits while its run continues. The message is the reason, or "" if the user detached."""


def mark_handled(interrupt: KeyboardInterrupt) -> None:
    """Mark a caught interrupt as handled, so that it is not raised again."""
    if isinstance(interrupt, Interrupt):
        interrupt.handled = True


def interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interrupt in the error's chain of contexts, or None. An error in a `finally` block can hide it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def name_of(interrupt: KeyboardInterrupt) -> str:
    """Return the signal's name, such as SIGTERM, as the field `stopped_by` of summaries contains it."""
    number = interrupt.number if isinstance(interrupt, Interrupt) else signal.SIGINT
    return signal.Signals(number).name


def status_of(name: str) -> int:
    """Return the exit status after a signal: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + signal.Signals[name]
