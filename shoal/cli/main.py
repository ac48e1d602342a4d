"""The entry point of `shoal`. It handles Ctrl-C from the start.

Exit status: 0 success; 1 failure, with a message; 2 wrong use; 130 interrupted by Ctrl-C, 143 by SIGTERM. Do not import
`shoal.cli.commands` at the top: that takes half a second, during which Ctrl-C would print a traceback.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType

from common.errors import OutputError
from shoal.interrupt import Interrupt, interrupt_behind, name_of, status_of

_PROCESS = os.getpid()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command (default: the command in `sys.argv`) and return its exit status."""
    _prepare_streams()
    signal.signal(signal.SIGINT, _interrupt)
    try:
        from shoal.cli.commands import run

        return run(arguments, _interrupt)
    except (KeyboardInterrupt, Exception) as error:
        if (interrupt := interrupt_behind(error)) is None:
            raise
        print("shoal: interrupted", file=sys.stderr)  # noqa: T201
        return status_of(name_of(interrupt))


class _Output(TextIOWrapper):
    """Standard output that raises OutputError if writing fails. Errors of other files remain OSError."""

    def write(self, text: str) -> int:
        """Write text. Raises OutputError."""
        with _output_errors():
            return super().write(text)

    def flush(self) -> None:
        """Flush the buffer. Raises OutputError."""
        with _output_errors():
            super().flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error) from error


def _prepare_streams() -> None:
    """Write UTF-8 in every locale, preserve file names that are not UTF-8, and replace closed streams by /dev/null."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout is sys.__stdout__:  # `sys.__stdout__` keeps the buffer open
        lines = sys.stdout.line_buffering
        sys.stdout = _Output(sys.stdout.buffer, encoding="utf-8", errors="surrogateescape", line_buffering=lines)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _PROCESS:  # this is a process that a library forked, with the handler inherited
        os._exit(128 + number)
    raise Interrupt(number)


if __name__ == "__main__":
    sys.exit(main())
