"""A run on hosts from its claim to its end, with a local folder instead of the shared one."""

from pathlib import Path

import pytest

from bootstrap.node.documents import RunRequest
from bootstrap.node.folder import Folder
from common.errors import ShoalError
from common.names import RUNS
from shoal.backends.hosts import HostsBackend
from shoal.runs.run import Run
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.store import RequestedRuns
from shoal.runs.train import carry_out
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
def backend(store):
    """A backend of one host with a working agent."""
    made = HostsBackend(HostsFile(path=Path("hosts"), folder=store.name, hosts=(_HOST,)))
    made.requests = RequestedRuns(store, "hosts")
    made.hosts.on_all = lambda _: [{"works": True}]
    return made


@pytest.fixture
def run(tmp_path):
    config = configured({"model": "lstm", "data": Path("dataset"), "output": tmp_path / "out", "epochs": 3})
    config.output.mkdir()
    return Run.of_config(config, PreparedDataset("dataset"), name="hosts.20260102T030405-ffff")


_DATASET = f"datasets/{1:032x}/dataset.h5"


def test_busy_hosts_are_refused(store, backend, run, messages):
    options = {"epochs": ("4",)}
    name = "hosts.20260102T030405-0a1b"
    other = RunRequest(
        run=name, token="0a1b2c3d", trainers=1, share=None, options=options, dataset=_DATASET, ready=True
    )
    backend.requests.change(lambda _: other)
    with messages.raises(ShoalError) as refusal:
        backend._claim(run, _DATASET)
    assert name in str(refusal.value)
    assert backend.requests.read() == other


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LostError("no host answers")], ids=["interrupted", "lost"])
def test_a_failed_claim_leaves_no_request(store, backend, run, error, monkeypatch):
    store.error = error
    monkeypatch.setattr(backend, "start", lambda run: backend._claim(run, _DATASET))
    with pytest.raises(type(error)) as raised:
        carry_out(run, backend)
    assert raised.value is error
    assert backend.requests.read() is None


def test_unknown_files_of_a_failed_run_are_reported(store, backend, run, monkeypatch, capsys, messages):
    def fail(_):
        store.write(f"{RUNS}{run.name}/train.py", "")
        backend.requests.write_end(backend.launch(run.name).request, "the disk is full")

    monkeypatch.setattr(backend.hosts, "on_all", fail)
    monkeypatch.setattr(backend, "start", lambda run: backend._claim(run, _DATASET))
    with pytest.raises(ShoalError, match=r"^the disk is full$"):
        carry_out(run, backend)
    messages.hide(run.name, "RUN")
    messages.check(" ".join(capsys.readouterr().err.split()))
