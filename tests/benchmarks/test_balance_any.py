"""The benchmark of `shoal.balance` measures all of its cases."""

import json
from pathlib import Path

import pytest

from benchmarks import balance_any, record


@pytest.mark.soak
def test_balanced_ranks_are_compared_with_equal_and_with_the_best_fixed_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    monkeypatch.setattr(balance_any, "RATES", {"two": (2000.0, 500.0)})
    balance_any.main(["--runs", "1", "--steps", "24"])
    ((case,), (run,)) = (found := json.loads((tmp_path / "balance_any.json").read_text())["cases"]), found[0]["runs"]
    assert case["rates"] == [2000.0, 500.0]
    assert run["equal shares"]["split"] == [64, 64]
    assert run["best fixed shares"]["split"] == [102, 26]
    fast, slow = run["balanced"]["split"]
    assert (fast + slow, fast > slow) == (128, True)
    assert all(each["overhead"] > 0 for each in run.values())
