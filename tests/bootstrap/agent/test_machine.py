"""What an agent sees of its node."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bootstrap.agent.machine import Machine

FAILED = "NVIDIA-SMI has failed because it could not communicate with the driver."


@pytest.fixture
def prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes nvidia-smi print a text."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def write(text: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        program.chmod(0o755)

    return write


@pytest.mark.parametrize(("printed", "computes"), [("4711", True), ("", False), (FAILED, False)])
def test_only_the_numbers_of_processes_tell_that_a_gpu_computes(
    tmp_path: Path, prints: Callable[[str], None], printed: str, computes: bool
) -> None:
    prints(printed)
    assert Machine(root=tmp_path).uses_gpus() is computes


@pytest.mark.parametrize(
    ("printed", "used"), [("97\\n98\\n", 98), ("0\\n", 0), ("[N/A]\\n40\\n", 40), ("[N/A]", None), (FAILED, None)]
)
def test_the_use_of_gpus_is_the_mean_of_those_that_tell_it(
    tmp_path: Path, prints: Callable[[str], None], printed: str, used: int | None
) -> None:
    prints(printed)
    assert Machine(root=tmp_path).gpu_use() == used


def test_a_node_without_gpus_uses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not Machine(root=tmp_path).uses_gpus()
    assert Machine(root=tmp_path).gpu_use() is None
