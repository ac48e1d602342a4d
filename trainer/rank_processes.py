"""Starts the ranks of a run with `trainer.launch`, and explains their failure from their output."""

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
"""Seconds that the launcher gives the ranks to end with a checkpoint after a stop request."""
RESTARTS = 3
"""Maximum number of restarts after a failure. Each restart repeats the steps since the last checkpoint."""
OPTIONS = (f"--max-restarts={RESTARTS}", "--tee=3")
"""Launcher options: the number of restarts, and printing of the ranks' output.

The launcher is the torchrun of the machine's own PyTorch, which rejects options of later versions. All supported
versions have the options in `tests/trainer/torch_2_9.yaml`.
"""
LAUNCHER_ENVIRONMENT = {
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] ",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": f"{STOP_SECONDS}",
}
"""Environment variables of the launcher: the prefix of each line that a rank prints, which `split_rank_prefix` parses,
and STOP_SECONDS.

PyTorch 2.9 ignores the second one, and gives ranks 30 seconds (torch/distributed/elastic/multiprocessing/api.py, 2.9.0
and 2.13.0, read on 2026-11-29).
"""
LOG = "train.log"
"""File in a run's output folder for the output of one machine's ranks."""

_FAILURE_PREFIX = "trainer: "
_OF_RANK = re.compile(r"\[rank ([0-9]{1,6})\] (.*)")


def start_ranks(config: TrainConfig, *, ranks: int, log: IO[str]) -> "subprocess.Popen[bytes]":
    """Start a run with `ranks` ranks on this machine. Their output is written to `log`.

    SIGTERM to the returned process, or the end of the calling process, stops the run with a checkpoint. The process has
    its own session, so Ctrl-C reaches only the caller, which must forward it.
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
    """Return the command that starts this machine's ranks with these rendezvous options."""
    # -P: import no module from the working directory, which may contain untrusted files.
    program = [sys.executable, "-P", "-m", "trainer.launch", *meeting, *OPTIONS]
    return [*program, "-m", "trainer", *as_arguments(config)]


def split_rank_prefix(line: str) -> tuple[int | None, str]:
    """Return the rank that printed a line, or None for the launcher, and its text."""
    found = _OF_RANK.fullmatch(line)
    return (int(found[1]), found[2]) if found else (None, line)


def failure_in(output: str, where: str) -> TrainingError:
    """Return the error for a run without a result, from the output of one machine or the concatenated output of all.

    The message is the trainer's own sentence about the first failure, or else the last line. Unless that is sufficient,
    `where` follows: the location of the whole output.
    """
    reported = [failure for failure in map(failures.parse, output.splitlines()) if failure]
    if reported:
        first = failures.root_cause(reported)
        return TrainingError(f"{first}" if first.kind is failures.FailureKind.FINAL else f"{first}; {where}")
    printed = [text for _, text in map(split_rank_prefix, output.splitlines())]
    for line in printed:
        if line.startswith(_FAILURE_PREFIX):
            return TrainingError(line.removeprefix(_FAILURE_PREFIX))
    last = [line for line in printed if line.strip(" =-")][-1:] or ["it printed nothing"]
    return TrainingError(f"the training ended without a result: {last[0].strip()}; {where}")
