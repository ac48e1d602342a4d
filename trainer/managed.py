"""`python -m trainer.managed`: trains in a SageMaker container, with the files and signals of SageMaker training jobs.

The program reads and writes these paths below /opt/ml (or SAGEMAKER_BASE_DIR, as in AWS's own toolkit):

- input/config/hyperparameters.json: the training options, keyed by name. A value is one word, or a JSON list of words.
  Keys that begin with `sagemaker_` belong to the toolkit and are ignored.
- input/config/resourceconfig.json: the ordered hosts, the current host, and the network interface between them.
- input/data/CHANNEL: channel `data` contains the dataset. A channel with the name of an option contains that option's
  file, files or folder.
- checkpoints: the run's output folder. SageMaker copies changes to S3. If SageMaker restarts the job after an
  interruption, it restores the folder, and the run continues. Without this folder, the run's output folder is
  output/data.
- model: a copy of the trained model.
- output/failure: one sentence that says why the training failed.
- standard output: the ranks' output, and lines such as `step=10 loss=0.69` for SageMaker's metrics.
- SIGTERM: stop with a checkpoint. SageMaker kills all remaining processes 120 seconds later.
"""

import hashlib
import json
import os
import re
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
from common.files import read_tail
from common.json_values import parse_json_object
from common.starter import ends_with_this_process
from trainer.command_line import from_option_values
from trainer.config import TrainConfig, options_of
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
from trainer.rank_processes import failure_in, launcher
from trainer.registry import MODELS

BASE = "SAGEMAKER_BASE_DIR"
MEASURES = ("accuracy", "macro_f1", "log_loss")
"""Fields of the summary that are printed at the end of a run."""
DATA = "data"
"""Channel of the training data."""
STARTER_CHANNELS = ("code", "wheels", "script")
"""Input channels of the script that starts this program (bootstrap/managed/start.sh)."""
_TOOLKIT_PREFIX = "sagemaker_"
_PORTS = range(20_000, 30_000)
_NAMES_SECONDS = 300.0
"""Maximum seconds until the name of another host resolves. The hosts of a job start one after the other."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """Hosts of a job, in the order of its resource configuration."""

    names: tuple[str, ...]
    rank: int
    """Index of the current host in `names`."""
    interface: str

    @classmethod
    def read(cls, path: Path) -> "Hosts":
        """Read the hosts from a resource configuration.

        Raises DataError if the file is not a resource configuration.
        """
        configuration = _read_config(path)
        names, current, interface = (
            configuration.get(key) for key in ("hosts", "current_host", "network_interface_name")
        )
        if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
            raise DataError(f"{path} has no hosts")
        if current not in names:
            raise DataError(f"{path} does not have its current host among its hosts")
        return cls(names=tuple(names), rank=names.index(current), interface=str(interface or "eth0"))


def main() -> int:
    """Train, and return the exit status. After a failure, SageMaker reads the reason from the file `failure`."""
    base = Path(os.environ.get(BASE) or "/opt/ml")
    os.environ.update(cuda_environment(Path("/")))
    try:
        return _Job(base).train()
    except (DataError, TrainingError) as error:
        _write_failure(base, str(error))
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception as error:
        _write_failure(base, f"{type(error).__name__}: {error}; see the job's log for details")
        raise


def cuda_environment(root: Path) -> dict[str, str]:
    """Return the variable with which programs find CUDA's compatibility library in an image, if the driver of the host
    is older than this library. Otherwise, return an empty dictionary.

    The entry point of AWS's images does the same, but a job of Shoal has another entry point. Source: "Best practices
    to minimize interruptions during GPU driver upgrades" in SageMaker's guide, read on 2026-11-30.
    """
    library, driver = root / "usr/local/cuda/compat/libcuda.so.1", root / "proc/driver/nvidia/version"
    if not (library.exists() and driver.exists()):
        return {}
    needed = re.search(r"(?<=libcuda\.so\.)\d+\.[\d.]+", library.resolve().name)
    found = re.search(r"(?<=\s)\d+\.[\d.]+(?=\s)", driver.read_text())
    if not needed or not found or _version(found[0]) >= _version(needed[0]):
        return {}
    paths = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"LD_LIBRARY_PATH": os.pathsep.join(paths)}


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _write_failure(base: Path, sentence: str) -> None:
    failure = base / "output" / "failure"
    failure.parent.mkdir(parents=True, exist_ok=True)
    failure.write_text(f"{sentence}\n", "utf-8")


class _Job:
    """This container's part of a job."""

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
        """Run this host's ranks until they exit. On the first host, also copy the model. Return the exit status.

        Raises DataError for an invalid configuration, and TrainingError if the training fails.
        """
        config = self._base / "input" / "config"
        hosts = Hosts.read(config / "resourceconfig.json")
        options = read_options(
            _read_config(config / "hyperparameters.json"), self._base / "input" / "data", self._output
        )
        first = hosts.rank == 0
        if not self._has_finished():
            self._run(options, hosts)
        if (summary := read_json(self._output / SUMMARY)) is None and first and not self._stopped:
            raise self._failure(hosts)
        if first and summary is not None and not summary["stopped"]:
            print(*(f"{name}={summary[name]:.6f}" for name in MEASURES if name in summary), flush=True)  # noqa: T201
            shutil.copytree(self._output / MODEL, self._base / "model", dirs_exist_ok=True)
            # SageMaker then does not copy the checkpoints to S3.
            shutil.rmtree(self._output / CHECKPOINTS, ignore_errors=True)
        return 0

    def _has_finished(self) -> bool:
        """Return True if an earlier container finished the run and SageMaker has completely restored the model."""
        weights = (WEIGHTS, BINARY_VECTORS, TEXT_VECTORS)
        whole = any((self._output / MODEL / name).exists() for name in weights)
        return whole and finished_summary(self._output) is not None

    def _run(self, config: TrainConfig, hosts: Hosts) -> None:
        """Start the ranks, and wait until they exit. Raises TrainingError if they fail."""
        environment = {**os.environ, **ends_with_this_process()}
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
                    self._launcher.wait(_POLL_SECONDS)
                if hosts.rank == 0:
                    self._print_steps()
            copying.join()
        if self._launcher.returncode and not self._stopped:
            raise self._failure(hosts)

    def _log(self, hosts: Hosts) -> Path:
        return self._output / f"node-{hosts.rank}.log"

    def _failure(self, hosts: Hosts) -> TrainingError:
        return failure_in(read_tail(self._log(hosts)), "the whole output is in the job's log")

    def _stop(self, _signum: int, _frame: object) -> None:
        self._stopped = True
        if self._launcher is not None:
            self._launcher.terminate()

    def _print_steps(self) -> None:
        """Print the latest step that was added to the record since the last call."""
        with suppress(OSError), (self._output / RECORD).open("rb") as record:
            record.seek(self._read)
            whole, newline, _ = record.read().rpartition(b"\n")
            self._read += len(whole) + len(newline)
            steps = [line for line in map(parse_line, whole.splitlines()) if isinstance(line, Step)]
            for step in steps[-1:]:
                rate = "" if step.rows_per_second is None else f" rows_per_second={step.rows_per_second:.1f}"
                print(f"step={step.step} loss={step.loss:.6f}{rate}", flush=True)  # noqa: T201


def read_options(given: Mapping[str, Any], channels: Path, output: Path) -> TrainConfig:
    """Return the configuration for a job's hyperparameters and channels.

    Raises DataError for hyperparameters that are not strings and for invalid channels. Raises TrainingError for unknown
    options.
    """
    words = {name: _option_value(name, value) for name, value in given.items() if not name.startswith(_TOOLKIT_PREFIX)}
    named = {name.removeprefix("--"): each for each in options_of(tuple(MODELS)) for name in (each.name, *each.flags)}
    words = {named[name].name if name in named else name: each for name, each in words.items()}
    for each in {each.name for each in named.values() if each.kind is bool} & words.keys():
        if words[each] in (("true",), ("True",)):
            words[each] = ()
        elif words[each] in (("false",), ("False",)):
            del words[each]
    data = None
    for folder in sorted(path for path in channels.iterdir() if path.is_dir()) if channels.is_dir() else ():
        files = sorted(str(path) for path in folder.iterdir() if not path.name.startswith("."))
        files = [each for each in files if not each.endswith(".answers")]  # answers of an analogy set
        if folder.name == DATA:
            if len(files) != 1:
                raise DataError(f"the channel {DATA} must contain one dataset, but contains {len(files)} files")
            data = Path(files[0])
        elif folder.name in named:
            option = named[folder.name]
            words[option.name] = tuple(files) if option.several else (files[0] if len(files) == 1 else str(folder),)
        elif folder.name not in STARTER_CHANNELS:
            raise DataError(
                f"the channel {folder.name} does not have the name of a training option; rename it to {DATA}"
            )
    if data is None:
        raise DataError(f"the job has no channel {DATA} with a dataset; add this channel to the job's input")
    cache = Path(tempfile.gettempdir()) / "shoal-rows"
    cache.mkdir(mode=0o700, exist_ok=True)
    config = from_option_values(words, endless=False, data=data, output=output, cache=cache)
    return replace(config, resume=True, force=False)


def _option_value(name: str, value: Any) -> tuple[str, ...]:
    """Return the words of a hyperparameter's value, which is a JSON list of words, one word, or `true` for a flag."""
    if not isinstance(value, str):
        raise DataError(f"the hyperparameter {name} must be a string")
    with suppress(ValueError):
        if isinstance(parsed := json.loads(value), list) and all(isinstance(each, str) for each in parsed):
            return tuple(parsed)
        if parsed is True:
            return ()
        if isinstance(parsed, str):  # the SageMaker SDK encodes strings as JSON
            return (parsed,)
    return (value,)


def _rendezvous(hosts: Hosts) -> list[str]:
    """Wait until the first host's name resolves. Return the rendezvous arguments for the launcher."""
    if len(hosts.names) == 1:
        return ["--standalone"]
    job = os.environ.get("TRAINING_JOB_ARN", "").encode()
    port = _PORTS[int.from_bytes(hashlib.sha256(job).digest()[:4], "big") % len(_PORTS)]
    return [
        *(f"--nnodes={len(hosts.names)}", f"--node-rank={hosts.rank}"),
        *(f"--master-addr={address_of(hosts.names[0])}", f"--master-port={port}"),
    ]


def address_of(name: str, seconds: float = _NAMES_SECONDS) -> str:
    """Return the IPv4 address of a host. Raises TrainingError if its name does not resolve within `seconds`."""
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
            time.sleep(_POLL_SECONDS)


def _gpus() -> int:
    """Return the number of this host's GPUs.

    A child process counts them, so that this process does not import PyTorch.
    """
    counting = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]
    process = subprocess.run(counting, capture_output=True, text=True, check=False)
    if process.returncode:
        raise TrainingError(f"PyTorch does not start: {(process.stderr.splitlines() or ['without a message'])[-1]}")
    return int(process.stdout.split()[-1])


def _copy_lines(lines: IO[str] | None, log: IO[str]) -> None:
    for line in lines or ():
        for to in (log, sys.stdout):
            to.write(line)
            to.flush()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        return parse_json_object(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}); run this program in a SageMaker container") from error
    except DataError as error:
        raise DataError(f"{path} is not a SageMaker configuration: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
