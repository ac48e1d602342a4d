"""Where benchmarks leave their records."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import record


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the records that are quoted, in a project of its own with a benchmark of no work."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "quoted"
    monkeypatch.setattr(command, "KEPT", folder)
    monkeypatch.setattr(record.Log, "folder", record.OWN)
    monkeypatch.setattr(record, "_PACKAGES", ())
    none = SimpleNamespace(WHAT="nothing", FIGURES=("s",), measure=lambda run: {"case": {"s": float(run)}})
    monkeypatch.setattr(command, "TABLES", {"none": none})
    return folder


def test_a_run_leaves_the_kept_records_alone(kept: Path) -> None:
    command.main(["none", "--runs", "2"])
    assert not kept.exists()
    assert len(json.loads(Path("results/benchmarks/none.json").read_text())["runs"]) == 2
    assert "| case" in Path("results/benchmarks/none.log").read_text()


def test_a_run_that_is_to_be_kept_replaces_them(kept: Path) -> None:
    command.main(["none", "--keep"])
    assert {path.name for path in kept.iterdir()} == {"none.json", "none.log"}
    assert not Path("results").exists()
