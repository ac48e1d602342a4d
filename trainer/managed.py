"""`python -m trainer.managed`: trains in a container of SageMaker's, by the contract of its training jobs.

What is read and written there, below /opt/ml (or SAGEMAKER_BASE_DIR, as in AWS's own toolkit):

- input/config/hyperparameters.json: the options of the training, by their names; a value is one word, or a JSON list
  of words. Those that begin with `sagemaker_` are the toolkit's, and left out.
- input/config/resourceconfig.json: the hosts in their order, this one, and the network interface between them.
- input/data/CHANNEL: `data` has the dataset; a channel named as an option has that option's file, files or folder.
- checkpoints: the run's output folder, which SageMaker copies to S3 as it changes, and brings back to a job that it
  starts again after an interruption: then the run goes on. A job without it has output/data in its place.
- model: the trained model, once more; output/failure: why there is none, in one sentence.
- standard output: what the ranks print, and lines such as `step=10 loss=0.69`, for SageMaker's metrics.
- SIGTERM: stop with a checkpoint; SageMaker kills whatever is there 120 seconds later.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import IO, Any

from common.errors import DataError, TrainingError
from common.json_values import parse_json_object
from trainer.command_line import from_words
from trainer.config import RANK_ENVIRONMENT, TrainConfig
from trainer.options.section import options
from trainer.output.lines import Step, parse_line
from trainer.output.run_files import (
    BINARY_VECTORS,
    CHECKPOINTS,
    MODEL,
    RECORD,
    SUMMARY,
    TEXT_VECTORS,
    WEIGHTS,
    finished_summary,
    read_json,
)
from trainer.rank_processes import LAUNCHER_ENVIRONMENT, failure_in, launcher

BASE = "SAGEMAKER_BASE_DIR"
MEASURES = ("accuracy", "macro_f1", "log_loss")
"""Of a summary, what is printed at the end."""
DATA = "data"
"""The channel of what is learnt from."""
OF_THE_START = ("code", "wheels", "script")
"""Channels of whoever has started this program (bootstrap/nodes/managed/start.sh)."""
_OF_THE_TOOLKIT = "sagemaker_"
_PORTS = range(20_000, 30_000)
_NAMES_SECONDS = 300.0
"""How long another host's name may take to resolve: hosts of a job start one after the other."""
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts of a job, in the order of its resource configuration."""

    names: tuple[str, ...]
    rank: int
    """This node's."""
    interface: str

    @classmethod
    def read(cls, path: Path) -> "Hosts":
        """Raises DataError for what is no resource configuration."""
        found = _read_config(path)
        names, current, interface = (found.get(key) for key in ("hosts", "current_host", "network_interface_name"))
        if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
            raise DataError(f"{path} names no hosts")
        if current not in names:
            raise DataError(f"{path} does not have its current host among its hosts")
        return cls(names=tuple(names), rank=names.index(current), interface=str(interface or "eth0"))


def main() -> int:
    """Train; returns the exit status, after which SageMaker reads `failure`."""
    base = Path(os.environ.get(BASE) or "/opt/ml")
    try:
        return _Job(base).train()
    except (DataError, TrainingError) as error:
        _leave_failure(base, str(error))
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception as error:
        _leave_failure(base, f"{type(error).__name__}: {error}; the job's log has more")
        raise


def _leave_failure(base: Path, sentence: str) -> None:
    failure = base / "output" / "failure"
    failure.parent.mkdir(parents=True, exist_ok=True)
    failure.write_text(f"{sentence}\n", "utf-8")


class _Job:
    """A container's part of a job."""

    def __init__(self, base: Path) -> None:
        self._base = base
        checkpoints = base / "checkpoints"
        self._output = checkpoints if checkpoints.is_dir() else base / "output" / "data"
        self._output.mkdir(parents=True, exist_ok=True)
        self._launcher: subprocess.Popen[str] | None = None
        self._stopped = False
        self._read = 0
        signal.signal(signal.SIGTERM, self._stop)

    def train(self) -> int:
        """Start this host's ranks, wait for their end, and leave the model, on the first host. Raises DataError and
        TrainingError."""
        config = self._base / "input" / "config"
        hosts = Hosts.read(config / "resourceconfig.json")
        asked = read_options(_read_config(config / "hyperparameters.json"), self._base / "input" / "data", self._output)
        first = hosts.rank == 0
        if not self._has_finished():
            self._run(asked, hosts)
        if (summary := read_json(self._output / SUMMARY)) is None and first and not self._stopped:
            raise self._why(hosts)
        if first and summary is not None and not summary["stopped"]:
            print(*(f"{name}={summary[name]:.6f}" for name in MEASURES if name in summary), flush=True)  # noqa: T201
            shutil.copytree(self._output / MODEL, self._base / "model", dirs_exist_ok=True)
            shutil.rmtree(self._output / CHECKPOINTS, ignore_errors=True)  # those that are not in S3 yet
        return 0

    def _has_finished(self) -> bool:
        """Whether an earlier container has left a model here, and all of it came back."""
        weights = (WEIGHTS, BINARY_VECTORS, TEXT_VECTORS)
        whole = any((self._output / MODEL / name).exists() for name in weights)
        return whole and finished_summary(self._output) is not None

    def _run(self, config: TrainConfig, hosts: Hosts) -> None:
        """Raises TrainingError where the ranks fail."""
        environment = {**os.environ, **RANK_ENVIRONMENT, **LAUNCHER_ENVIRONMENT}
        if len(hosts.names) > 1:
            environment |= {f"{library}_SOCKET_IFNAME": hosts.interface for library in ("GLOO", "NCCL")}
        with self._log(hosts).open("a", encoding="utf-8") as log:
            self._launcher = subprocess.Popen(
                launcher(config, f"--nproc-per-node={_gpus() or 1}", *_rendezvous(hosts)),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            if self._stopped:
                self._launcher.terminate()
            copying = Thread(target=_copy_lines, args=(self._launcher.stdout, log))
            copying.start()
            while self._launcher.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    self._launcher.wait(_LOOK_SECONDS)
                if hosts.rank == 0:
                    self._print_steps()
            copying.join()
        if self._launcher.returncode and not self._stopped:
            raise self._why(hosts)

    def _log(self, hosts: Hosts) -> Path:
        return self._output / f"node-{hosts.rank}.log"

    def _why(self, hosts: Hosts) -> TrainingError:
        return failure_in(self._log(hosts).read_text("utf-8", "replace"), "the job's log has all that was printed")

    def _stop(self, signum: int, frame: object) -> None:  # noqa: ARG002
        self._stopped = True
        if self._launcher is not None:
            self._launcher.terminate()

    def _print_steps(self) -> None:
        """Print the newest of the steps that the record has got."""
        with suppress(OSError), (self._output / RECORD).open("rb") as record:
            record.seek(self._read)
            whole, newline, _ = record.read().rpartition(b"\n")
            self._read += len(whole) + len(newline)
            steps = [line for line in map(parse_line, whole.splitlines()) if isinstance(line, Step)]
            for step in steps[-1:]:
                rate = "" if step.rows_per_second is None else f" rows_per_second={step.rows_per_second:.1f}"
                print(f"step={step.step} loss={step.loss:.6f}{rate}", flush=True)  # noqa: T201


def read_options(given: Mapping[str, Any], channels: Path, output: Path) -> TrainConfig:
    """The configuration by a job's hyperparameters and its channels. Raises DataError for values that are no texts, and
    a channel without files, and TrainingError for what is no option of a training."""
    words = {name: _words(name, value) for name, value in given.items() if not name.startswith(_OF_THE_TOOLKIT)}
    named = {name.removeprefix("--"): each for each in options(TrainConfig) for name in (each.name, *each.flags)}
    words = {named[name].name if name in named else name: each for name, each in words.items()}
    for each in {each.name for each in named.values() if each.kind is bool} & words.keys():
        if words[each] in (("true",), ("True",)):
            words[each] = ()
        elif words[each] in (("false",), ("False",)):
            del words[each]
    data = None
    for folder in sorted(path for path in channels.iterdir() if path.is_dir()) if channels.is_dir() else ():
        files = sorted(str(path) for path in folder.iterdir() if not path.name.startswith("."))
        files = [each for each in files if not each.endswith(".answers")]  # beside a set of analogies
        if folder.name == DATA:
            if len(files) != 1:
                raise DataError(f"the channel {DATA} must have one dataset, and has {len(files)} files")
            data = Path(files[0])
        elif folder.name in named:
            option = named[folder.name]
            words[option.name] = tuple(files) if option.several else (files[0] if len(files) == 1 else str(folder),)
        elif folder.name not in OF_THE_START:
            raise DataError(f"the channel {folder.name} is not named as an option of a training; name it {DATA}")
    if data is None:
        raise DataError(f"the job has no channel {DATA} with a dataset; add it to its input")
    cache = Path(tempfile.gettempdir()) / "shoal-rows"
    cache.mkdir(mode=0o700, exist_ok=True)
    config = from_words(words, endless=False, data=data, output=output, cache=cache)
    return replace(config, resume=True, force=False)


def _words(name: str, value: Any) -> tuple[str, ...]:
    """The words of a hyperparameter, which is a text: a JSON list of words, or one word. `true` is a flag's."""
    if not isinstance(value, str):
        raise DataError(f"the hyperparameter {name} is no text")
    with suppress(ValueError):
        if isinstance(found := json.loads(value), list) and all(isinstance(each, str) for each in found):
            return tuple(found)
        if found is True:
            return ()
        if isinstance(found, str):  # as the SDK of SageMaker encodes texts
            return (found,)
    return (value,)


def _rendezvous(hosts: Hosts) -> list[str]:
    """The launcher's arguments by which ranks find each other, once the first host's name resolves."""
    if len(hosts.names) == 1:
        return ["--standalone"]
    job = os.environ.get("TRAINING_JOB_ARN", "").encode()
    port = _PORTS[int.from_bytes(hashlib.sha256(job).digest()[:4], "big") % len(_PORTS)]
    return [
        *(f"--nnodes={len(hosts.names)}", f"--node-rank={hosts.rank}"),
        *(f"--master-addr={address_of(hosts.names[0])}", f"--master-port={port}"),
    ]


def address_of(name: str, seconds: float = _NAMES_SECONDS) -> str:
    """The IPv4 address of a host, whose name may resolve late. Raises TrainingError after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return str(socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0])
        except socket.gaierror as error:
            if time.monotonic() >= deadline:
                raise TrainingError(
                    f"the name of the host {name} does not resolve after {seconds:.0f} s ({error.strerror}); start the "
                    "job again"
                ) from error
            time.sleep(_LOOK_SECONDS)


def _gpus() -> int:
    """This host's GPUs, by a process of its own: this one needs nothing of PyTorch."""
    counting = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]
    found = subprocess.run(counting, capture_output=True, text=True, check=False)
    if found.returncode:
        raise TrainingError(f"PyTorch does not start: {(found.stderr.splitlines() or ['it said nothing'])[-1]}")
    return int(found.stdout.split()[-1])


def _copy_lines(lines: IO[str] | None, log: IO[str]) -> None:
    for line in lines or ():
        for to in (log, sys.stdout):
            to.write(line)
            to.flush()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        return parse_json_object(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): is this a container of SageMaker's?") from error
    except DataError as error:
        raise DataError(f"{path} is no configuration of SageMaker's: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
