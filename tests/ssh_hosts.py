"""Hosts with OpenSSH's own server: ports of this machine's loopback interface, each with its own home."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.waiting import until

_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def require_sshd() -> str:
    """Return the path of sshd. Without it, CI fails and other machines skip the test."""
    if _SSHD is None:
        missing = "needs OpenSSH's server: apt install openssh-server"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return _SSHD


class SshHosts:
    """Hosts, the user's home with the key that they accept, and the file that lists them."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self.home, self.folder, self.file = root / "home", root / "shared", root / "hosts.txt"
        self._variables = variables
        self._root, self.servers = root, dict[int, subprocess.Popen[bytes]]()
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        self.folder.mkdir()
        self._make_key(ssh / "id_ed25519")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)

    def start(self, count: int) -> None:
        for _ in range(count):
            self._add()
        known = [f"[127.0.0.1]:{port} {self._host_key(port)}" for port in self.servers]
        (self.home / ".ssh" / "known_hosts").write_text("\n".join([*known, ""]))
        hosts = [f"{Path.home().owner()}@127.0.0.1:{port} gpus=1" for port in self.servers]
        self.file.write_text("\n".join([f"folder={self.folder}", f"python={sys.executable}", *hosts, ""]))

    @property
    def ports(self) -> list[int]:
        return list(self.servers)

    @property
    def homes(self) -> list[Path]:
        """Home folders of the hosts."""
        return [self._root / f"host-{port}" for port in self.servers]

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a user's command."""
        return {
            **{name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"},
            "HOME": str(self.home),
        }

    def agents(self) -> list[int]:
        """Return the processes of these hosts' agents."""
        return [each for each in self._processes() if b"bootstrap.node.host" in self._words(each)]

    def host_of(self, process: int) -> list[int]:
        """Return all processes of the host of this one, except those of its server."""
        (home,) = (each for each in self._words(process, "environ") if each.startswith(b"HOME="))
        return [each for each in self._processes() if home in self._words(each, "environ")]

    def _processes(self) -> list[int]:
        every = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
        ours = f"HOME={self._root}/host-".encode()
        return [each for each in every if any(word.startswith(ours) for word in self._words(each, "environ"))]

    def _words(self, process: int, what: str = "cmdline") -> list[bytes]:
        with suppress(OSError):
            return Path(f"/proc/{process}/{what}").read_bytes().split(b"\0")
        return []

    def close(self) -> None:
        for server in self.servers.values():
            server.terminate()
            server.wait()
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _add(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        home = self._root / f"host-{port}"
        home.mkdir()
        self._make_key(self._root / f"key-{port}")
        settings = {
            "Port": port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self._root / f"key-{port}",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "AuthorizedKeysFile": self.home / ".ssh" / "id_ed25519.pub",
            "Subsystem": "sftp internal-sftp",
            "SetEnv": " ".join(f'{name}="{value}"' for name, value in {**self._variables, "HOME": home}.items()),
            "PermitRootLogin": "prohibit-password",
        }
        path = self._root / f"sshd-{port}"
        path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        with (self._root / f"sshd-{port}.log").open("wb") as log:
            self.servers[port] = subprocess.Popen([require_sshd(), "-D", "-e", "-f", str(path)], stderr=log)

        def answers() -> bool:
            with socket.socket() as asked:
                return asked.connect_ex(("127.0.0.1", port)) == 0

        until(answers)

    def _host_key(self, port: int) -> str:
        return " ".join((self._root / f"key-{port}.pub").read_text().split()[:2])

    def _make_key(self, path: Path) -> None:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@contextmanager
def ssh_hosts(root: Path, count: int = 2, variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[SshHosts]:
    """Yield hosts until the end of the block. `variables` are added to the environment of their processes."""
    require_sshd()
    with ExitStack() as ends:
        made = SshHosts(root, variables)
        ends.callback(made.close)
        made.start(count)
        yield made
