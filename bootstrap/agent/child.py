"""`python -m bootstrap.agent.child FOLDER PROGRAM...`: runs a program of the agent's, and leaves how it ended.

It outlives the agent, so that an agent that is started again finds what its programs do, and how they ended.
"""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from common.starter import ends_with_this_process
from corpus.reading.storage import write_text

IDENTITY, EXIT = "process", "exit"
"""The files in the folder: which process runs the program, and the exit status of the program."""

asked: list[int] = []
"""The signal that was passed on."""


def identity_of(process: int) -> str | None:
    """A process's id and its start, which together no later process has; None where there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else f"{process} {fields[18]}"


def main() -> int:
    folder, program = Path(sys.argv[1]), sys.argv[2:]
    write_text(str(folder / IDENTITY), str(identity_of(os.getpid())))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # until there is a program to pass them on to
    status = 127
    try:
        environment = {**os.environ, **ends_with_this_process()}
        running = subprocess.Popen(program, env=environment, preexec_fn=_heed_signals)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, partial(_pass_on_once, running))
        status = running.wait()
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
    write_text(str(folder / EXIT), str(status))
    return 0


def _pass_on_once(running: "subprocess.Popen[bytes]", number: int, _frame: object) -> None:
    """Ranks that are asked to stop a second time would stop without a checkpoint."""
    if not asked:
        asked.append(number)
        running.send_signal(number)


def _heed_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
