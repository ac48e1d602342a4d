"""Contract of a training job's container: a program in a folder of that layout."""

import io
import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError, TrainingError
from tests.experiments.made_records import start, step, write
from tests.played_clock import PlayedClock
from tests.trainer import runs
from trainer import managed
from trainer.managed import Hosts, address_of, read_options

QUICK = {"model": "fasttext", "epochs": "1", "batch-size": "200"}


@pytest.fixture
def base(tmp_path):
    """A container's folder without a dataset."""
    for folder in ("input/config", "input/data/data", "checkpoints", "model", "output/data"):
        (tmp_path / folder).mkdir(parents=True)
    configure(tmp_path, QUICK)
    return tmp_path


@pytest.fixture
def filled(base, dataset):
    """A container's folder with a dataset."""
    shutil.copy(dataset, base / "input/data/data/dataset.h5")
    return base


def configure(base: Path, hyper: Mapping[str, Any], hosts: tuple[str, ...] = ("algo-1",), own: str = "algo-1") -> None:
    (base / "input/config/hyperparameters.json").write_text(json.dumps(hyper))
    resources = {"current_host": own, "hosts": list(hosts), "network_interface_name": "lo"}
    (base / "input/config/resourceconfig.json").write_text(json.dumps(resources))


class LauncherHere:
    """Replaces the launcher's process: its only rank trains in this process."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.returncode, printed = runs.run_here(*command[command.index("trainer") + 1 :])
        self.stdout = io.StringIO(printed)

    def poll(self) -> int:
        return self.returncode


class StoppedLauncher:
    """Replaces the launcher's process of a job that SageMaker stops: its ranks leave a summary."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.stdout, self.returncode = io.StringIO(), 0
        self.output = Path(command[command.index("--output") + 1])

    def poll(self) -> int | None:
        signal.raise_signal(signal.SIGTERM)
        return self.returncode or None

    def wait(self, seconds: float) -> None:
        """Return like a process that has ended."""

    def terminate(self) -> None:
        self.returncode = 128 + signal.SIGTERM
        (self.output / "summary.json").write_text('{"stopped": true}')


@pytest.fixture
def run(base, monkeypatch):
    """Return the function `run()`, which runs the program in this process, as in a container without GPUs, and returns
    its status."""
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(base))
    monkeypatch.setattr(managed, "_gpus", lambda: 0)

    def container(launcher=LauncherHere):
        monkeypatch.setattr(managed.subprocess, "Popen", launcher)
        return managed.main()

    return container


def failure(base: Path, run: Callable[..., int]) -> str:
    assert run() == 1
    return (base / "output" / "failure").read_text()


def test_a_job_writes_the_model_and_its_measures(filled, run, capsys):
    assert run() == 0
    printed = capsys.readouterr().out
    assert {path.name for path in (filled / "model").iterdir()} >= {"config.json", "model.safetensors"}
    assert not (filled / "checkpoints/checkpoints").exists()
    accuracy = float(re.findall(r"\baccuracy=([0-9.eE+-]+)", printed)[-1])
    assert accuracy == pytest.approx(runs.summary(filled / "checkpoints")["accuracy"], abs=1e-6)
    assert not (filled / "output/failure").exists()
    record = (filled / "checkpoints/record.jsonl").read_text()
    assert run() == 0  # the container was lost after the last step
    assert (filled / "checkpoints/record.jsonl").read_text() == record


def test_the_loss_of_the_latest_step_is_printed(base, capsys):
    job = managed._Job(base)
    job._print_steps()  # the record does not exist yet
    write(base / "checkpoints", start(), step(1, 101.0, loss=0.7), step(10, 105.0), "")
    job._print_steps()
    job._print_steps()  # there is no newer step
    assert capsys.readouterr().out == "step=10 loss=0.500000 rows_per_second=1200.0\n"


def test_without_a_checkpoint_folder_the_run_is_in_the_output(filled, run):
    (filled / "checkpoints").rmdir()
    assert run() == 0
    assert (filled / "output/data/summary.json").exists()


def test_a_stopped_job_stops_its_launcher_and_writes_no_model(filled, run):
    assert run(StoppedLauncher) == 0
    assert runs.summary(filled / "checkpoints")["stopped"]
    assert not list((filled / "model").iterdir())
    assert not (filled / "output/failure").exists()


WRONG = {"unknown": {"epochz": "2"}, "no text": {"epochs": 2}, "a dash": {"epochs": "-x"}}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_wrong_hyperparameter_is_the_reason_of_the_failure(filled, run, change, messages):
    configure(filled, {**QUICK, **change})
    messages.check(failure(filled, run))


def test_the_sentence_of_the_trainer_is_the_reason_of_the_failure(base, run, messages):
    (base / "input/data/data/dataset.h5").write_text("nothing")
    messages.check(failure(base, run))


RESOURCES = {
    "missing": None,
    "empty": "",
    "no hosts": '{"hosts": []}',
    "another host": '{"hosts": ["a"], "current_host": "b"}',
}


@pytest.mark.parametrize("text", RESOURCES.values(), ids=RESOURCES)
def test_an_invalid_resource_configuration_is_refused(tmp_path, text, messages):
    path = tmp_path / "resourceconfig.json"
    if text is not None:
        path.write_text(text, "latin-1")
    with messages.raises(DataError):
        Hosts.read(path)


def test_hosts_of_a_job_meet_at_the_first_host_and_a_port_of_the_job(filled, run, monkeypatch):
    monkeypatch.setattr(managed, "address_of", {"algo-1": "10.0.0.7"}.__getitem__)
    started = []

    class Recorded(LauncherHere):
        def __init__(self, command, *, env, **_):
            started.append((command, env))
            self.stdout, self.returncode = io.StringIO(), 0

    configure(filled, QUICK, hosts=("algo-1", "algo-2"), own="algo-2")
    for job in ("arn:one", "arn:one", "arn:two"):
        monkeypatch.setenv("TRAINING_JOB_ARN", job)
        assert run(Recorded) == 0
    for command, environment in started:
        assert {"--nproc-per-node=1", "--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.7"} <= set(command)
        assert {environment[f"{library}_SOCKET_IFNAME"] for library in ("GLOO", "NCCL")} == {"lo"}
    one, again, two = (next(each for each in command if each.startswith("--master-port")) for command, _ in started)
    assert one == again != two


@pytest.mark.parametrize("written", ["true", "True", '"true"', "false", "False", '"false"'])
def test_a_hyperparameter_sets_a_flag(tmp_path, written):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dataset.h5").write_text("")
    options = read_options({"model": "skipgram", "pip": written}, tmp_path, tmp_path / "out")
    assert options.options.pip is ("rue" in written)


def test_channels_contain_the_files_of_options(tmp_path):
    for name in ("data/dataset.h5", "embeddings/vectors.bin", "code/x.zip"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    found = read_options({"model": "lstm", "sagemaker_program": '"x"'}, tmp_path, tmp_path / "out")
    assert found.options.embeddings == str(tmp_path / "embeddings" / "vectors.bin")
    assert found.data == tmp_path / "data" / "dataset.h5"
    assert (found.resume, found.force) == (True, False)


@pytest.mark.parametrize(
    "files", [[], ["data/a.h5", "data/b.h5"], ["data/a.h5", "validation/b.h5"]], ids=["none", "two", "another channel"]
)
def test_invalid_channels_are_named(tmp_path, files, messages):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    with messages.raises(DataError):
        read_options({}, tmp_path, tmp_path / "out")


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=4))
def test_option_values_survive_a_round_trip(words):
    assert managed._option_value("x", json.dumps(words)) == tuple(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [("0.3", ("0.3",)), ('"lstm"', ("lstm",)), ("lstm", ("lstm",)), ("true", ()), ("5", ("5",)), ("[1]", ("[1]",))],
)
def test_one_word_needs_no_list(text, words):
    assert managed._option_value("x", text) == words


def test_a_host_name_that_resolves_late_is_awaited_for_five_minutes(monkeypatch, messages):
    monkeypatch.setattr(managed, "time", played := PlayedClock())
    known_at = 299.0

    def resolved(*_):
        if played.now < known_at:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, 1, 6, "", ("10.0.0.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert address_of("algo-1") == "10.0.0.7"
    played.now, known_at = 0.0, 302.0
    with messages.raises(TrainingError):
        address_of("algo-1")


@pytest.mark.parametrize(
    ("driver", "library", "compatible"),
    [
        ("NVIDIA UNIX x86_64 Kernel Module  570.172.08  Tue Jul  8", "580.95.05", True),
        ("NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build", "580.95.05", True),
        ("NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05", False),
        (None, "580.95.05", False),
        ("NVIDIA UNIX x86_64 Kernel Module  570.172.08  Tue Jul  8", None, False),
    ],
    ids=["older", "older, open", "equal", "no driver", "no library"],
)
def test_an_older_driver_needs_cudas_compatibility_library(driver, library, compatible, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/libraries")
    folder = tmp_path / "usr/local/cuda-13.3/compat"
    folder.mkdir(parents=True)
    (tmp_path / "usr/local/cuda").symlink_to("cuda-13.3")
    if library:
        (folder / f"libcuda.so.{library}").touch()
        (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{library}")
    if driver:
        (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
        text = f"NVRM version: {driver}\nGCC version:  gcc version 11.5.0 20240719 (Red Hat 11.5.0-5)\n"
        (tmp_path / "proc/driver/nvidia/version").write_text(text)
    path = f"{tmp_path}/usr/local/cuda/compat:/opt/libraries"
    assert managed.cuda_environment(tmp_path) == ({"LD_LIBRARY_PATH": path} if compatible else {})


def test_a_child_process_counts_the_gpus(monkeypatch):
    said = subprocess.CompletedProcess([], 0, stdout="a warning of 2 words\n8\n", stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: said)
    assert managed._gpus() == 8
