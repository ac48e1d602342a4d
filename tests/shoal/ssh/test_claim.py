"""A run on hosts from its claim to its end, with a local folder instead of the shared one."""

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from bootstrap.node.documents import RunRequest
from bootstrap.node.folder import Folder
from common.errors import ShoalError
from common.names import RUNS
from shoal.backends import followed
from shoal.backends.execution import execute
from shoal.backends.hosts import HostsPlace, HostsRun
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.store import RequestedRuns
from shoal.ssh.connection import LostError
from shoal.ssh.hosts_file import Host, HostsFile
from trainer.config import configured

_HOST = Host(name="a", user=None, port=None, gpus=None, address=None, python="python3")


class Ending(Folder):
    """Folder that fails once, after writing a contended document."""

    error: BaseException | None = None

    def write_if(self, key, text, known):
        written, error, self.error = super().write_if(key, text, known), self.error, None
        if error:
            raise error
        return written


@pytest.fixture
def store(tmp_path):
    return Ending(tmp_path / "shared")


@pytest.fixture
def run(store, tmp_path):
    """A run on one host with a working agent."""
    file = HostsFile(path=Path("hosts"), folder=store.name, hosts=(_HOST,))
    config = configured({"model": "lstm", "data": Path("dataset"), "output": tmp_path / "out", "epochs": 3})
    made = HostsRun(HostsPlace(file), PreparedDataset("dataset"), config)
    made.store, made._data = store, f"datasets/{1:032x}/dataset.h5"
    made.hosts.on_all = lambda _: [{"works": True}]
    return made


def test_busy_hosts_are_refused(store, run, messages):
    options = {"epochs": ("4",)}
    name = "hosts.20260102T030405-0a1b"
    other = RunRequest(
        run=name, token="0a1b2c3d", trainers=1, share=None, options=options, dataset=run._data, ready=True
    )
    RequestedRuns(store, "hosts").change(lambda _: other)
    with messages.raises(ShoalError) as refusal, run.started():
        pass
    assert name in str(refusal.value)
    assert RequestedRuns(store, "hosts").read() == other


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LostError("no host answers")], ids=["interrupted", "lost"])
def test_a_failed_claim_leaves_no_request(store, run, error):
    store.error = error
    with pytest.raises(type(error)) as raised, run.started():
        pass
    assert raised.value is error
    assert RequestedRuns(store, "hosts").read() is None


def test_waiting_for_stopping_hosts_times_out(run, monkeypatch, messages):
    monkeypatch.setattr(followed, "LONGEST_STOP_SECONDS", -1)
    with run.started():
        run.launch.follow(replace(run.launch.request, stop=True))
        assert not run.is_over()
        run.stop()
        time.sleep(0.01)
        messages.hide(run.launch.run, "RUN")
        with messages.raises(ShoalError):
            run.is_over()


def test_unknown_files_of_a_failed_run_are_reported(store, run, monkeypatch, capsys, messages):
    def fail(_):
        store.write(f"{RUNS}{run.launch.run}/train.py", "")
        run.launch.requests.write_end(run.launch.request, "the disk is full")

    run.config.output.mkdir()
    monkeypatch.setattr(run, "resources", nullcontext)
    monkeypatch.setattr(run.hosts, "on_all", fail)
    with pytest.raises(ShoalError, match=r"^the disk is full$"):
        execute(run._place, run)
    messages.hide(run.launch.run, "RUN")
    messages.check(" ".join(capsys.readouterr().err.split()))
