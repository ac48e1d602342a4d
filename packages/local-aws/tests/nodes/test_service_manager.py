import os
import signal
import subprocess
import sys

from shoal_local_aws.processes import kill_marked
from tests.local_aws.waiting import until


def test_a_service_is_started_once_and_restarted(tmp_path):
    unit, said, process = tmp_path / "echo.service", tmp_path / "said", tmp_path / "run" / "echo.service.pid"
    process.parent.mkdir()
    unit.write_text(f"[Service]\nExecStart=bash -c 'echo $$ >>{said}; exec sleep 600'\nRestart=always\nRestartSec=0\n")

    def start():
        command = [sys.executable, "-m", "shoal_local_aws.nodes.service_manager", "start", str(unit)]
        subprocess.run(command, env={**os.environ, "NODE_ROOT": str(tmp_path)}, stdout=subprocess.DEVNULL, check=True)

    def starts(number):
        until(lambda: said.exists() and len(said.read_text().split()) == number)
        return int(said.read_text().split()[-1])

    try:
        start()
        os.kill(starts(1), signal.SIGKILL)
        starts(2)
        first = process.read_text()
        start()
        assert process.read_text() == first
    finally:
        kill_marked("NODE_ROOT", str(tmp_path))
