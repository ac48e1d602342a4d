"""The entry point of `shoal`: Ctrl-C ends it with status 130 from the first moment on.

Exit status: 0 done; 1 failed, with a reason; 2 wrong use; 130 interrupted by Ctrl-C, 143 by SIGTERM. Do not import
`bootstrap.cli.commands` at the top, because that takes half a second, in which Ctrl-C would print a traceback.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType

from bootstrap.interrupt import Interrupt, interrupt_behind, name_of, status_of
from common.errors import OutputError

_PROCESS = os.getpid()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; returns the exit status."""
    _prepare_streams()
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


class _Output(TextIOWrapper):
    """Standard output, whose errors are told from those of other files."""

    def write(self, text: str) -> int:
        """Write a text. Raises OutputError."""
        with _output_errors():
            return super().write(text)

    def flush(self) -> None:
        """Write what is kept. Raises OutputError."""
        with _output_errors():
            super().flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error) from error


def _prepare_streams() -> None:
    """Write UTF-8 in every locale, as input is read, and names of files as they are; a closed stream is empty."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout is sys.__stdout__:  # which is kept, and with it the buffer
        lines = sys.stdout.line_buffering
        sys.stdout = _Output(sys.stdout.buffer, encoding="utf-8", errors="surrogateescape", line_buffering=lines)


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
