"""What an agent sees of its node."""

import os
from pathlib import Path

import pytest

from bootstrap.agent.machine import Machine


@pytest.mark.parametrize(
    ("printed", "computes"),
    [("4711", True), ("", False), ("NVIDIA-SMI has failed because it could not communicate with the driver.", False)],
)
def test_only_the_numbers_of_processes_tell_that_a_gpu_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, computes: bool
) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    assert Machine(root=tmp_path).uses_gpus() is computes


def test_a_node_without_gpus_uses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not Machine(root=tmp_path).uses_gpus()
