"""Parts of the first boot that emulated nodes do not have: the check of GPUs, and the node's own disks."""

import json
import re
import shlex
import sys
import zipfile
from pathlib import Path

import pytest

from tests.bash import Bash

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "bootstrap" / "gpu" / "boot.sh"
DISKS = "dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS"


@pytest.fixture
def bash(tmp_path):
    return Bash(tmp_path)


def boots(bash, devices="", **environment):
    """Return the report of a node on which the check of GPUs runs `devices`."""
    python = bash.root / "opt" / "pytorch" / "bin" / "python"
    python.write_text(
        f'#!/bin/bash\ncase "$*" in *json*) exec {shlex.quote(sys.executable)} "$@" ;; *devices*) {devices} ;; esac\n'
    )
    python.chmod(0o755)
    bash.add("ec2-metadata", environment.pop("metadata", "echo instance-id: i-0123456789abcdef0"))
    bash.add("flock")
    bash.add("setsid")
    real = bash.folder / "boot.sh"
    real.write_text(SCRIPT.read_text().replace("root=${NODE_ROOT:-}", f"root={shlex.quote(str(bash.root))}"))
    variables = dict.fromkeys(("DATA_BUCKET", "SHARE_ID", "CODE_URL", "WHEELS_URL"), "data")
    bash.run(str(real), **{"NODE_ROOT": "", "GPUS": "8", "SHARE_KIND": "none", **variables, **environment})
    return json.loads((bash.folder / "report").read_text())


def test_a_node_without_working_gpus_fails(bash):
    reported = boots(bash, devices='echo "PyTorch finds 0 of $3" >&2; exit 1')
    assert (reported["state"], reported["log"].splitlines()[-1]) == ("failed", "PyTorch finds 0 of 8")
    assert bash.ended.returncode == 1


@pytest.mark.parametrize(
    ("status", "environment"),
    [(0, {}), (1, {"GPUS": "0"}), (1, {"NODE_ROOT": "emulated"})],
    ids=["GPUs that compute", "a reader", "an emulated node"],
)
def test_a_ready_node_reports_its_python_version(bash, status, environment):
    variables = {name: value.replace("emulated", str(bash.root)) for name, value in environment.items()}
    reported = boots(bash, devices=f"exit {status}", **variables)
    assert (reported["state"], reported["python"]) == ("ready", ".".join(map(str, sys.version_info[:3])))


def test_an_unknown_kind_of_share_is_reported(bash, messages):
    reported = boots(bash, SHARE_KIND="nsf")
    assert (reported["state"], bash.ended.returncode) == ("failed", 1)
    messages.check(reported["log"].strip())


def test_a_node_that_cannot_read_its_id_reports_under_its_host_name(bash):
    reported = boots(bash, metadata="echo it is no instance >&2; exit 1")
    assert (reported["state"], reported["log"]) == ("failed", "it is no instance\n")
    assert "s3://data/nodes/played.json" in bash.recorded_words()


def own_disks(bash):
    (function,) = re.findall(r"^own_disks\(\) \{.*?^\}", SCRIPT.read_text(), re.DOTALL | re.MULTILINE)
    bash.run("-c", f'set -euo pipefail\nroot=$NODE_ROOT\n{function}\nown_disks || echo "not used"')
    assert bash.ended.returncode == 0, bash.ended.stderr


def disk(bash, name, *, kind="disk", blank=True):
    """Disk of the node, under the names that AWS's image gives it."""
    device = bash.root / "dev" / name
    device.parent.mkdir(parents=True, exist_ok=True)
    device.write_text(f"{kind}\n{'' if blank else 'xfs'}")
    for ending in ("", "_1"):
        link = bash.root / f"{DISKS}-{name}{ending}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(device)
    bash.add("lsblk", 'head -n 1 "${@: -1}"')
    bash.add("blkid", '[ -n "$(tail -n +2 "${@: -1}")" ] || exit 2')
    bash.add("mkfs.xfs")
    bash.add("mdadm")
    return str(device)


def made(bash):
    return [word for word in bash.recorded_words() if word in ("mkfs.xfs", "mdadm", "mount")]


@pytest.mark.parametrize(
    ("disks", "programs"),
    [
        ([], []),
        ([{}], ["mkfs.xfs", "mount"]),
        ([{}, {}], ["mdadm", "mkfs.xfs", "mount"]),
        ([{"blank": False}], []),
        ([{"kind": "part"}], []),
        ([{"kind": "disk\npart"}], []),
    ],
)
def test_only_blank_disks_are_used_and_several_become_one(bash, disks, programs):
    devices = [disk(bash, f"nvme{number}n1", **each) for number, each in enumerate(disks, 1)]
    own_disks(bash)
    calls = bash.recorded_words()
    assert made(bash) == programs
    assert (bash.root / "mnt" / "local").exists() == bool(programs)
    if len(devices) > 1:
        assert calls[calls.index("--run") + 1 :][:2] == devices
        assert "--raid-devices=2" in calls
    elif programs:
        assert calls[calls.index("mkfs.xfs") :][2] == devices[0]
        assert calls[calls.index("mount") :][1:5] == ["-o", "noatime", devices[0], str(bash.root / "mnt" / "local")]


def test_disks_that_the_image_has_mounted_are_used(bash):
    disk(bash, "nvme1n1")
    bash.add("mountpoint", '[ "${@: -1}" = "$NODE_ROOT/opt/dlami/nvme" ]')
    own_disks(bash)
    assert (bash.root / "mnt" / "local").resolve() == bash.root / "opt" / "dlami" / "nvme" / "shoal"
    assert made(bash) == []


def test_an_unreadable_disk_is_not_blank(bash):
    device = Path(disk(bash, "nvme1n1"))
    device.unlink()
    device.mkdir()  # nobody can read a folder, not even root
    bash.add("lsblk", "echo disk")
    bash.add("blkid", "exit 2")  # the same status for a blank disk and one that it cannot read
    own_disks(bash)
    assert made(bash) == []


def test_a_disk_that_mount_refuses_is_not_used(bash):
    disk(bash, "nvme1n1")
    bash.add("mount", "exit 32")
    own_disks(bash)
    assert bash.ended.stdout == "not used\n"
    assert not (bash.root / "mnt" / "local").exists()


def test_wheels_exist_for_every_python_of_the_image():
    (versions,) = re.findall(r"^GPU_PYTHONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"3.11", "3.12", "3.13", "3.14"} <= set(versions.split())
    held = zipfile.ZipFile(ROOT / "build" / "wheels" / "gpu.zip").namelist()
    for version in versions.split():
        assert any(name.startswith("h5py-") and f"-cp{version.replace('.', '')}-" in name for name in held), version


def test_packages_come_from_the_repository_that_nodes_can_reach():
    (install,) = re.findall(r"dnf install --.*", SCRIPT.read_text().replace("\\\n", " "))
    assert "--disablerepo='*' --enablerepo=amazonlinux " in install
