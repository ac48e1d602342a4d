"""Tables that all ranks keep together: no push is lost, and each counts what came before it."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.conftest import Launch
from tests.trainer.runs import finish

ROWS, COLUMNS, PUSHES = (11, 6), 3, 40
"""As the program has them."""


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 3])
def test_all_ranks_end_with_the_sum_of_all_pushes(launch: Launch, tmp_path: Path, ranks: int) -> None:
    finish(launch(ranks, Path(__file__).with_name("serving.py"), tmp_path, SHOAL_SECRET="s"))
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
