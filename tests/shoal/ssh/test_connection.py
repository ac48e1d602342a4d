"""SSH connections use OpenSSH's configuration and refuse unknown keys; documents in the shared folder are atomic."""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ShoalError
from shoal.backends.hosts import store_of
from shoal.ssh.connection import Connection, LostError
from shoal.ssh.group import HostGroup
from shoal.ssh.hosts_file import read_hosts
from shoal.ssh.payload import CodePayload
from tests.bootstrap.node.stores import check_store
from tests.ssh_hosts import ssh_hosts


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with ssh_hosts(tmp_path_factory.mktemp("hosts")) as found:
        yield found


@pytest.fixture
def hosts(made, monkeypatch):
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return made


def test_unknown_hosts_and_rejected_keys_are_reported(hosts):
    (host, other) = read_hosts(hosts.file).hosts
    Connection(host).close()
    known = hosts.home / ".ssh" / "known_hosts"
    lines = known.read_text().splitlines(keepends=True)
    try:
        known.write_text(lines[1])
        with pytest.raises(ShoalError, match="is not in your known_hosts"):
            Connection(host)
        known.write_text(lines[1].replace(str(other.port), str(host.port)))
        with pytest.raises(ShoalError, match="differs from your known_hosts"):
            Connection(host)
    finally:
        known.write_text("".join(lines))
    key = hosts.home / ".ssh" / "id_ed25519"
    key.rename(key.with_suffix(".away"))
    try:
        with pytest.raises(ShoalError, match="accepts none of your keys"):
            Connection(host)
    finally:
        key.with_suffix(".away").rename(key)


def test_concurrent_changes_of_a_document_succeed_once(hosts, tmp_path):
    file = read_hosts(hosts.file)
    with closing(HostGroup(file)) as one, closing(HostGroup(file)) as other:
        check_store(store_of(one), store_of(other), tmp_path / "file")


def test_the_code_is_sent_once_and_again_after_its_deletion(hosts):
    connection, code = Connection(read_hosts(hosts.file).hosts[0]), CodePayload()
    with closing(connection):
        folder = Path(code.install(connection))
        assert folder.parent == hosts.homes[0] / ".shoal" / "code"
        (folder / "left").touch()
        assert Path(code.install(connection)) == folder
        assert (folder / "left").exists()
        shutil.rmtree(hosts.homes[0] / ".shoal")
        assert (Path(code.install(connection)) / "trainer" / "launch.py").exists()
        assert [path.name for path in folder.parent.iterdir()] == [folder.name]
        shutil.rmtree(hosts.homes[0] / ".shoal")
        (hosts.homes[0] / ".shoal").touch()
        with pytest.raises(ShoalError, match=r"cannot copy Shoal's code to \S+:/\S+: "):
            code.install(connection)
        (hosts.homes[0] / ".shoal").unlink()


def test_an_unusable_shared_folder_is_reported(hosts):
    (hosts.folder / "file").write_text("")
    file = replace(read_hosts(hosts.file), folder=f"{hosts.folder}/file/below")
    with closing(HostGroup(file)) as group, pytest.raises(ShoalError, match=r"cannot use /\S+/file/below: "):
        store_of(group).write("requests/a.json", "1")


def test_a_stale_lock_is_removed(hosts, monkeypatch):
    monkeypatch.setattr("bootstrap.node.folder._STALE_LOCK_SECONDS", 0.3)
    with closing(HostGroup(read_hosts(hosts.file))) as group:
        folder = store_of(group)
        folder.write("requests/c.json.lock", "of a command that was killed")
        assert folder.write_if("requests/c.json", "1", None)
        assert folder.write_if("requests/c.json", "2", folder.read("requests/c.json"))
        assert list(folder.list("requests/c")) == ["requests/c.json"]


def test_an_unsupported_proxy_jump_is_reported(hosts):
    config = hosts.home / ".ssh" / "config"
    config.write_text("Host 127.0.0.1\n  ProxyJump gate\n")
    try:
        with pytest.raises(ShoalError, match=r"ProxyCommand ssh -W %h:%p gate$"):
            Connection(read_hosts(hosts.file).hosts[1])
    finally:
        config.unlink()


def test_another_host_replaces_a_lost_one(hosts):
    file = read_hosts(hosts.file)
    with closing(HostGroup(file)) as group:
        folder = store_of(group)
        folder.write("requests/b.json", "1")
        group.connect(file.hosts[0]).close()
        hosts.servers[hosts.ports[0]].terminate()
        hosts.servers[hosts.ports[0]].wait()
        assert folder.read("requests/b.json").text == "1"
        with pytest.raises(LostError, match="does not answer"):
            group.connect(file.hosts[0])
        with pytest.raises(ShoalError, match="check that the host is running"):
            group.on_all(lambda _: None)
