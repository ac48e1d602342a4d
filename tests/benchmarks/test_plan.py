"""The benchmark of predictions, on little work."""

import json
from pathlib import Path

import pytest

from benchmarks import plan, record
from bootstrap.training import calibration


@pytest.mark.slow
def test_each_kind_of_ranks_is_predicted_simulated_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    monkeypatch.setattr(calibration, "_BATCHES", (64,))
    monkeypatch.setattr(calibration, "_SECONDS", 0.2)
    monkeypatch.setattr(plan, "_STEPS", 5)
    monkeypatch.setattr(plan, "_BALANCES", ("off", "epoch:1"))
    monkeypatch.setattr(plan, "_RANKS", plan._RANKS[-1:])
    monkeypatch.setattr(plan, "_ASLEEP", (plan._Ranks("3 asleep", 3, sleep=(2000.0, 2000.0, 1000.0)),))
    plan.main(["--runs", "1", "--rows", "1000", "2000", "--mb", "1", "3", "2"])
    runs = json.loads((tmp_path / "plan.json").read_text())["runs"]
    assert [case[1] for case in runs if case[0] == "3 asleep"] == ["off", "epoch:1"]
    assert len(runs) == 5
    for ranks, _, (figures,) in runs:
        names = {f"{told}{of}" for told in ("predicted", "simulated", "measured") for of in ("", " steps")}
        assert figures.keys() == ({"predicted", "measured"} if ranks == "preprocessing" else names)
        assert min(figures.values()) > 0
    log = (tmp_path / "plan.log").read_text()
    assert log.count("| measured, s") == 2
