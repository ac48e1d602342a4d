"""The benchmark of goodput, on few nodes."""

import json
from pathlib import Path

import pytest

from benchmarks import goodput, record


def test_lost_nodes_cost_less_than_a_new_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    goodput.main(["--nodes", "3", "--hours", "0.25", "--every", "5"])
    found = json.loads((tmp_path / "goodput.json").read_text())["found"]["3"]
    assert found["attempts"] == 1 + 2 * 2  # the others go on, and then the next node joins, twice
    assert found["restarted"] < found["goodput"] < found["of booted"] < 1
    assert found["booting"] == pytest.approx(2 * 120 / (3 * 900), rel=0.05)
