"""Reports of a node about its disk and its GPUs."""

import os
import shutil
from unittest.mock import Mock

import pytest

from bootstrap.node import machine
from bootstrap.node.machine import Machine
from bootstrap.node.node_documents import Attempt, Member
from tests.bootstrap.node.world import request

FAILED = "NVIDIA-SMI has failed because it could not communicate with the driver."


@pytest.fixture
def prints(tmp_path, monkeypatch):
    """Function that makes a system command print a text."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def write(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{text}'\n")
        (tmp_path / name).chmod(0o755)

    return write


@pytest.mark.parametrize(("used", "reported"), [(97, ""), (98, "98% full"), (99, "99% full")])
def test_a_full_disk_is_reported(tmp_path, monkeypatch, used, reported):
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, used, 100 - used))
    node = Machine(root=tmp_path)
    assert node.full_disk() == (reported and f"the disk of {node.programs} is {reported}")


@pytest.mark.parametrize(
    ("printed", "computes", "used"),
    [
        ("4711", True, 100),
        ("", False, None),
        (FAILED, False, None),
        ("97\n98\n", True, 98),  # the mean of the GPUs that report a number
        ("0\n", True, 0),
        ("[N/A]\n40\n", True, 40),
        ("[N/A]", False, None),
    ],
)
def test_gpu_use_is_read_only_from_numbers(tmp_path, prints, printed, computes, used):
    prints("nvidia-smi", printed)
    assert (Machine(root=tmp_path).uses_gpus(), Machine(root=tmp_path).gpu_use()) == (computes, used)


def test_a_node_without_gpus_reports_no_gpu_use(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not Machine(root=tmp_path).uses_gpus()
    assert Machine(root=tmp_path).gpu_use() is None


@pytest.mark.parametrize(("share", "others"), [("nfs", (2, 3)), ("nfs", ()), ("efs", (2, 3))])
def test_the_first_node_exports_its_folder_only_to_the_others(tmp_path, monkeypatch, share, others):
    calls = []
    monkeypatch.setattr(machine, "call", calls.append)
    monkeypatch.setattr(machine, "run_command", lambda _: Mock(returncode=1))
    members = tuple(Member(instance=f"i-0000000{n}", address=f"10.0.0.{n}", gpus=1) for n in (1, *others))
    attempt = Attempt(number=1, token="0a1b2c3d", members=members, port=20_000)
    Machine(root=tmp_path).serve(request(share=share), attempt)
    exported = [word.partition(":")[0] for words in calls for word in words if ":" in word]
    assert exported == [f"10.0.0.{n}" for n in others if share == "nfs"]
