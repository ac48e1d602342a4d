"""Tables that all ranks keep together: no push is lost, and each counts what came before it."""

import json
import socket
from pathlib import Path

import pytest
import torch

from tests.trainer.conftest import Launch

PROGRAM = Path(__file__).with_name("serving.py")
ROWS, COLUMNS, PUSHES = (11, 6), 3, 40
"""As the program has them."""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_all_ranks_end_with_the_sum_of_all_pushes(launch: Launch, tmp_path: Path, ranks: int) -> None:
    process = launch(ranks, PROGRAM, tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    told = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    for number, rows in enumerate(ROWS):
        begun = torch.arange(rows * COLUMNS, dtype=torch.float32).reshape(rows, COLUMNS)
        expected = begun + sum(torch.tensor(each["pushed"][number]) for each in told)
        assert all(each["tables"][number] == expected.tolist() for each in told)
    for each in told:
        assert each["pushes"] == ranks * PUSHES
        assert 0 <= each["total"] <= each["most"] * each["pushes"]
        assert each["most"] <= (ranks - 1) * PUSHES
        assert ranks > 1 or each["most"] == 0


@pytest.mark.slow
def test_a_rank_whose_rows_are_lost_is_told_in_a_sentence(launch: Launch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    first, second = (launch(0, PROGRAM, tmp_path, "lost", **meeting, RANK=str(rank)) for rank in range(2))
    second.communicate(timeout=120)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 1, errors
    said = (tmp_path / "error").read_text()
    assert said.startswith("rank 0 lost the other ranks at step 7")
    assert said.endswith("start again with --resume")
