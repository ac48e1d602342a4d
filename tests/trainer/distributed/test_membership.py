"""Under torchrun, machines may join a run and leave it: it continues from its newest checkpoint by itself."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from trainer.config import RANK_ENVIRONMENT

LEARNING = (
    "--epochs", 8, "--global-batch", 64, "--threads", 1, "--record-every", 1, "--checkpoint-minutes", 0.004,
    "--slow", "0:20", "--balance", "off",
)  # fmt: skip
STEPS = 8 * 30


def machine(dataset: Path, output: Path, port: int, *, host: bool) -> "subprocess.Popen[str]":
    """One of up to two, as its user starts it, with a rank; one is `host` to the meeting."""
    meeting = (f"is_host={int(host)}", "last_call_timeout=3", "keep_alive_interval=3", "keep_alive_max_attempt=5")
    torchrun = (
        "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1", f"--rdzv-conf={','.join(meeting)}",
        f"--log-dir={output.parent / 'torchrun'}",
    )  # fmt: skip
    asked = ("-m", "trainer", "--data", dataset, "--output", output, *LEARNING)
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *torchrun, *map(str, asked)],
        env={
            **os.environ,
            **RANK_ENVIRONMENT,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(output: Path, kind: str) -> list[dict[str, Any]]:
    record = output / "record.jsonl"
    whole = record.read_text().splitlines() if record.exists() else []
    return [line for line in map(json.loads, (line for line in whole if line.endswith("}"))) if line["kind"] == kind]


def wait(running: "subprocess.Popen[str]", until: Callable[[], bool]) -> None:
    while not until():
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.05)


@pytest.mark.soak
def test_machines_join_a_run_and_leave_it_and_it_goes_on(dataset: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def started(number: int) -> Callable[[], bool]:
        """Whether so many have begun, the last of which has come ten steps far."""

        def begun() -> bool:
            starts, steps = lines(tmp_path, "start"), lines(tmp_path, "step")
            return len(starts) == number and bool(steps) and steps[-1]["step"] >= starts[-1]["from_step"] + 10

        return begun

    first = machine(dataset, tmp_path, port, host=True)
    wait(first, started(1))
    second = machine(dataset, tmp_path, port, host=False)
    wait(first, started(2))
    for each in [*psutil.Process(second.pid).children(recursive=True), second]:
        each.kill()
    second.communicate()
    wait(first, started(3))
    third = machine(dataset, tmp_path, port, host=False)  # for it the ranks never failed, for the first one they did
    said = [each.communicate(timeout=400)[1] for each in (first, third)]
    assert [first.returncode, third.returncode] == [0, 0], said
    starts = lines(tmp_path, "start")
    assert [start["world_size"] for start in starts] == [1, 2, 1, 2]
    assert [start["from_step"] for start in starts] == sorted({start["from_step"] for start in starts})
    assert sorted({line["step"] for line in lines(tmp_path, "step")}) == list(range(1, STEPS + 1))
    assert lines(tmp_path, "note") == []
    assert json.loads((tmp_path / "summary.json").read_text())["rows_seen"] == 8 * 1900
