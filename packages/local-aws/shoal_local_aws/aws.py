"""Starts and stops the emulator, which messages call the embedded AWS.

Several emulators may run at once, each with its own folder and port. Their environment variables override the user's
AWS profile, token and proxy, so that no request of a demo reaches the real AWS.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path
from typing import BinaryIO, Self

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.faults.file import FaultFile
from shoal_local_aws.permissions.credentials import USER_FILE, Credentials
from shoal_local_aws.processes import PATIENCE, kill_marked
from shoal_local_aws.watchdog import MARK

ACCOUNT = "000000000000"
REGION = "us-east-1"
_HOST = "127.0.0.1"
_LOG_LINES = 12
_PACKAGES = Path(__file__).resolve().parent.parent
_OVERRIDES = {
    "AWS_PROFILE": "default",
    "AWS_DEFAULT_PROFILE": "default",
    "AWS_SESSION_TOKEN": "",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
    "AWS_USE_FIPS_ENDPOINT": "false",
    "AWS_USE_DUALSTACK_ENDPOINT": "false",
}


class EmbeddedAws:
    """The emulator as a child process that runs during a `with` block.

    Args:
        folder: Folder for the log, the nodes and the file systems. It is kept afterwards.
        port: Port on the loopback interface (default: a free port).
        wheels: Folder of wheels from which pip installs on the nodes (default: pip uses only the package index).

    Raises EmulatorError on entering if the port is in use, or the emulator does not start.
    """

    def __init__(self, folder: Path, port: int | None = None, *, wheels: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.log = self.folder / "emulator.log"
        self.port = _available_port(port)
        self.endpoint = f"http://{_HOST}:{self.port}"
        self.faults = FaultFile(self.folder)
        self._user = Credentials.new()
        self._wheels = wheels
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that direct a process's AWS clients, including the CDK, to the emulator."""
        added = {
            "AWS_ENDPOINT_URL": self.endpoint,
            **self._user.environment(),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(self.folder / "aws" / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "aws" / "credentials"),
            "AWS_PAGER": "",
            "CDK_HOME": str(self.folder / "cdk"),
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "CDK_DISABLE_VERSION_CHECK": "1",
            "NO_PROXY": f"{_HOST},localhost",
            "no_proxy": f"{_HOST},localhost",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        }
        # The result can set variables but not remove them. So set these to values without effect.
        added |= {name: value for name, value in _OVERRIDES.items() if name in os.environ}
        added |= {name: self.endpoint for name in os.environ if name.startswith("AWS_ENDPOINT_URL_")}
        return added

    def __enter__(self) -> Self:
        (self.folder / "aws").mkdir(parents=True, exist_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        Path(self.environment["AWS_CONFIG_FILE"]).write_text(f"[default]\nregion = {REGION}\n")
        Path(self.environment["AWS_SHARED_CREDENTIALS_FILE"]).write_text(
            f"[default]\naws_access_key_id = {self._user.key}\naws_secret_access_key = {self._user.secret}\n"
        )
        self._user.write(self.folder / USER_FILE)
        with self.log.open("wb") as log:
            self._watchdog = self._launch(log)
        try:
            self._wait_until_healthy(self._watchdog)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ended(self, within: float) -> bool:
        """Return whether the emulator has exited, or exits within `within` seconds without a request to stop."""
        if self._watchdog is None:
            return True
        try:
            self._watchdog.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def log_tail(self) -> str:
        """Return the last lines of the emulator's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])

    def _launch(self, log: BinaryIO) -> "subprocess.Popen[bytes]":
        """Start the server with its watchdog, which stops the server when the watchdog's standard input closes."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "shoal_local_aws.watchdog", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self._server_environment(),
            start_new_session=True,
        )

    def _server_environment(self) -> dict[str, str]:
        settings = {
            "AUTH": "true",
            "AWS_ACCESS_KEY_ID": "root",
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),  # keep it secret, so that no client can act as root
            "BIND_HOST": _HOST,
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_HOST": _HOST,
            "IOT_MTLS_ENABLED": "0",  # IoT uses a fixed port, so a second emulator would not start
            "SFTP_ENABLED": "0",
            "DOCKER_HOST": f"unix://{self.folder}/no-docker.sock",
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(_PACKAGES),
            "PYTHONUNBUFFERED": "1",
        }
        if self._wheels:
            settings["PIP_FIND_LINKS"] = self._wheels.as_uri()  # pip would split a path at its spaces
        return os.environ | self.environment | settings

    def _wait_until_healthy(self, watchdog: "subprocess.Popen[bytes]") -> None:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and watchdog.poll() is None:
            try:
                with direct.open(f"{self.endpoint}/_ministack/health", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise EmulatorError(
            f"The embedded AWS did not start on port {self.port}; its log {self.log} ends with:\n{self.log_tail()}"
        )

    def _stop(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is None or watchdog.stdin is None:
            return
        watchdog.stdin.close()
        try:
            watchdog.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            watchdog.kill()
            watchdog.wait()
        try:
            kill_marked(MARK, str(self.folder))
        except TimeoutError as error:  # only warn, because an exception would hide an exception of the `with` block
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)


def _available_port(port: int | None) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port or 0))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise EmulatorError(
                f"The emulator cannot use port {port} of {_HOST} ({reason}); stop the program that uses it, or choose "
                "a different port."
            ) from error
        return int(probe.getsockname()[1])
