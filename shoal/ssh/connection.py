"""Commands and file access on a host over SSH, with the known hosts, configuration and keys of OpenSSH.

Private keys never leave this machine. A connection to a host with an unknown key is refused, because an impostor would
receive the dataset.
"""

import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import paramiko
from paramiko.hostkeys import InvalidHostKey

from common.errors import ShoalError
from shoal.ssh.hosts_file import Host

_SECONDS = 15.0
"""Timeout in seconds for the connection and for each answer."""
_ALIVE_SECONDS = 5


class LostError(ShoalError):
    """Error of a host that does not answer, or that cannot use the shared folder."""


class Connection:
    def __init__(self, host: Host) -> None:
        """Connect to a host. Raises ShoalError if the connection is refused, and LostError if the host does not
        answer."""
        self.host, self._client = host, paramiko.SSHClient()
        try:
            self._connect()
        except paramiko.BadHostKeyException as error:
            self._refuse("has a key that differs from your known_hosts; the host might be an impostor", error)
        except paramiko.SSHException as error:
            if isinstance(error, paramiko.AuthenticationException) or "authentication methods" in str(error):
                self._refuse(
                    "accepts none of your keys; add the right key with `ssh-add`, or set it in ~/.ssh/config", error
                )
            if "known_hosts" in str(error):
                self._refuse("is not in your known_hosts; connect to it once with ssh, and verify its key", error)
            self._lose(error)
        except (OSError, EOFError) as error:
            self._lose(error)
        except (ValueError, InvalidHostKey) as error:  # a damaged OpenSSH file, or an invalid host name
            self._refuse(f"has an invalid configuration in your ~/.ssh: {error or type(error).__name__}", error)

    def _connect(self) -> None:
        settings = _configuration().lookup(self.host.name)
        name, port = settings["hostname"], self.host.port or int(settings.get("port", 22))
        if "proxyjump" in settings and "proxycommand" not in settings:
            jump = settings["proxyjump"]
            raise ShoalError(
                f"{self.host.label} uses ProxyJump {jump} in ~/.ssh/config, which Shoal does not support; replace it "
                f"with ProxyCommand ssh -W %h:%p {jump}"
            )
        self._client.load_system_host_keys()
        for known in settings.get("userknownhostsfile", "").split():
            if (path := Path(known).expanduser()).is_file():
                self._client.load_host_keys(str(path))
        self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
        self._client.connect(
            name,
            port=port,
            username=self.host.user or settings.get("user"),
            key_filename=[each for each in settings.get("identityfile", ()) if Path(each).expanduser().is_file()],
            sock=paramiko.ProxyCommand(settings["proxycommand"]) if "proxycommand" in settings else None,
            timeout=_SECONDS,
            banner_timeout=_SECONDS,
            auth_timeout=_SECONDS,
            channel_timeout=_SECONDS,
        )
        transport = self._client.get_transport()
        assert transport is not None
        transport.set_keepalive(_ALIVE_SECONDS)
        self.files = self._client.open_sftp()
        self.files.get_channel().settimeout(_SECONDS)
        self.address = self.host.address or socket.gethostbyname(name)

    def run(self, words: Sequence[str], *, seconds: float = 60.0) -> tuple[int, str, str]:
        """Run a command, wait until it exits, and return its exit status, standard output and standard error. Raises
        LostError if the host does not answer."""
        with self.answering():
            _, output, errors = self._client.exec_command(shlex.join(words), timeout=seconds)
            out, err = output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace")
            return output.channel.recv_exit_status(), out, err

    @cached_property
    def home(self) -> str:
        """The user's home folder on the host. Raises ShoalError if the user has no home folder, and LostError if the
        host does not answer."""
        _, home, _ = self.run(("sh", "-c", 'printf %s "$HOME"'))
        if not home.startswith("/"):
            raise ShoalError(f"{self.host.label}: the user has no home folder for Shoal's code; create one")
        return home

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Convert the errors of a broken connection into LostError. An OSError with which the host refuses an operation
        is not converted."""
        try:
            yield
        except (paramiko.SSHException, paramiko.SFTPError, EOFError, TimeoutError, ConnectionError) as error:
            raise LostError(f"{self.host.label} does not answer: {error or type(error).__name__}") from error
        except OSError as error:
            if self.is_open or error.errno is not None:
                raise
            raise LostError(f"{self.host.label} does not answer: {error}") from error

    @property
    def is_open(self) -> bool:
        """True if the connection is open, as far as this machine knows."""
        transport = self._client.get_transport()
        return transport is not None and transport.is_active()

    def close(self) -> None:
        self._client.close()

    def _lose(self, error: Exception) -> NoReturn:
        self.close()
        raise LostError(f"{self.host.label} does not answer: {error or type(error).__name__}") from error

    def _refuse(self, why: str, error: Exception) -> NoReturn:
        self.close()
        raise ShoalError(f"{self.host.label} {why}") from error


def _configuration() -> paramiko.SSHConfig:
    path = Path("~/.ssh/config").expanduser()
    try:
        return paramiko.SSHConfig.from_path(str(path)) if path.exists() else paramiko.SSHConfig()
    except (OSError, paramiko.SSHException) as error:
        raise ShoalError(f"cannot use {path}: {error}") from error
