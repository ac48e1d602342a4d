"""The signal that asked a command to end, from where it came in to the exit status that tells of it.

The easy mistake is to take every end for Ctrl-C: who sent SIGTERM waits for 143. A plain KeyboardInterrupt is Ctrl-C.
Another is to trust that what a signal raises arrives: libraries drop it, those by a bare `except:` (mrjob asks for the
user's name in one), and compiled ones that are just imported. So a dropped one is raised again.
"""

import signal
from typing import ClassVar

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those by which somebody asks a command to end."""

_AGAIN_SECONDS = 0.05


class Interrupt(KeyboardInterrupt):
    """A KeyboardInterrupt that knows its signal; when nobody holds it any more and nobody heard it, SIGALRM follows."""

    is_raised_again: ClassVar[bool] = False
    """Whether SIGALRM follows: while a process has a handler for it."""
    dropped: ClassVar[int] = signal.SIGINT
    """The signal of the last one that was not heard."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.handled = False

    def __del__(self) -> None:
        if Interrupt.is_raised_again and not self.handled:
            Interrupt.dropped = self.number
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


def mark_handled(interrupt: KeyboardInterrupt) -> None:
    """For who catches it and goes on: it is not raised again."""
    if isinstance(interrupt, Interrupt):
        interrupt.handled = True


def interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that an error is, or whose place it took on the way, as an error in a `finally` does."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def name_of(interrupt: KeyboardInterrupt) -> str:
    """The signal's name, such as SIGTERM, as a summary has it under `stopped_by`."""
    number = interrupt.number if isinstance(interrupt, Interrupt) else signal.SIGINT
    return signal.Signals(number).name


def status_of(name: str) -> int:
    """The exit status after a signal of this name: 130 after SIGINT, 143 after SIGTERM."""
    return 128 + signal.Signals[name]
