"""A lab on this machine: hosts with OpenSSH's server, each in namespaces of its own for network, processes and mounts.

    with lab(3) as made: ...          (as root, on Linux with iproute2 and openssh-server; with `served` also sshfs)

A host has a network device on a bridge, an address, a home on a small disk of its own, and a boot id, so that ranks of
two hosts count as those of two machines. All of them see this machine's files, so any folder is a shared one; with
`served` they mount it over the network, from one more host that serves it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

_NETWORK = "198.18.71"  # of the range for benchmarks (RFC 2544)
_BRIDGE = "shoal-lab"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_DISK_BYTES = 256 << 20
_SHARED = "shared"
_START = f"""set -e
hostname "$1"
cat /proc/sys/kernel/random/uuid > "$2/boot_id"
mount --bind "$2/boot_id" {_BOOT_ID}
mkdir -p "$2/home"
mount -t tmpfs -o size={_DISK_BYTES} tmpfs "$2/home"
if [ $# -gt 3 ]; then (shift 3 && sshfs "$@"); fi
exec "$3" -D -e -f "$2/sshd_config"
"""


class LabHost:
    """A host: started, cut off, slowed down, or killed with all that runs on it."""

    def __init__(self, number: int, root: Path, key: Path, mount: Sequence[str] = ()) -> None:
        """`mount`: the words by which sshfs mounts the shared folder, where that is served."""
        self.name, self.address, self._mount = f"{_BRIDGE}-{number}", f"{_NETWORK}.{number}", mount
        self._root, self._key = root / self.name, key
        self._running: subprocess.Popen[bytes] | None = None
        self._root.mkdir()
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._root / "key"))
        settings = {
            "HostKey": self._root / "key",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "AuthorizedKeysFile": key,
            "Subsystem": "sftp internal-sftp",
            "SetEnv": f"HOME={self._root}/home",
        }
        (self._root / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))

    @property
    def known(self) -> str:
        """Its line of known_hosts."""
        return f"{self.address} {' '.join((self._root / 'key.pub').read_text().split()[:2])}"

    def plug_in(self) -> None:
        """Make its network."""
        _ip("netns", "add", self.name)
        _ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", self.name, "master", _BRIDGE, "up")
        _ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.name, "link", "set", device, "up")

    def start(self) -> None:
        """Start it, and wait for its SSH server."""
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if sshd is None:
            sys.exit("this needs OpenSSH's server: apt install openssh-server")
        apart = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with (self._root / "sshd.log").open("ab") as log:
            words = ["sh", "-c", _START, "sh", self.name, str(self._root), sshd, *self._mount]
            self._running = subprocess.Popen(["ip", "netns", "exec", self.name, *apart, *words], stderr=log, stdout=log)
        for _ in range(200):
            if "Server listening" in (self._root / "sshd.log").read_text():
                return
            time.sleep(0.05)
        sys.exit((self._root / "sshd.log").read_text())

    def kill(self) -> None:
        """End it with everything that runs on it."""
        if self._running is not None:
            for process in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._running.kill()
            self._running.wait()
            (self._root / "sshd.log").unlink()
            self._running = None

    def cut(self, *, off: bool) -> None:
        """Take the cable out, or put it back."""
        _ip("link", "set", self.name, "down" if off else "up")

    def limit(self, megabits: int | None) -> None:
        """Limit its network, in both directions; None: not."""
        for here in (("tc",), ("ip", "netns", "exec", self.name, "tc")):
            device = self.name if len(here) == 1 else "eth0"
            subprocess.run([*here, "qdisc", "del", "dev", device, "root"], capture_output=True, check=False)
            if megabits is not None:
                rate = ["rate", f"{megabits}mbit", "burst", "256kb", "latency", "100ms"]
                _call(*here, "qdisc", "add", "dev", device, "root", "tbf", *rate)

    def freeze(self, *, on: bool) -> None:
        """Have its server hang, or answer again."""
        for process in self.processes("sshd"):
            os.kill(process, signal.SIGSTOP if on else signal.SIGCONT)

    def fill_disk(self, *, full: bool) -> None:
        """Fill the disk of its home, or make room again."""
        file = f"{self._root}/home/filler"
        command = f"dd if=/dev/zero of={file} bs=1M 2>/dev/null || true" if full else f"rm -f {file}"
        server = next(iter(self.processes("sshd")))
        _call("nsenter", "--target", str(server), "--mount", "sh", "-c", command)

    def processes(self, *words: str) -> list[int]:
        """The processes on it whose command line has one of these words, or else all of them."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=False
        ).stdout.split()
        return [int(each) for each in found if not words or any(word in _command(each) for word in words)]


class Lab:
    """Hosts, the home of the user who reaches them, and the file that names them; the server, if there is one, of the
    folder that they share."""

    def __init__(self, root: Path, hosts: Sequence[LabHost], server: LabHost | None) -> None:
        self.root, self.hosts, self.server, self.home = root, hosts, server, root / "user"
        self.folder, self.file = root / _SHARED, root / "hosts.txt"
        self.folder.mkdir()
        (self.home / ".ssh" / "known_hosts").write_text("".join(f"{each.known}\n" for each in self.all))
        lines = [
            f"folder={self.folder}",
            f"python={sys.executable}",
            *(f"root@{each.address} gpus=1" for each in hosts),
        ]
        self.file.write_text("\n".join([*lines, ""]))

    @property
    def all(self) -> Sequence[LabHost]:
        """The server, and the hosts after it."""
        return [self.server, *self.hosts] if self.server else self.hosts

    @property
    def environment(self) -> dict[str, str]:
        """That of the user's commands."""
        return {
            **{name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"},
            "HOME": str(self.home),
        }


@contextmanager
def lab(count: int, *, served: bool = False) -> Iterator[Lab]:
    """A lab of so many hosts, until the end of the block; with `served` one more serves the folder that they share."""
    with TemporaryDirectory(prefix="shoal-lab-") as name:
        root = Path(name)
        (root / "user" / ".ssh").mkdir(parents=True, mode=0o700)
        Path("/run/sshd").mkdir(exist_ok=True)
        key = root / "user" / ".ssh" / "id_ed25519"
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        server = LabHost(count + 1, root, key.with_suffix(".pub")) if served else None
        mount = _mount(server, root, key) if server else ()
        hosts = [LabHost(number, root, key.with_suffix(".pub"), mount) for number in range(1, count + 1)]
        made = Lab(root, hosts, server)
        try:
            _unplug(made.all)
            _ip("link", "add", _BRIDGE, "type", "bridge")
            _ip("address", "add", f"{_NETWORK}.254/24", "dev", _BRIDGE)
            _ip("link", "set", _BRIDGE, "up")
            for host in made.all:
                host.plug_in()
                host.start()
            yield made
        finally:
            for host in made.all:
                host.kill()
            _unplug(made.all)


def _mount(server: LabHost, root: Path, key: Path) -> Sequence[str]:
    """What sshfs is told. It keeps nothing, as hosts hear of each other by files; what it asks while the server is gone
    fails, as of a `soft` mount of NFS."""
    options = [f"IdentityFile={key}", f"UserKnownHostsFile={key.with_name('known_hosts')}", "reconnect"]
    options += ["dir_cache=no", "attr_timeout=0", "entry_timeout=0"]
    folder = root / _SHARED
    return ["-o", ",".join(options), f"root@{server.address}:{folder}", str(folder)]


def _unplug(hosts: Sequence[LabHost]) -> None:
    for host in hosts:
        subprocess.run(["ip", "netns", "delete", host.name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", host.name], capture_output=True, check=False)
    subprocess.run(["ip", "link", "delete", _BRIDGE], capture_output=True, check=False)


def _command(process: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return ""


def _ip(*words: str) -> None:
    _call("ip", *words)


def _call(*words: str) -> None:
    subprocess.run(words, check=True)
