import os
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.processes import marked_processes
from tests.local_aws.scaling import Group

pytestmark = pytest.mark.usefixtures("raised_quotas")

USER_DATA = """#!/bin/bash
setsid sleep 1000 &
echo ready > $NODE_ROOT/ready
"""


@pytest.fixture(scope="module")
def group(client, aws):
    named = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "workers"}]}]
    data = {"IamInstanceProfile": {"Name": "nodes"}}
    data["TagSpecifications"] = named
    tags = [
        {"Key": "shoal:group", "Value": "workers", "PropagateAtLaunch": True},
        {"Key": "kept", "Value": "here", "PropagateAtLaunch": False},
    ]
    return Group(aws, client, "workers", data=data, user_data=USER_DATA, Tags=tags)


@pytest.fixture
def two(group):
    group.scale(2)
    return group.serving(2)


def output_on(group, node, script):
    """Run a script on a node, and return its standard output and standard error together."""
    return group.run(node, f"exec 2>&1; {script}").stdout


def test_a_node_does_not_see_the_users_environment_or_gpu(group, two):
    script = "$NODE_ROOT/opt/pytorch/bin/python -c 'import numpy; print(1)'; echo $VIRTUAL_ENV"
    assert output_on(group, two[0], f'{script}; echo "${{CUDA_VISIBLE_DEVICES-unset}}"') == "1\n\n\n"


def test_a_group_with_instances_is_not_deleted(group, two):
    with pytest.raises(ClientError, match="ResourceInUse"):
        group.asg.delete_auto_scaling_group(AutoScalingGroupName=group.name)


@pytest.mark.parametrize("name", ["halt", "poweroff", "reboot", "shutdown"])
def test_a_node_cannot_switch_this_computer_off(name, group, two, aws):
    found = output_on(group, two[0], f"command -v {name}").strip()
    assert found == str(aws.folder / "commands" / name)  # else the next line runs the command of this computer
    assert output_on(group, two[0], f"{found} now; echo $?").endswith("with EC2's API\n1\n")


def test_nodes_use_different_cores(group, two):
    said = [output_on(group, node, "grep Cpus_allowed_list /proc/self/status") for node in two]
    cores = {int(line.split()[-1]) for line in said}
    assert len(cores) == min(2, len(os.sched_getaffinity(0)))


def test_all_nodes_mount_the_same_file_system(group, two, client, aws):
    efs = client("efs")
    share = efs.create_file_system(CreationToken="share")["FileSystemId"]
    mount = f"mkdir -p $NODE_ROOT/mnt/share; mount -t efs -o tls,iam {share}:/ $NODE_ROOT/mnt/share"
    assert "has no mount target" in output_on(group, two[0], mount)
    subnet = client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    target = efs.create_mount_target(FileSystemId=share, SubnetId=subnet)["MountTargetId"]
    output_on(group, two[0], f"{mount}; echo text > $NODE_ROOT/mnt/share/file")
    assert output_on(group, two[1], f"{mount}; cat $NODE_ROOT/mnt/share/file") == "text\n"
    efs.delete_mount_target(MountTargetId=target)
    efs.delete_file_system(FileSystemId=share)
    assert not (aws.folder / "efs" / share).exists()


def test_lowering_the_capacity_ends_processes_and_leaves_no_volume(group, two):
    roots = [str(group.root(identifier)) for identifier in two]
    assert all(marked_processes("NODE_ROOT", root) for root in roots)
    group.scale(0)
    assert group.serving(0) == []
    for identifier, root in zip(two, roots, strict=True):
        assert marked_processes("NODE_ROOT", root) == []
        assert not Path(root).exists()
        assert group.instance(identifier)["State"]["Name"] == "terminated"
    assert group.ec2.describe_volumes()["Volumes"] == []
