"""What an agent sees of its node, and what is wrong with one that still answers."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bootstrap.agent.health import HUNG_SECONDS, Health
from bootstrap.agent.machine import Machine

FAILED = "NVIDIA-SMI has failed because it could not communicate with the driver."


class Node:
    """A node whose clock a test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.health = Health(folder, lambda: self.now)

    def after(self, seconds: float, step: int | None = None) -> str:
        self.now += seconds
        return self.health.look(step)


@pytest.fixture
def prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a command of the system print a text."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{text}'\n")
        (tmp_path / name).chmod(0o755)

    return write


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_nothing_is_said_of_a_node_that_works(node: Node) -> None:
    assert [node.after(30, step) for step in (None, 10, 20, 30)] == [""] * 4


def test_a_full_disk_is_named(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 99, 1))
    assert node.after(30) == f"the disk of {tmp_path} is 99% full"


def test_ranks_that_come_no_further_are_named_after_many_times_a_steps_time(node: Node) -> None:
    node.after(30, 1)
    node.after(100, 101)  # a second each
    assert node.after(HUNG_SECONDS - 1, 101) == ""
    assert node.after(1, 101) == "no step for 5 minutes, where one took 1.00 s before"
    assert node.after(30, 102) == ""
    slow = Node(Path("/"))
    slow.after(0, 0)
    slow.after(100, 1)  # 100 s
    assert slow.after(HUNG_SECONDS, 1) == ""


@pytest.mark.parametrize(
    ("printed", "computes", "used"),
    [
        ("4711", True, 100),
        ("", False, None),
        (FAILED, False, None),
        ("97\n98\n", True, 98),  # the mean of those that tell it
        ("0\n", True, 0),
        ("[N/A]\n40\n", True, 40),
        ("[N/A]", False, None),
    ],
)
def test_the_use_of_gpus_is_told_by_numbers_alone(
    tmp_path: Path, prints: Callable[..., None], printed: str, computes: bool, used: int | None
) -> None:
    prints("nvidia-smi", printed)
    assert (Machine(root=tmp_path).uses_gpus(), Machine(root=tmp_path).gpu_use()) == (computes, used)


def test_a_node_without_gpus_uses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not Machine(root=tmp_path).uses_gpus()
    assert Machine(root=tmp_path).gpu_use() is None
