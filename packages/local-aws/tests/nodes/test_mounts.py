import pytest
from tests.local_aws.scaling import Group

pytestmark = pytest.mark.usefixtures("raised_quotas")

USER_DATA = """#!/bin/bash
setsid sleep 1000 &
touch $NODE_ROOT/ready
"""
SHARE = 'share=$NODE_ROOT/mnt/share; mkdir -p "$share"; '


class Nodes(Group):
    def address(self, node):
        return str(self.instance(node)["PrivateIpAddress"])

    def execute(self, node, script):
        """Run a command on a node. Return its exit code, standard output and standard error."""
        done = self.run(node, SHARE + script)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def nodes(client, aws):
    return Nodes(aws, client, "sharing", user_data=USER_DATA)


@pytest.fixture
def pair(nodes):
    nodes.scale(2)
    yield nodes.serving(2)
    nodes.scale(0)


def serve(nodes, server, to):
    start = f"systemctl start nfs-server && exportfs -o rw,no_root_squash {to}:/mnt/share"
    assert nodes.execute(server, start) == (0, "", "")


def mount(nodes, server, client):
    return nodes.execute(client, f'mount -t nfs4 -o hard,nconnect=8 {nodes.address(server)}:/mnt/share "$share"')


def test_a_mount_hides_the_previous_content(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    nodes.execute(client, 'echo own >"$share/file"')
    mount(nodes, server, client)
    assert nodes.execute(client, 'ls "$share"')[1] == ""
    assert nodes.execute(client, 'umount --force --lazy "$share" && cat "$share/file"')[1] == "own\n"
    code, _, error = nodes.execute(client, 'umount "$share"')
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
def test_a_mount_without_permission_fails(prepare, said, nodes, pair):
    server, client = pair
    if prepare is not None:
        assert nodes.execute(server, prepare)[0] == 0
    code, _, error = mount(nodes, server, client)
    assert code == 32
    assert said in error


def test_an_export_ends_with_its_node(nodes, pair):
    server, client = pair
    serve(nodes, server, "'*'")
    address = nodes.address(server)
    mount(nodes, server, client)
    nodes.ec2.terminate_instances(InstanceIds=[server])
    assert nodes.execute(client, 'ls "$share/"')[0] != 0
    code, _, error = nodes.execute(client, f'umount --lazy "$share"; mount -t nfs4 {address}:/mnt/share "$share"')
    assert (code, "No route to host" in error) == (32, True)


def test_an_invalid_export_is_refused(nodes, pair):
    assert "Failed to stat /nowhere" in nodes.execute(pair[0], "exportfs -o rw '*:/nowhere'")[2]
    assert "not 10.0.0.0/16" in nodes.execute(pair[0], "exportfs -o rw 10.0.0.0/16:/mnt/share")[2]
    assert "Unit httpd not found" in nodes.execute(pair[0], "systemctl start httpd")[2]
