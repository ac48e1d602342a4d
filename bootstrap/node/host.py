"""Start the agent on one of the user's hosts unless it already runs: `python -m bootstrap.node.host`.

The program prints one JSON object. `gpus` is the number of GPUs, and `works` states whether a training run is active on
the host. `other` is the store of a busy agent that has different code or a different configuration. If the agent cannot
start, the object has a different field: `missing` lists the Python packages that the host lacks, or `unable` states why
the host cannot use the store.

The agent runs in its own session until it has been idle for three minutes. An idle agent with a different configuration
is replaced. All files of the agent are in ~/.shoal, which can be removed while no agent runs.
"""

import argparse
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_IDLE_SECONDS = 180.0
_END_CHECKS = 100
"""Number of checks whether the old agent has exited, with ten checks per second."""
_DESCRIPTION_BYTES = 1 << 14
"""Bytes of the agent's description of itself in its lock file. One call writes all of them, so that no reader sees an
incomplete description."""
_NEEDED = ("torch", "numpy", "h5py", "boto3", "safetensors", "tqdm", "pydantic")


def main() -> int:
    parser = argparse.ArgumentParser(description="Start the agent of this host.")
    for name in ("group", "store", "instance", "address"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--ask", action="store_true", help="print the state of the agent without starting it")
    arguments = parser.parse_args()
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        return _say(missing=missing, python=sys.executable)
    from bootstrap.node.machine import run_command  # imports packages that can be missing
    from common.errors import DataError

    gpu_count = 0
    with suppress(DataError):
        listed = run_command(("nvidia-smi", "--list-gpus")).stdout if shutil.which("nvidia-smi") else ""
        gpu_count = sum(line.startswith("GPU ") for line in listed.splitlines())
    root, gpus = Path.home() / ".shoal" / arguments.instance, arguments.gpus or gpu_count or 1
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ["NODE_ROOT"] = str(root)
    description = {
        "store": arguments.store,
        "address": arguments.address,
        "gpus": gpus,
        "code": os.environ.get("PYTHONPATH"),
        "python": sys.executable,
    }
    lock = os.open(root / "agent.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    runs = not _try_lock(lock)
    running = _description(lock) if runs else {}
    training = running.get("busy") is True or _is_training()
    other = runs and any(running.get(name) != value for name, value in description.items())
    if arguments.ask or (runs and (training or not other)):
        return _say(gpus=gpus, works=training, other=str(running.get("store")) if other and training else None)
    if runs and not _has_ended(running.get("process"), lock):
        return _say(gpus=gpus, works=True, other=str(running.get("store")))
    if unable := _store_error(arguments.store):
        return _say(unable=unable)
    _say(gpus=gpus, works=training, other=None)
    if os.fork():
        return 0
    _leave_session(root / "agent.log")
    description["process"] = os.getpid()

    def on_busy_change(busy: bool) -> None:
        content = json.dumps({**description, "busy": busy}).encode()
        os.pwrite(lock, content.ljust(_DESCRIPTION_BYTES), 0)

    on_busy_change(False)
    _serve(arguments, gpus, on_busy_change, needs_gpu=gpu_count > 0)
    return 0


def _store_error(store: str) -> str:
    """Return the reason why this host cannot use a store, or an empty string if it can. Only a bucket is checked, not a
    folder."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from corpus.reading.s3 import is_s3, place_of

    if not is_s3(store):
        return ""
    soon = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
    try:
        boto3.client("s3", config=soon).head_bucket(Bucket=place_of(store).bucket)
    except (BotoCoreError, ClientError) as error:
        return str(error)
    return ""


def _is_training() -> bool:
    """Return whether programs of any training run are running on this host."""
    from bootstrap.node.machine import this_machine
    from bootstrap.node.processes import Processes

    processes = Processes(this_machine().programs, scoped=False)
    return any(processes.state(name) == "running" for name in processes.names())


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _description(lock: int) -> dict[str, object]:
    """Return the running agent's description of itself, or an empty dictionary if the description is unreadable."""
    with suppress(ValueError):
        running = json.loads(os.pread(lock, _DESCRIPTION_BYTES, 0))
        if isinstance(running, dict):
            return running
    return {}


def _has_ended(process: object, lock: int) -> bool:
    """Ask an idle agent to exit, and return whether it has exited within ten seconds."""
    if isinstance(process, int) and process > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGTERM)
    for _ in range(_END_CHECKS):
        if _try_lock(lock):
            return True
        time.sleep(0.1)
    return False


def _say(**content: object) -> int:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()
    return 0


def _leave_session(log: Path) -> None:
    os.setsid()
    with Path(os.devnull).open("rb") as nothing, log.open("ab") as output:
        os.dup2(nothing.fileno(), 0)
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)


def _serve(
    arguments: argparse.Namespace, gpus: int, on_busy_change: Callable[[bool], None], *, needs_gpu: bool
) -> None:
    from bootstrap.node.agent import serve
    from bootstrap.node.node_documents import Member
    from trainer.config import NEEDS_GPU

    if needs_gpu:
        os.environ[NEEDS_GPU] = "1"
    serve(
        arguments.group,
        Member(instance=arguments.instance, address=arguments.address, gpus=gpus),
        store=arguments.store,
        scoped=False,
        notice=lambda: "",
        idle_seconds=_IDLE_SECONDS,
        on_busy_change=on_busy_change,
    )


if __name__ == "__main__":
    sys.exit(main())
