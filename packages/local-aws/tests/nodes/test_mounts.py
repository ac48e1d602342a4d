"""Folders that nodes share by NFS, and commands on nodes."""

import pytest
from shoal_local_aws.processes import marked_processes
from tests.local_aws.scaling import Group
from tests.local_aws.waiting import until

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


class Nodes(Group):
    """Nodes of one group, with a folder for a share."""

    def address(self, node: str) -> str:
        return str(self.instance(node)["PrivateIpAddress"])

    def tell(self, node: str, script: str) -> tuple[int, str, str]:
        """A command's exit code, output and error."""
        done = self.run(node, SHARE + script)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def nodes(client, aws):
    return Nodes(aws, client, "sharing", user_data=USER_DATA)


@pytest.fixture
def pair(nodes):
    """Two nodes, a server and a client."""
    nodes.scale(2)
    yield nodes.serving(2)
    nodes.scale(0)


def serve(nodes: Nodes, server: str, to: str) -> None:
    code, _, error = nodes.tell(server, f"systemctl start nfs-server && exportfs -o rw,no_root_squash {to}:/mnt/share")
    assert (code, error) == (0, "")


def mount(nodes: Nodes, server: str, client: str) -> tuple[int, str, str]:
    return nodes.tell(client, f'mount -t nfs4 -o hard,nconnect=8 {nodes.address(server)}:/mnt/share "$share"')


def test_what_one_node_exports_another_one_mounts(nodes, pair):
    server, client = pair
    serve(nodes, server, nodes.address(client))
    assert mount(nodes, server, client) == (0, "", "")
    nodes.tell(client, 'echo text >"$share/file"')
    assert nodes.tell(server, 'cat "$share/file"')[1] == "text\n"
    assert nodes.tell(client, 'findmnt --mountpoint "$share" >/dev/null')[0] == 0
    assert nodes.tell(server, 'findmnt --mountpoint "$share"')[0] == 1


def test_what_lay_there_is_hidden_while_something_is_mounted_over_it(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    nodes.tell(client, 'echo own >"$share/file"')
    mount(nodes, server, client)
    assert nodes.tell(client, 'ls "$share"')[1] == ""
    assert nodes.tell(client, 'umount --force --lazy "$share" && cat "$share/file"')[1] == "own\n"
    code, _, error = nodes.tell(client, 'umount "$share"')
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
        assert nodes.tell(server, prepare)[0] == 0
    code, _, error = mount(nodes, server, client)
    assert code == 32
    assert said in error


def test_what_a_node_exported_is_gone_with_it(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    address = nodes.address(server)
    mount(nodes, server, client)
    nodes.ec2.terminate_instances(InstanceIds=[server])
    assert nodes.tell(client, 'ls "$share/"')[0] != 0
    code, _, error = nodes.tell(client, f'umount --lazy "$share"; mount -t nfs4 {address}:/mnt/share "$share"')
    assert (code, "No route to host" in error) == (32, True)


def test_what_cannot_be_exported_is_refused(nodes, pair):
    assert "Failed to stat /nowhere" in nodes.tell(pair[0], "exportfs -o rw '*:/nowhere'")[2]
    assert "not 10.0.0.0/16" in nodes.tell(pair[0], "exportfs -o rw 10.0.0.0/16:/mnt/share")[2]
    assert "Unit httpd not found" in nodes.tell(pair[0], "systemctl start httpd")[2]


def test_what_user_data_starts_runs_on_and_dies_with_its_machine(nodes, pair, aws):
    node = pair[0]
    root = nodes.root(node)
    process = int((root / "beat.pid").read_text())
    mark = ("NODE_ROOT", str(root))
    until(lambda: "user data ended with exit code 0" in (aws.folder / "logs" / f"{node}.log").read_text())
    assert process in marked_processes(*mark)
    assert not (root / "beats").exists()
    code = nodes.tell(
        node, 'exec 9<"$NODE_ROOT/busy.lock"; flock -s 9; until [ -s "$NODE_ROOT/beats" ]; do sleep 0.05; done'
    )
    assert code[0] == 0
    nodes.scale(0)
    until(lambda: not marked_processes(*mark))
