"""The entry point of `shoal`: Ctrl-C ends it with status 130 from the first moment on.

Exit status: 0 done; 1 failed, with a reason; 2 wrong use; 130 interrupted by Ctrl-C, 143 by SIGTERM. Do not import
`bootstrap.cli.commands` at the top, because that takes half a second, in which Ctrl-C would print a traceback.
"""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from bootstrap.interrupt import Interrupt, interrupt_behind, name_of, status_of

_PROCESS = os.getpid()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; returns the exit status."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt_again)
    Interrupt.is_raised_again = True
    try:
        from bootstrap.cli.commands import run

        return run(arguments, _interrupt)
    except (KeyboardInterrupt, Exception) as error:
        if (interrupt := interrupt_behind(error)) is None:
            raise
        print("shoal: interrupted", file=sys.stderr)  # noqa: T201
        return status_of(name_of(interrupt))
    finally:
        Interrupt.is_raised_again = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _PROCESS:  # a library forked this process, which inherited the handler
        os._exit(128 + number)
    raise Interrupt(number)


def _interrupt_again(_number: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(Interrupt.dropped)  # it may be one that holds interrupts back at the moment
    if callable(handler):
        handler(Interrupt.dropped, frame)


if __name__ == "__main__":
    sys.exit(main())
