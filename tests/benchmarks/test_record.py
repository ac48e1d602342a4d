"""The place and content of the benchmarks' records."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import record


def run_none(arguments: Sequence[str]) -> None:
    log = record.Log("none")
    log.table(["case"], [[each] for each in arguments])
    log.keep({"arguments": list(arguments)})


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the quoted records, in a separate project with an empty benchmark."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "quoted"
    monkeypatch.setattr(command, "KEPT", folder)
    monkeypatch.setattr(record.Log, "folder", record.OWN)
    monkeypatch.setattr(record, "_PACKAGES", ())
    monkeypatch.setitem(sys.modules, "benchmarks.none", SimpleNamespace(main=run_none))
    monkeypatch.setattr(command, "PROGRAMS", ("none",))
    return folder


def test_run_with_keep_replaces_the_quoted_records(kept: Path) -> None:
    command.main(["none", "--keep"])
    assert {path.name for path in kept.iterdir()} == {"none.json", "none.log"}
    assert not Path("results").exists()


def test_run_without_keep_writes_own_records_with_installed_packages(kept: Path, monkeypatch) -> None:
    monkeypatch.setattr(record, "_PACKAGES", ("numpy", "no-such-package"))
    command.main(["none", "--runs", "2"])
    assert not kept.exists()
    found = json.loads(Path("results/benchmarks/none.json").read_text())
    assert (found["arguments"], list(found["packages"])) == (["--runs", "2"], ["numpy"])
    assert "| case   |" in Path("results/benchmarks/none.log").read_text()


def test_record_names_the_gpus_of_a_torch_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "gpus" not in record.machine()
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True, nccl=SimpleNamespace(version=lambda: (2, 28, 9))),
        version=SimpleNamespace(cuda="13.0"),
        backends=SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 91002)),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert record.machine()["gpus"] == ["unknown, as nvidia-smi does not answer"]
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'Some GPU, 81559 MiB, 580.1'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    machine = record.machine()
    assert machine["gpus"] == ["Some GPU, 81559 MiB, 580.1"]
    assert (machine["cuda"], machine["cudnn"], machine["nccl"]) == ("13.0", 91002, "2.28.9")
