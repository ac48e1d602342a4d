import pytest
from shoal_local_aws.processes import marked_processes
from tests.local_aws.scaling import Group
from tests.local_aws.waiting import until

pytestmark = pytest.mark.usefixtures("raised_quotas")

USER_DATA = """#!/bin/bash
touch $NODE_ROOT/busy.lock
cat >$NODE_ROOT/beat <<'BEAT'
while sleep 0.05; do flock -n -x "$NODE_ROOT/busy.lock" true || date >>"$NODE_ROOT/ticks"; done
BEAT
setsid bash $NODE_ROOT/beat </dev/null >/dev/null 2>&1 &
echo $! > $NODE_ROOT/beat.pid
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


def test_a_node_mounts_the_export_of_another(nodes, pair):
    server, client = pair
    serve(nodes, server, nodes.address(client))
    assert mount(nodes, server, client) == (0, "", "")
    nodes.execute(client, 'echo text >"$share/file"')
    assert nodes.execute(server, 'cat "$share/file"')[1] == "text\n"
    assert nodes.execute(client, 'findmnt --mountpoint "$share" >/dev/null')[0] == 0
    assert nodes.execute(server, 'findmnt --mountpoint "$share"')[0] == 1


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


def test_processes_of_user_data_end_with_their_machine(nodes, pair, aws):
    node = pair[0]
    root = nodes.root(node)
    process = int((root / "beat.pid").read_text())
    mark = ("NODE_ROOT", str(root))
    until(lambda: "user data ended with exit code 0" in (aws.folder / "logs" / f"{node}.log").read_text())
    assert process in marked_processes(*mark)
    assert not (root / "ticks").exists()
    waiting = 'exec 9<"$NODE_ROOT/busy.lock"; flock -s 9; until [ -s "$NODE_ROOT/ticks" ]; do sleep 0.05; done'
    assert nodes.execute(node, waiting)[0] == 0
    nodes.scale(0)
    until(lambda: not marked_processes(*mark))
