"""Starts the ranks of a run with `trainer.launch`, and finds the reason for a failure in their output."""

import os
import re
import subprocess
import sys
from typing import IO

from common.errors import TrainingError
from common.starter import ends_with_this_process
from trainer.command_line import as_arguments
from trainer.config import TrainConfig
from trainer.distributed import failures

STOP_SECONDS = 60
"""Seconds after a stop request in which the ranks must write a checkpoint and exit."""
RESTARTS = 3
"""Maximum number of restarts after a failure. Each restart repeats the steps since the last checkpoint."""
OPTIONS = (f"--max-restarts={RESTARTS}", "--tee=3")
"""Options of the launcher: restart failed ranks, and print the output of the ranks.

The launcher is the torchrun of the machine's own PyTorch, which rejects options of later versions. All supported
versions of PyTorch accept the options in `tests/trainer/torch_2_9.yaml`.
"""
LAUNCHER_ENVIRONMENT = {
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] ",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": f"{STOP_SECONDS}",
}
"""Environment variables of the launcher.

The first sets the prefix of each line that a rank prints; `split_rank_prefix` parses the prefix. The second sets
STOP_SECONDS as the time limit for a stop.

PyTorch 2.9 ignores the second variable, and kills ranks after 30 seconds
(torch/distributed/elastic/multiprocessing/api.py, 2.9.0 and 2.13.0, read on 2026-11-29).
"""
LOG = "train.log"
"""Name of the file in a run's output folder that contains the output of one machine's ranks."""

_FAILURE_PREFIX = "trainer: "
_OF_RANK = re.compile(r"\[rank ([0-9]{1,6})\] (.*)")


def start_ranks(config: TrainConfig, *, ranks: int, log: IO[str]) -> "subprocess.Popen[bytes]":
    """Start a run with `ranks` ranks on this machine. Their output is written to `log`.

    Returns the launcher's process. The run stops with a checkpoint if this process receives SIGTERM, or if the calling
    process ends. The launcher has its own session. So Ctrl-C reaches only the calling process, which must pass it on.
    """
    return subprocess.Popen(
        launcher(config, "--standalone", f"--nproc-per-node={ranks}"),
        env={**os.environ, **ends_with_this_process()},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def launcher(config: TrainConfig, *meeting: str) -> list[str]:
    """Return the command line that starts this machine's ranks. `meeting`: torchrun's rendezvous options."""
    # -P: import no module from the working directory, which can contain untrusted files.
    program = [sys.executable, "-P", "-m", "trainer.launch", *meeting, *OPTIONS]
    return [*program, "-m", "trainer", *as_arguments(config)]


def split_rank_prefix(line: str) -> tuple[int | None, str]:
    """Return the rank that printed a line (None for the launcher), and the line without its prefix."""
    match = _OF_RANK.fullmatch(line)
    return (int(match[1]), match[2]) if match else (None, line)


def failure_in(output: str, where: str) -> TrainingError:
    """Return the error for a run without a result, from the output of one machine or the concatenated output of all.

    The message is the trainer's own sentence about the first failure, or else the last line of the output. If this
    sentence is not sufficient, the message ends with `where`, a clause that says where the whole output is.
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
