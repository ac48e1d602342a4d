"""`python -m shoal_local_aws.nodes.service_manager start UNIT`: systemd for the services of an emulated machine.

It supports the settings `ExecStart`, `StandardOutput=append:`, `Restart=always` and `RestartSec` in a unit file. A
service is a process that restarts its program whenever it exits.
"""

import os
import shlex
import subprocess
import sys
import time
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path

_PLAYED = {"ExecStart", "StandardOutput", "StandardError", "Restart", "RestartSec", "KillMode", "OOMPolicy"}
_RESTART_SECONDS = "0.1"


def main() -> None:
    verb, path = sys.argv[1], Path(sys.argv[2])
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path)
    settings = dict(parser["Service"])
    if unknown := {*settings} - _PLAYED:
        raise SystemExit(f"systemd: the embedded AWS does not support {sorted(unknown)[0]} in {path}")
    process = Path(os.environ["NODE_ROOT"]) / "run" / f"{path.name}.pid"
    if verb == "play":
        process.write_text(str(os.getpid()))
        _play(settings)
    elif not _runs(process):
        subprocess.Popen(
            [sys.executable, "-m", "shoal_local_aws.nodes.service_manager", "play", str(path)], start_new_session=True
        )


def _play(settings: dict[str, str]) -> None:
    """Run the program of a service, and restart it whenever it exits."""
    log = settings.get("StandardOutput", "").removeprefix("append:") or os.devnull
    while True:
        with open(log, "ab") as output:  # noqa: PTH123
            command = shlex.split(settings["ExecStart"])
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        if settings.get("Restart") != "always":
            return
        time.sleep(float(settings.get("RestartSec", _RESTART_SECONDS)))


def _runs(process: Path) -> bool:
    with suppress(OSError, ValueError):
        os.kill(int(process.read_text()), 0)
        return True
    return False


if __name__ == "__main__":
    main()
