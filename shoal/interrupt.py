"""Signals that stop a command, from the signal handler to the exit status.

Do not treat every interrupt as Ctrl-C, because after SIGTERM the exit status must be 143. A plain KeyboardInterrupt is
Ctrl-C.
"""

import signal

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that tell a command to stop."""


class Interrupt(KeyboardInterrupt):
    """KeyboardInterrupt with a signal number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Detached(Exception):  # noqa: N818
    """Raised if the command exits while its run continues. The message is the reason, or "" if the user detached."""


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
