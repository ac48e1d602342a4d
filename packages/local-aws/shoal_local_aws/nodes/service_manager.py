"""`python -m shoal_local_aws.nodes.service_manager VERB UNIT`: systemd for the services of an emulated machine.

It supports the settings `ExecStart`, `StandardOutput=append:`, `Restart=always` and `RestartSec` in a unit file, and
the verbs `start`, `restart`, `stop` and `is-active`. A service is a process that restarts its program whenever it
exits.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path

_PLAYED = {"ExecStart", "StandardOutput", "StandardError", "Restart", "RestartSec", "KillMode", "OOMPolicy"}
_RESTART_SECONDS = "0.1"


class _Unit:
    """A service: its unit file, and the process that runs it."""

    def __init__(self, path: Path) -> None:
        parser = ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read(path)
        self.settings: Mapping[str, str] = parser["Service"]
        if unknown := {*self.settings} - _PLAYED:
            raise SystemExit(f"systemd: the embedded AWS does not support {sorted(unknown)[0]} in {path}")
        self._process = Path(os.environ["NODE_ROOT"]) / "run" / f"{path.name}.pid"

    def process(self) -> int | None:
        """Return the id of the process that runs the service, or None if the service does not run."""
        with suppress(OSError, ValueError):
            process = int(self._process.read_text())
            os.kill(process, 0)
            return process
        return None

    def play(self) -> None:
        """Run the program, and restart it whenever it exits, until this process is stopped. Then stop the program."""
        self._process.write_text(str(os.getpid()))
        log = self.settings.get("StandardOutput", "").removeprefix("append:") or os.devnull
        while True:
            with open(log, "ab") as output:  # noqa: PTH123
                program = subprocess.Popen(
                    shlex.split(self.settings["ExecStart"]), stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )

            def end(number: int, _: object, program: "subprocess.Popen[bytes]" = program) -> None:
                program.send_signal(number)
                with suppress(ChildProcessError):
                    os.waitpid(program.pid, 0)  # program.wait() would wait for the lock of the interrupted wait()
                sys.exit(0)

            signal.signal(signal.SIGTERM, end)
            program.wait()
            if self.settings.get("Restart") != "always":
                return
            time.sleep(float(self.settings.get("RestartSec", _RESTART_SECONDS)))


def main() -> int:
    verb, path = sys.argv[1], Path(sys.argv[2])
    unit = _Unit(path)
    if verb == "play":
        unit.play()
    if verb in ("stop", "restart") and (process := unit.process()):
        os.kill(process, signal.SIGTERM)
        while unit.process():
            time.sleep(0.01)
    if verb in ("start", "restart") and not unit.process():
        subprocess.Popen(
            [sys.executable, "-m", "shoal_local_aws.nodes.service_manager", "play", str(path)], start_new_session=True
        )
    if verb == "is-active":
        sys.stdout.write("active\n" if unit.process() else "inactive\n")
        return 0 if unit.process() else 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
