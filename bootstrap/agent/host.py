"""`python -m bootstrap.agent.host`: starts the agent of a host of one's own, unless it runs already.

Prints one line of JSON: its `gpus` and whether it `runs` already, or what is `missing` on the host. The agent goes on
in a session of its own until it has had nothing to do for some minutes. What it needs is below ~/.shoal, and may be
removed while it does not run.
"""

import argparse
import fcntl
import importlib.util
import json
import os
import shutil
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

_IDLE_SECONDS = 180.0
_NEEDED = ("torch", "numpy", "h5py", "boto3", "safetensors", "tqdm")
_GET_ADDRESS = 0x8915
"""SIOCGIFADDR (netdevice(7))."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Start the agent of this host.")
    for name in ("group", "store", "instance", "address"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--ask", action="store_true", help="say whether it runs, and start none")
    asked = parser.parse_args()
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        return _say(missing=missing, python=sys.executable)
    from bootstrap.agent.machine import run_command  # needs what may be missing
    from common.errors import DataError

    found = 0
    with suppress(DataError):
        listed = run_command(("nvidia-smi", "--list-gpus")).stdout if shutil.which("nvidia-smi") else ""
        found = sum(line.startswith("GPU ") for line in listed.splitlines())
    root = Path.home() / ".shoal" / asked.instance
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(root / "agent.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    gpus, runs = asked.gpus or found or 1, False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        runs = True
    _say(gpus=gpus, runs=runs)
    if runs or asked.ask or os.fork():
        return 0
    _leave_session(root / "agent.log")
    _serve(asked, root, gpus, needs_gpu=found > 0)
    return 0


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


def _serve(asked: argparse.Namespace, root: Path, gpus: int, *, needs_gpu: bool) -> None:
    os.environ["NODE_ROOT"] = str(root)
    if device := _device_of(asked.address):
        # A host's own name often stands for a loopback address, at which other hosts would not find its ranks.
        os.environ.update({f"{library}_SOCKET_IFNAME": device for library in ("GLOO", "NCCL")})
    from bootstrap.agent.machine import this_machine
    from bootstrap.agent.processes import OwnProcesses
    from bootstrap.agent.service import serve
    from trainer.config import NEEDS_GPU

    if needs_gpu:
        os.environ[NEEDS_GPU] = "1"
    serve(
        asked.group,
        store=asked.store,
        instance=asked.instance,
        address=asked.address,
        gpus=gpus,
        processes=OwnProcesses(this_machine().programs, scoped=False),
        notice=lambda: "",
        idle_seconds=_IDLE_SECONDS,
    )


def _device_of(address: str) -> str | None:
    """The network device that has an address; None where none has, as behind a translation of addresses."""
    for _, name in socket.if_nameindex():
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            answer = fcntl.ioctl(asked, _GET_ADDRESS, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


if __name__ == "__main__":
    sys.exit(main())
