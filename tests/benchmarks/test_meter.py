import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.meter import OUT_OF_MEMORY, OUT_OF_TIME, Usage, metered
from tests.waiting import until

BURN = "import time\nend = time.process_time() + .2\nwhile time.process_time() < end: pass\n"


def run(tmp_path: Path, code: str, *, memory_limit: int = 4 << 30, time_limit: float = 60) -> Usage:
    command = [sys.executable, "-c", code]
    return metered(command, tmp_path / "log", memory_limit=memory_limit, time_limit=time_limit)


def test_cpu_time_includes_children_that_were_not_waited_for(tmp_path: Path) -> None:
    done = str(tmp_path / "done")
    child = f"{BURN}open({done!r}, 'w').close()\n"
    start = f"import os, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
    usage = run(tmp_path, f"{start}{BURN}while not os.path.exists({done!r}): time.sleep(.01)\ntime.sleep(.5)")
    assert usage.failed is None
    assert usage.cpu > 0.4


def test_memory_is_measured_for_the_largest_process_and_the_tree(tmp_path: Path) -> None:
    hold = "import time\nheld = b'x' * 60_000_000\ntime.sleep(1)\n"
    usage = run(tmp_path, f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {hold!r}])\n{hold}")
    assert 60e6 < usage.peak_process < 110e6
    assert usage.peak_tree > 120e6


def test_failure_by_memory_time_or_exit_is_reported(tmp_path: Path) -> None:
    greedy = "import time\nheld = b'x' * 300_000_000\ntime.sleep(30)"
    assert OUT_OF_MEMORY in str(run(tmp_path, greedy, memory_limit=100_000_000).failed)
    assert run(tmp_path, "import time\ntime.sleep(60)", time_limit=0.5).failed == OUT_OF_TIME
    assert run(tmp_path, "raise SystemExit('no such luck')").failed == "exit 1: no such luck"
    assert run(tmp_path, "raise MemoryError").failed == OUT_OF_MEMORY
    assert run(tmp_path, "import os\nos.kill(os.getpid(), 9)").failed == OUT_OF_MEMORY


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_command_ends_with_the_measuring_process(tmp_path: Path, kind: signal.Signals) -> None:
    marker = f"left-{os.getpid()}-{kind}"
    code = f"import time\ntime.sleep(60) # {marker}"
    measuring = (
        "import sys\nfrom pathlib import Path\nfrom benchmarks.meter import metered\n"
        f"metered([sys.executable, '-c', {code!r}], Path({str(tmp_path / 'log')!r}), "
        "memory_limit=1 << 30, time_limit=60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", measuring], stderr=subprocess.DEVNULL)

    def left() -> list[psutil.Process]:
        return [each for each in psutil.process_iter(["cmdline"]) if code in (each.info["cmdline"] or ())]

    until(left)
    process.send_signal(kind)
    process.wait()
    until(lambda: not left())
