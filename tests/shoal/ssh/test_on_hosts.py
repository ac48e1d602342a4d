"""Training runs on hosts with a real SSH server: following, stopping, resuming, and lost hosts."""

import os
import signal
from contextlib import suppress

import pytest

from tests.secrets import places_of
from tests.shoal.backends.on_nodes import made_dataset
from tests.shoal.ssh.on_hosts import LONG, Training
from tests.ssh_hosts import ssh_hosts

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with ssh_hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return made_dataset(tmp_path_factory.mktemp("data") / "dataset.h5")


def test_hosts_learn_what_this_machine_learns(hosts, dataset, tmp_path):
    training = Training(hosts, dataset, tmp_path / "out", "--epochs", "3")
    training.until("attempts/*")
    key = (hosts.home / ".ssh" / "id_ed25519").read_text().splitlines()[1]
    assert places_of(key, hosts.folder, tmp_path, *hosts.homes) == []
    found = training.ended()
    assert places_of(key, hosts.folder, tmp_path, *hosts.homes) == []
    here = Training(hosts, dataset, tmp_path / "here", "--epochs", "3", where=("--local", "--nodes", "2")).ended()
    assert (found["stopped"], found["rows_seen"]) == (False, 3 * found["rows"])
    assert found["log_loss"] == pytest.approx(here["log_loss"], rel=1e-3)
    assert (tmp_path / "out" / "model" / "config.json").exists()
    assert len(list((hosts.folder / "datasets").iterdir())) == 1
    made = [path for home in hosts.homes for path in home.glob(".shoal/code/*/bootstrap")]
    assert [oct(path.stat().st_mode)[-3:] for path in made] == ["755", "755"]


def test_a_detached_run_continues_and_the_same_command_follows_it(hosts, dataset, tmp_path):
    options = ("--epochs", "20", "--slow", "0:5", "--slow", "1:5")
    left = Training(hosts, dataset, tmp_path / "out", *options, "--detach").ended()
    assert (left["detached"], left["hosts"]) == (True, str(hosts.file))
    file, text = hosts.file, hosts.file.read_text()
    file.write_text(text.replace(f"folder={hosts.folder}", f"folder={tmp_path}"))
    elsewhere = Training(hosts, dataset, tmp_path / "elsewhere", "--epochs", "1")
    printed = " ".join(elsewhere.process.communicate()[1].split())
    assert f"a training run in a different folder, {hosts.folder}, uses this host; wait until it ends" in printed
    file.write_text(text)
    other = Training(hosts, dataset, tmp_path / "other", "--epochs", "1")
    printed = " ".join(other.process.communicate()[1].split())
    assert f"the training run {left['run']} uses these hosts" in printed
    assert "Traceback" not in printed
    found = Training(hosts, dataset, tmp_path / "out", *options).ended()
    assert f"following run {left['run']}, which the same command started" in found["errors"]
    assert (found["stopped"], found["rows_seen"]) == (False, 20 * found["rows"])


def test_a_lost_host_rejoins(hosts, dataset, tmp_path):
    training = Training(hosts, dataset, tmp_path / "out", *LONG)
    training.until("checkpoints/step-*")
    for process in hosts.host_of(hosts.agents()[0]):  # like a restart of the host
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    found = training.ended()
    assert (found["stopped"], found["rows_seen"]) == (False, 20 * found["rows"])
