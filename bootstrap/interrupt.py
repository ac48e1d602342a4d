"""The signal that asked a command to end, from where it came in to the exit status that tells of it.

The easy mistake is to take every end for Ctrl-C: who sent SIGTERM waits for 143. A plain KeyboardInterrupt is Ctrl-C.
"""

import signal

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those by which somebody asks a command to end."""


class Interrupt(KeyboardInterrupt):
    """A KeyboardInterrupt that knows its signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def name_of(asked: KeyboardInterrupt) -> str:
    """The signal's name, such as SIGTERM, as a summary has it under `stopped_by`."""
    number = asked.number if isinstance(asked, Interrupt) else signal.SIGINT
    return signal.Signals(number).name


def status_of(name: str) -> int:
    """The exit status after a signal of this name: 130 after SIGINT, 143 after SIGTERM."""
    return 128 + signal.Signals[name]
