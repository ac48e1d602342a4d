"""The benchmark of goodput, on few nodes."""

import json
from pathlib import Path

import pytest

from benchmarks import goodput, record


@pytest.mark.soak
def test_lost_nodes_cost_less_than_a_new_cluster_and_those_that_are_shut_down_still_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    goodput.main(["--nodes", "3", "--hours", "0.25", "--every", "5"])
    kept = json.loads((tmp_path / "goodput.json").read_text())
    lost, off = kept["found"]["3 lost"], kept["found"]["3 shut down"]
    assert lost["attempts"] == off["attempts"] == 1 + 2 * 2  # the others go on, and then the next node joins, twice
    assert kept["restarted"] < lost["goodput"] < off["goodput"] < off["of booted"] < 1
    assert lost["booting"] == pytest.approx(2 * 120 / (3 * 900), rel=0.05)
    assert off["repeated"] == 0
