"""Commands and files on a host, by SSH as OpenSSH does it: its known hosts, its configuration, the user's own keys.

Keys are never copied. A host whose key is not known is refused: whoever answers in its place would get the dataset.
"""

import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import paramiko

from bootstrap.hosts.hosts_file import Host
from common.errors import ShoalError

_SECONDS = 15.0
"""How long a connection and each answer may take."""
_ALIVE_SECONDS = 5


class LostError(ShoalError):
    """A host does not answer, or not any more."""


class Connection:
    """A connection to a host."""

    def __init__(self, host: Host) -> None:
        """Connect. Raises ShoalError where it is refused, and LostError where nobody answers."""
        self.host = host
        settings = _configuration().lookup(host.name)
        name, port = settings["hostname"], host.port or int(settings.get("port", 22))
        self._client = paramiko.SSHClient()
        self._client.load_system_host_keys()
        for known in settings.get("userknownhostsfile", "").split():
            with suppress(OSError):
                self._client.load_host_keys(str(Path(known).expanduser()))
        self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            self._client.connect(
                name,
                port=port,
                username=host.user or settings.get("user"),
                key_filename=settings.get("identityfile"),
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
            self.address = host.address or socket.gethostbyname(name)
        except paramiko.BadHostKeyException as error:
            self._refuse(
                f"shows another key than your known_hosts has for it ({error}); somebody may answer in its place", error
            )
        except paramiko.SSHException as error:
            if isinstance(error, paramiko.AuthenticationException) or "authentication methods" in str(error):
                self._refuse("accepts none of your keys; `ssh-add` the right one, or name it in ~/.ssh/config", error)
            if "known_hosts" in str(error):
                self._refuse(
                    "is not in your known_hosts; connect to it once by ssh, and compare its fingerprint", error
                )
            self.close()
            raise LostError(f"{host.called} does not answer: {error}") from error
        except (OSError, EOFError) as error:
            self.close()
            raise LostError(f"{host.called} does not answer: {error or type(error).__name__}") from error

    def run(self, words: Sequence[str], *, seconds: float = 60.0) -> tuple[int, str, str]:
        """Run a command to its end; returns its status, and what it printed. Raises LostError."""
        with self.answering():
            _, output, errors = self._client.exec_command(shlex.join(words), timeout=seconds)
            out, err = output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace")
            return output.channel.recv_exit_status(), out, err

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Raises LostError where the connection breaks, and OSError where the host refuses something."""
        try:
            yield
        except (paramiko.SSHException, EOFError, TimeoutError, ConnectionError) as error:
            raise LostError(f"{self.host.called} does not answer: {error or type(error).__name__}") from error
        except OSError as error:
            if self.is_open or error.errno is not None:
                raise
            raise LostError(f"{self.host.called} does not answer: {error}") from error

    @property
    def is_open(self) -> bool:
        """Whether it is still connected, as far as is known here."""
        transport = self._client.get_transport()
        return transport is not None and transport.is_active()

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _refuse(self, why: str, error: Exception) -> NoReturn:
        self.close()
        raise ShoalError(f"{self.host.called} {why}") from error


def _configuration() -> paramiko.SSHConfig:
    path = Path("~/.ssh/config").expanduser()
    try:
        return paramiko.SSHConfig.from_path(str(path)) if path.exists() else paramiko.SSHConfig()
    except (OSError, paramiko.SSHException) as error:
        raise ShoalError(f"cannot use {path}: {error}") from error
