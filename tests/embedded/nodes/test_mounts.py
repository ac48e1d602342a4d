"""Folders that nodes share by NFS, and commands on nodes."""

import base64
from typing import Any

import pytest

from embedded.processes import marked_processes
from tests import on_node
from tests.waiting import until

USER_DATA = """#!/bin/bash
touch $NODE_ROOT/busy.lock
cat >$NODE_ROOT/beat <<'BEAT'
while sleep 0.05; do flock -n -x "$NODE_ROOT/busy.lock" true || date >>"$NODE_ROOT/beats"; done
BEAT
setsid bash $NODE_ROOT/beat </dev/null >/dev/null 2>&1 &
echo $! > $NODE_ROOT/beat.pid
touch $NODE_ROOT/ready
"""
SHARE = 'share=$NODE_ROOT/mnt/share; mkdir -p "$share"; '


class Nodes:
    """Nodes of one group, and commands on them."""

    def __init__(self, client, aws) -> None:
        self.asg, self.ec2 = client("autoscaling"), client("ec2")
        self._folder = aws.folder
        user_data = base64.b64encode(USER_DATA.encode()).decode()
        data = {"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "g5.xlarge", "UserData": user_data}
        self.ec2.create_launch_template(LaunchTemplateName="sharing", LaunchTemplateData=data)
        self.asg.create_auto_scaling_group(
            AutoScalingGroupName="sharing",
            MinSize=0,
            MaxSize=2,
            AvailabilityZones=["us-east-1a"],
            LaunchTemplate={"LaunchTemplateName": "sharing", "Version": "$Latest"},
        )

    def start(self) -> list[str]:
        self.asg.set_desired_capacity(AutoScalingGroupName="sharing", DesiredCapacity=2)

        def ready() -> Any:
            found = self.asg.describe_auto_scaling_groups(AutoScalingGroupNames=["sharing"])["AutoScalingGroups"]
            ids = [member["InstanceId"] for member in found[0]["Instances"]]
            return len(ids) == 2 and all((self.root(each) / "ready").exists() for each in ids) and ids

        return list(until(ready))

    def stop(self) -> None:
        self.asg.set_desired_capacity(AutoScalingGroupName="sharing", DesiredCapacity=0)

    def root(self, node: str):
        return self._folder / "nodes" / node

    def address(self, node: str) -> str:
        found = self.ec2.describe_instances(InstanceIds=[node])["Reservations"][0]["Instances"][0]
        return str(found["PrivateIpAddress"])

    def run(self, node: str, script: str) -> tuple[int, str, str]:
        """A command's exit code, output and error."""
        done = on_node.run(self.root(node), SHARE + script)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def nodes(client, aws):
    return Nodes(client, aws)


@pytest.fixture
def pair(nodes):
    """Two nodes, a server and a client."""
    yield nodes.start()
    nodes.stop()


def serve(nodes: Nodes, server: str, to: str) -> None:
    code, _, error = nodes.run(server, f"systemctl start nfs-server && exportfs -o rw,no_root_squash {to}:/mnt/share")
    assert (code, error) == (0, "")


def mount(nodes: Nodes, server: str, client: str) -> tuple[int, str, str]:
    return nodes.run(client, f'mount -t nfs4 -o hard,nconnect=8 {nodes.address(server)}:/mnt/share "$share"')


def test_what_one_node_exports_another_one_mounts(nodes, pair):
    server, client = pair
    serve(nodes, server, nodes.address(client))
    assert mount(nodes, server, client) == (0, "", "")
    nodes.run(client, 'echo text >"$share/file"')
    assert nodes.run(server, 'cat "$share/file"')[1] == "text\n"
    assert nodes.run(client, 'findmnt --mountpoint "$share" >/dev/null')[0] == 0
    assert nodes.run(server, 'findmnt --mountpoint "$share"')[0] == 1


def test_what_lay_there_is_hidden_while_something_is_mounted_over_it(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    nodes.run(client, 'echo own >"$share/file"')
    mount(nodes, server, client)
    assert nodes.run(client, 'ls "$share"')[1] == ""
    assert nodes.run(client, 'umount --force --lazy "$share" && cat "$share/file"')[1] == "own\n"
    code, _, error = nodes.run(client, 'umount "$share"')
    assert (code, "not mounted" in error) == (32, True)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (None, "Connection refused"),
        ("systemctl start nfs-server", "access denied by server"),
        ("systemctl start nfs-server; exportfs -o rw 127.1.0.0:/mnt/share", "access denied by server"),
        ("systemctl start nfs-server; exportfs -o rw '*:/mnt'; rmdir $share", "No such file or directory"),
    ],
)
def test_a_mount_that_the_server_does_not_grant_fails(prepare, said, nodes, pair):
    server, client = pair
    if prepare is not None:
        assert nodes.run(server, prepare)[0] == 0
    code, _, error = mount(nodes, server, client)
    assert code == 32
    assert said in error


def test_what_a_node_exported_is_gone_with_it(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    address = nodes.address(server)
    mount(nodes, server, client)
    nodes.ec2.terminate_instances(InstanceIds=[server])
    assert nodes.run(client, 'ls "$share/"')[0] != 0
    code, _, error = nodes.run(client, f'umount --lazy "$share"; mount -t nfs4 {address}:/mnt/share "$share"')
    assert (code, "No route to host" in error) == (32, True)


def test_what_cannot_be_exported_is_refused(nodes, pair):
    assert "Failed to stat /nowhere" in nodes.run(pair[0], "exportfs -o rw '*:/nowhere'")[2]
    assert "not 10.0.0.0/16" in nodes.run(pair[0], "exportfs -o rw 10.0.0.0/16:/mnt/share")[2]
    assert "Unit httpd not found" in nodes.run(pair[0], "systemctl start httpd")[2]


def test_what_user_data_starts_runs_on_and_dies_with_its_machine(nodes, pair, aws):
    node = pair[0]
    root = nodes.root(node)
    process = int((root / "beat.pid").read_text())
    mark = ("NODE_ROOT", str(root))
    until(lambda: "user data ended with exit code 0" in (aws.folder / "logs" / f"{node}.log").read_text())
    assert process in marked_processes(*mark)
    assert not (root / "beats").exists()
    code = nodes.run(
        node, 'exec 9<"$NODE_ROOT/busy.lock"; flock -s 9; until [ -s "$NODE_ROOT/beats" ]; do sleep 0.05; done'
    )
    assert code[0] == 0
    nodes.stop()
    until(lambda: not marked_processes(*mark))
