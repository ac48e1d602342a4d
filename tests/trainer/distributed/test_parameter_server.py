"""Tables that all ranks keep together: no push is lost, and each counts what came before it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from tests.trainer.conftest import ROOT, Launch
from tests.trainer.runs import finish
from tests.waiting import until
from trainer.config import RANK_ENVIRONMENT

PROGRAM, STRANGER = (Path(__file__).with_name(name) for name in ("serving.py", "stranger.py"))
ROWS, COLUMNS, PUSHES = (11, 6), 3, 40
"""As the program has them."""


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 3])
def test_all_ranks_end_with_the_sum_of_all_pushes(launch: Launch, tmp_path: Path, ranks: int) -> None:
    finish(launch(ranks, PROGRAM, tmp_path, SHOAL_SECRET="s"))
    all_have_the_sum(tmp_path, ranks)


def all_have_the_sum(folder: Path, ranks: int) -> None:
    told = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    for number, rows in enumerate(ROWS):
        begun = torch.arange(rows * COLUMNS, dtype=torch.float32).reshape(rows, COLUMNS)
        expected = begun + sum(torch.tensor(each["pushed"][number]) for each in told)
        assert all(each["tables"][number] == expected.tolist() for each in told)
    for each in told:
        assert each["pushes"] == ranks * PUSHES
        assert 0 <= each["total"] <= each["most"] * each["pushes"]
        assert each["most"] <= (ranks - 1) * PUSHES
        assert ranks > 1 or each["most"] == 0


@pytest.mark.soak
def test_a_rank_whose_rows_are_lost_is_told_in_a_sentence(launch: Launch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "SHOAL_SECRET": "s"}
    first, second = (launch(0, PROGRAM, tmp_path, "lost", **meeting, RANK=str(rank)) for rank in range(2))
    second.communicate()
    finish(first, status=1)
    said = (tmp_path / "error").read_text()
    assert said.startswith("rank 0 lost the other ranks at step 7")
    assert said.endswith("restart with --resume")


@pytest.mark.soak
def test_another_user_who_knows_the_ports_of_a_run_executes_nothing_in_it(tmp_path: Path) -> None:
    """The stranger is verified: against torch.distributed.rpc, or a store of torchrun's own, it makes the folder."""
    tmp_path.chmod(0o755)
    launcher = [sys.executable, "-P", "-m", "trainer.launch", "--standalone", "--nproc-per-node=2"]
    running = subprocess.Popen(
        [*launcher, str(PROGRAM), str(tmp_path), "waits"],
        env={**os.environ, **RANK_ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (tmp_path / "port").exists() or running.poll() is not None)
    launched = psutil.Process(running.pid)
    listening = {
        each: [found.laddr for found in each.net_connections("tcp") if found.status == psutil.CONN_LISTEN]
        for each in (launched, *launched.children(recursive=True))
    }
    ports = [str(place.port) for place in listening[launched]]
    assert (tmp_path / "port").read_text() in ports
    stranger = subprocess.run(
        [sys.executable, str(STRANGER), str(tmp_path / "made"), *ports],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not (tmp_path / "made").exists()
    assert stranger.returncode == 0, stranger.stderr
    assert stranger.stdout.strip()  # it has read the store
    assert {place.ip for places in listening.values() for place in places} == {"127.0.0.1"}
    (tmp_path / "go").touch()
    finish(running)
    all_have_the_sum(tmp_path, 2)
