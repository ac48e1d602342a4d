"""How the ranks of a run are started by `trainer.launch`, and what their output means when they failed."""

import os
import re
import subprocess
import sys
from typing import IO

from common.errors import TrainingError
from common.starter import ends_with_this_process
from trainer.command_line import as_arguments
from trainer.config import RANK_ENVIRONMENT, TrainConfig
from trainer.distributed import failures

STOP_SECONDS = 60
"""How long the launcher gives the ranks to end with a checkpoint, once they are asked to stop."""
RESTARTS = 3
"""How often ranks are started again when one is lost: each time costs the steps since the last checkpoint."""
OPTIONS = (f"--max-restarts={RESTARTS}", f"--shutdown-timeout={STOP_SECONDS}", "--tee=3")
"""Of the launcher: both of these, and that it passes on what ranks print, with RANKS_NAMED before each line."""
RANKS_NAMED = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] "}
"""Environment variables of the launcher, with which `of_rank` knows the rank that has printed a line."""
LOG = "train.log"
"""The file in a run's output folder for what the ranks of one machine print."""

_FAILURE_PREFIX = "trainer: "
_OF_RANK = re.compile(r"\[rank ([0-9]{1,6})\] (.*)")


def start_ranks(config: TrainConfig, *, ranks: int, log: IO[str]) -> "subprocess.Popen[bytes]":
    """Start a run with so many ranks on this machine; their output goes to `log`.

    SIGTERM asks the process to stop the run with a checkpoint, and so does the end of this process. It has a session
    of its own: Ctrl-C reaches the caller alone, who passes it on so.
    """
    # -P: no module comes from the current folder, which may hold anybody's files.
    launcher = [sys.executable, "-P", "-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}", *OPTIONS]
    return subprocess.Popen(
        [*launcher, "-m", "trainer", *as_arguments(config)],
        env={**os.environ, **RANK_ENVIRONMENT, **RANKS_NAMED, **ends_with_this_process()},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def of_rank(line: str) -> tuple[int | None, str]:
    """The rank that has printed a line of the output, and what it has printed; None for a line of the launcher's."""
    found = _OF_RANK.fullmatch(line)
    return (int(found[1]), found[2]) if found else (None, line)


def failure_in(output: str, where: str) -> TrainingError:
    """The error for the output of a run without a result, that of one machine or of all, one after the other.

    Its sentence is the trainer's own for what failed first, or else the last line; `where` the whole output is follows,
    unless the sentence is enough.
    """
    reported = [failure for failure in map(failures.parse, output.splitlines()) if failure]
    if reported:
        first = failures.root_cause(reported)
        return TrainingError(f"{first}" if first.kind is failures.FailureKind.FINAL else f"{first}; {where}")
    printed = [text for _, text in map(of_rank, output.splitlines())]
    for line in printed:
        if line.startswith(_FAILURE_PREFIX):
            return TrainingError(line.removeprefix(_FAILURE_PREFIX))
    last = [line for line in printed if line.strip(" =-")][-1:] or ["it printed nothing"]
    return TrainingError(f"the training ended without a result: {last[0].strip()}; {where}")
