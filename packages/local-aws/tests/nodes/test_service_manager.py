import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.local_aws.waiting import until


def test_a_service_is_started_restarted_and_stopped(tmp_path):
    unit, said, process = tmp_path / "echo.service", tmp_path / "said", tmp_path / "run" / "echo.service.pid"
    process.parent.mkdir()
    unit.write_text(f"[Service]\nExecStart=bash -c 'echo $$ >>{said}; exec sleep 600'\nRestart=always\nRestartSec=0\n")

    def systemctl(verb):
        command = [sys.executable, "-m", "shoal_local_aws.nodes.service_manager", verb, str(unit)]
        environment = {**os.environ, "NODE_ROOT": str(tmp_path)}
        return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode

    def starts(number):
        until(lambda: said.exists() and len(said.read_text().split()) == number)
        return int(said.read_text().split()[-1])

    assert systemctl("is-active") == 3
    systemctl("start")
    os.kill(starts(1), signal.SIGKILL)
    starts(2)
    first = process.read_text()
    systemctl("start")
    assert process.read_text() == first
    systemctl("restart")
    last = starts(3)
    assert (systemctl("is-active"), process.read_text() == first) == (0, False)
    systemctl("stop")
    assert systemctl("is-active") == 3
    until(lambda: not Path(f"/proc/{last}").exists())
