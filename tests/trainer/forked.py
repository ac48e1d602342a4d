"""Starts a program on ranks of this machine like torchrun, but forks each rank.

python tests/trainer/forked.py RANKS LOGS (-m MODULE | FILE) [ARGUMENT...]

With 0 RANKS the program runs in the first process, as without torchrun. Tests start it by `tests/forking.py`, with
`prepare`. Rate measurements are then short, too, so that a test waits for training and not for imports.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist

from tests.forking import run

LOOK, SECONDS = 0.02, 0.05
"""Seconds of a rate measurement, which would otherwise dominate a short run."""
PATIENCE = 30.0
"""Seconds from SIGTERM to SIGKILL, as in torchrun."""


def prepare() -> None:
    """Import slow modules, record all steps, and shorten the rate measurement."""
    import torch.distributed.run  # noqa: F401

    import trainer.classification.task
    import trainer.embeddings.task
    import trainer.start  # noqa: F401
    from trainer import rate_measurement
    from trainer.output import reporter

    reporter.STEP_SECONDS = 0.0
    rate_measurement._LOOK = LOOK
    rate_measurement.measure_own_rates.__kwdefaults__["seconds"] = SECONDS


def start(rank: int, ranks: int, logs: str, program: list[str]) -> tuple[int, int]:
    """Fork a rank, which waits for the port of the store. Return its process, and the file to which the port must be
    written."""
    port_reader, port_writer = os.pipe()
    process = os.fork()
    if process:
        os.close(port_reader)
        return process, port_writer
    os.close(port_writer)
    port = os.read(port_reader, 16).decode()
    os.environ |= {
        **{name: str(rank) for name in ("RANK", "LOCAL_RANK")},
        **{name: str(ranks) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")},
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": port,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_ERROR_FILE": f"{logs}/none_forked/attempt_0/{rank}/error.json",
    }
    run(program)
    sys.exit()


def main(ranks: int, logs: str, program: list[str]) -> int:
    """Start the ranks and wait for all of them. Return 0, or 1 if one failed; the others are then terminated."""
    if ranks == 0:
        run(program)
        return 0
    started = dict(start(rank, ranks, logs, program) for rank in range(ranks))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: end(list(started), number))
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, timeout=timedelta(minutes=5))
    for port_writer in started.values():
        os.write(port_writer, str(store.port).encode())
        os.close(port_writer)
    failed, deadline = False, float("inf")
    while started:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process:
            del started[process]
            if status and not failed:
                failed, deadline = True, time.monotonic() + PATIENCE
                end(list(started), signal.SIGTERM)
        elif time.monotonic() > deadline:
            end(list(started), signal.SIGKILL)
        else:
            time.sleep(0.05)
    return int(failed)


def end(processes: list[int], number: int) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
