"""How the ranks of a run are started by `trainer.launch`, and what their output means when they failed."""

import os
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
LIMITS = (f"--max-restarts={RESTARTS}", f"--shutdown-timeout={STOP_SECONDS}")
"""Both as options of the launcher."""
LOG = "train.log"
"""The file in a run's output folder for what the ranks of one machine print."""

_FAILURE_PREFIX = "trainer: "


def start_ranks(config: TrainConfig, *, ranks: int, log: IO[str]) -> "subprocess.Popen[bytes]":
    """Start a run with so many ranks on this machine; their output goes to `log`.

    SIGTERM asks the process to stop the run with a checkpoint, and so does the end of this process. It has a session
    of its own: Ctrl-C reaches the caller alone, who passes it on so.
    """
    # -P: no module comes from the current folder, which may hold anybody's files.
    launcher = [sys.executable, "-P", "-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}", *LIMITS]
    return subprocess.Popen(
        [*launcher, "-m", "trainer", *as_arguments(config)],
        env={**os.environ, **RANK_ENVIRONMENT, **ends_with_this_process()},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def failure_in(output: str, where: str) -> TrainingError:
    """The error for the output of a run without a result, that of one machine or of all, one after the other.

    Its sentence is the trainer's own for what failed first, or else the last line; `where` the whole output is follows,
    unless the sentence is enough.
    """
    reported = [failure for failure in map(failures.parse, output.splitlines()) if failure]
    if reported:
        first = failures.root_cause(reported)
        return TrainingError(f"{first}" if first.kind is failures.FailureKind.FINAL else f"{first}; {where}")
    for line in output.splitlines():
        if line.startswith(_FAILURE_PREFIX):
            return TrainingError(line.removeprefix(_FAILURE_PREFIX))
    last = [line for line in output.splitlines() if line.strip(" =-")][-1:] or ["it printed nothing"]
    return TrainingError(f"the training ended without a result: {last[0].strip()}; {where}")
