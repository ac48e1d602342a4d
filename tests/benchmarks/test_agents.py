"""The benchmark of what agents ask of S3, on few nodes."""

import json
from pathlib import Path

import pytest

from benchmarks import agents, record


def test_requests_of_a_few_agents_are_counted_and_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    agents.main(["--nodes", "3", "--minutes", "1"])
    kept = json.loads((tmp_path / "agents.json").read_text())
    assert 40 < kept["found"]["launch"] < 60
    hour = kept["found"]["an hour"]
    assert hour["PUT"] >= 3 * 720  # each tells every five seconds that it lives
    assert kept["dollars an hour"]["PUT"] == pytest.approx(hour["PUT"] * 0.005 / 1000)
