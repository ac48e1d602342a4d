"""Node as its agent sees it: folders, the shared folder, the use of the GPUs, and notices that AWS will terminate the
node.

All paths are below the folder in the environment variable NODE_ROOT. On a real node the variable is empty, and paths
are below `/`.
"""

import fcntl
import os
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import Attempt, Member
from bootstrap.node.processes import Processes
from bootstrap.node.store import Store
from common.errors import DataError
from corpus.reading.s3 import is_s3, place_of

_EXPORTED = "/mnt/share"
_GPU_PROCESSES = ("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
_GPU_USE = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
_COMMAND_SECONDS = 120
CHECK_SECONDS = 5.0
"""Time limit in seconds for a command that checks the GPUs. The command delays the node's heartbeat."""
_FULL = 0.98
"""A disk counts as full if at least this fraction of it is used."""
_GET_ADDRESS = 0x8915
"""Request code SIOCGIFADDR of ioctl (netdevice(7))."""
_SERVICE, _SERVICE_SECONDS = "http://169.254.169.254", 1.0
_TOKEN = re.compile(r"[\w=+/.-]{1,256}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Machine:
    root: Path

    @property
    def share(self) -> Path:
        """Folder that all nodes share. If the run has no shared folder, this node's own folder."""
        return self.root / "mnt" / "share"

    @property
    def disks(self) -> Path | None:
        """Folder on the node's own disks, which bootstrap/gpu/boot.sh mounts. None if the node has no disks of
        its own."""
        folder = self.root / "mnt" / "local"
        return folder if folder.is_dir() else None

    @property
    def cache(self) -> Path:
        """Folder for the cache of unpacked dataset rows."""
        return self.disks / "rows" if self.disks else self.root / "var" / "cache" / "shoal"

    @property
    def programs(self) -> Path:
        """Folder with the state of the programs that the agent starts."""
        return self.root / "var" / "lib" / "shoal" / "programs"

    def logs(self, request: RunRequest) -> Path:
        """Return the folder on the node's own disk for the output of a run's ranks."""
        return self.root / "var" / "log" / "shoal" / request.run

    def run(self, request: RunRequest) -> Path:
        """Return the folder of a run's results."""
        return self.share / "runs" / request.run

    def data(self, request: RunRequest) -> Path:
        """Return the path of a run's dataset or stream."""
        if request.stream is not None:
            return self.share / "streams" / request.run
        return (self.disks or self.share) / "datasets" / _dataset_file(request)

    def shared_data(self, request: RunRequest) -> Path:
        """Return the path to which the first node copies a dataset encoded from texts, so that the other nodes can read
        it."""
        return (self.share if request.share else self.disks or self.share) / "datasets" / _dataset_file(request)

    def serve(self, request: RunRequest, attempt: Attempt) -> None:
        """Export the shared folder over NFS to the other nodes of an attempt. Raises DataError if the export fails."""
        others = [each.address for each in attempt.members[1:]]
        if request.share != "nfs":
            return
        self._unmount()
        if not others:
            return
        call(["systemctl", "start", "nfs-server"])
        call(["exportfs", "-o", "rw,no_root_squash", *(f"{address}:{_EXPORTED}" for address in others)])

    def mount(self, request: RunRequest, first: Member) -> None:
        """Mount the folder that the first node of a run exports. Raises DataError if the mount fails.

        An old mount is removed first, because reading from a mount hangs if its server is gone.
        """
        if request.share != "nfs":
            return
        self._unmount()
        call(["mount", "-t", "nfs4", "-o", "hard,nconnect=8", f"{first.address}:{_EXPORTED}", str(self.share)])

    def uses_gpus(self) -> bool:
        """Return whether any process uses a GPU. If nvidia-smi fails, return True.

        For an idle GPU, nvidia-smi prints a sentence instead of process ids.
        """
        if not shutil.which(_GPU_PROCESSES[0]):
            return False
        try:
            result = run_command(_GPU_PROCESSES, CHECK_SECONDS)
        except DataError:
            return True  # an unknown state counts as busy
        return any(line[:1].isdigit() for line in result.stdout.splitlines())

    def gpu_use(self) -> int | None:
        """Return the mean utilization of the GPUs in percent, or None if nvidia-smi does not report it."""
        with suppress(DataError):
            printed = [line.strip() for line in run_command(_GPU_USE, CHECK_SECONDS).stdout.splitlines()]
            if used := [int(line) for line in printed if line.isdecimal()]:
                return min(100, round(sum(used) / len(used)))
        return None

    def full_disk(self) -> str:
        """Return a message if the disk with the programs' folder is full, else an empty string."""
        with suppress(OSError):
            used = shutil.disk_usage(self.programs)
            if used.used >= _FULL * used.total:
                return f"the disk of {self.programs} is {used.used / used.total:.0%} full"
        return ""

    def _unmount(self) -> None:
        while run_command(["findmnt", "--mountpoint", str(self.share)]).returncode == 0:
            call(["umount", "--force", "--lazy", str(self.share)])
        self.share.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, kw_only=True)
class Node:
    """Identity of a node, and the interfaces through which its agent reaches everything outside the agent."""

    member: Member
    machine: Machine
    processes: Processes
    channel: Store
    clock: Callable[[], float]
    time: Callable[[], float]
    """Clock that returns seconds since 1970."""
    notice: Callable[[], str]
    """Function that returns why the node is about to terminate: one of LEAVES."""
    pool: Executor
    """Executor that copies results in the background."""
    say: Callable[[str], None]
    """Function that writes a line to the agent's log."""


def this_machine() -> Machine:
    """Return the node on which this process runs."""
    return Machine(root=Path(os.environ.get("NODE_ROOT") or "/"))


def device_of(address: str) -> str | None:
    """Return the network device that has an address, or None. Behind NAT, no device has the node's address."""
    for _, name in socket.if_nameindex():
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            answer = fcntl.ioctl(asked, _GET_ADDRESS, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def spot_notice() -> str:
    """Return `now` if AWS will reclaim this spot node within two minutes, else an empty string.

    Raises OSError if the instance metadata service does not answer. See "Spot Instance interruption notices" in the EC2
    user guide.
    """
    service = urlsplit(os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _SERVICE).rstrip("/"))
    with closing(HTTPConnection(str(service.hostname), service.port or 80, timeout=_SERVICE_SECONDS)) as connection:

        def ask(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
            try:
                connection.request(method, f"{service.path}/latest/{path}", headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode("ascii", "replace")
            except HTTPException as error:
                raise OSError(f"the instance metadata service: {type(error).__name__}") from error

        status, token = ask("PUT", "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        if status != 200 or not _TOKEN.fullmatch(token):
            raise OSError(f"the instance metadata service answered {status} without a token")
        status, _ = ask("GET", "meta-data/spot/instance-action", {"X-aws-ec2-metadata-token": token})
        if status not in (200, 404):
            raise OSError(f"the instance metadata service answered {status}")
    return "now" if status == 200 else ""


def is_shutting_down() -> bool:
    """Return whether systemd is shutting down the whole machine, and not only stopping a service. Return False if this
    is unknown."""
    with suppress(DataError):
        return run_command(["systemctl", "is-system-running"]).stdout.strip() == "stopping"
    return False


def _dataset_file(request: RunRequest) -> str:
    if request.dataset is None:
        return f"texts-{request.texts_name}.h5"
    key = place_of(request.dataset).key if is_s3(request.dataset) else request.dataset
    return key.replace("/", "-")


def call(command: Sequence[str]) -> str:
    """Run a system command and return its output. If the command fails, raise DataError with the last line of its
    output."""
    if (done := run_command(command)).returncode:
        last = last_line(done.stderr or done.stdout)
        raise DataError(f"{command[0]} failed with status {done.returncode}: {last}")
    return done.stdout


def last_line(output: str) -> str:
    """Return the last line of a program's output that is not blank."""
    return next((line for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")


def run_command(command: Sequence[str], seconds: float = _COMMAND_SECONDS) -> "subprocess.CompletedProcess[str]":
    """Run a system command until it exits. Raises DataError if the command does not exist or runs for more than
    `seconds`."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{command[0]} failed: {error}") from error
