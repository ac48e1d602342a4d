"""The benchmark of predictions, on little work."""

import json
from pathlib import Path

import pytest

from benchmarks import plan, record
from bootstrap.training import calibration


@pytest.mark.slow
def test_each_kind_of_ranks_is_predicted_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    monkeypatch.setattr(calibration, "_BATCHES", (64,))
    monkeypatch.setattr(calibration, "_SECONDS", 0.2)
    plan.main(["--runs", "1", "--rows", "1000", "2000", "--mb", "1", "2", "3"])
    runs = json.loads((tmp_path / "plan.json").read_text())["runs"]
    assert len(runs) == 7
    assert all(figures["predicted"] > 0 and figures["measured"] > 0 for *_, of in runs for figures in of)
