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
OPTIONS = (f"--max-restarts={RESTARTS}", "--tee=3")
"""Of the launcher: the number of restarts, and that it prints what ranks print. The launcher is the torchrun of a
machine's own torch, and refuses options of later versions. All versions have those in `tests/trainer/torch_2_9.yaml`.
"""
LAUNCHER_ENVIRONMENT = {
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] ",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": f"{STOP_SECONDS}",
}
"""Environment variables of the launcher: the prefix of each line that a rank prints, for `of_rank`; and STOP_SECONDS.
torch 2.9 ignores the second one, and gives ranks 30 seconds (torch/distributed/elastic/multiprocessing/api.py, 2.9.0
and 2.13.0, read on 2026-11-29)."""
LOG = "train.log"
"""The file in a run's output folder for what the ranks of one machine print."""

_FAILURE_PREFIX = "trainer: "
_OF_RANK = re.compile(r"\[rank ([0-9]{1,6})\] (.*)")


def start_ranks(config: TrainConfig, *, ranks: int, log: IO[str]) -> "subprocess.Popen[bytes]":
    """Start a run with so many ranks on this machine; their output goes to `log`.

    SIGTERM asks the process to stop the run with a checkpoint, and so does the end of this process. It has a session
    of its own: Ctrl-C reaches the caller alone, who passes it on so.
    """
    return subprocess.Popen(
        launcher(config, "--standalone", f"--nproc-per-node={ranks}"),
        env={**os.environ, **RANK_ENVIRONMENT, **LAUNCHER_ENVIRONMENT, **ends_with_this_process()},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def launcher(config: TrainConfig, *meeting: str) -> list[str]:
    """The command that starts this machine's ranks, which meet as these options of the launcher say."""
    # -P: no module comes from the current folder, which may hold anybody's files.
    program = [sys.executable, "-P", "-m", "trainer.launch", *meeting, *OPTIONS]
    return [*program, "-m", "trainer", *as_arguments(config)]


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
