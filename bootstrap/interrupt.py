"""The signal that ends a command, from its handler to the command's exit status.

Do not treat every interrupt as Ctrl-C: after SIGTERM the exit status must be 143. A plain KeyboardInterrupt is Ctrl-C.
Libraries can drop an interrupt: by a bare `except:` (mrjob has one where it looks up the user's name), or in compiled
code during its import. So a dropped interrupt is raised again.
"""

import signal
from typing import ClassVar

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a command to end."""

_AGAIN_SECONDS = 0.05


class Interrupt(KeyboardInterrupt):
    """A KeyboardInterrupt that knows its signal. If it is freed before it was handled, SIGALRM follows."""

    is_raised_again: ClassVar[bool] = False
    """Whether SIGALRM follows; true only while the process has a handler for it."""
    dropped: ClassVar[int] = signal.SIGINT
    """The signal of the last interrupt that was not handled."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.handled = False

    def __del__(self) -> None:
        if Interrupt.is_raised_again and not self.handled:
            Interrupt.dropped = self.number
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


class Detached(Exception):  # noqa: N818
    """The command ends, and leaves to itself what it has started; the text says why, where the user did not ask."""


def mark_handled(interrupt: KeyboardInterrupt) -> None:
    """Call this when the interrupt is caught and the program continues: it is then not raised again."""
    if isinstance(interrupt, Interrupt):
        interrupt.handled = True


def interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that this error is, or that it replaced, as an error raised in a `finally` does."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def name_of(interrupt: KeyboardInterrupt) -> str:
    """The signal's name, such as SIGTERM; summaries have it under `stopped_by`."""
    number = interrupt.number if isinstance(interrupt, Interrupt) else signal.SIGINT
    return signal.Signals(number).name


def status_of(name: str) -> int:
    """The exit status after the signal of this name: 130 after SIGINT, 143 after SIGTERM."""
    return 128 + signal.Signals[name]
