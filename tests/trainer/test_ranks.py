import subprocess
import sys
from pathlib import Path

JOINED = """
import os
from pathlib import Path
from trainer.ranks import join
idle = {int(thread) for thread in os.listdir("/proc/self/task")} - {os.getpid()}
with join(1):
    for thread in Path("/proc/self/task").iterdir():
        if int(thread.name) not in idle:
            print((thread / "comm").read_text().strip(), os.sched_getscheduler(int(thread.name)) == os.SCHED_BATCH)
"""


def test_on_a_cpu_no_thread_of_a_rank_takes_the_core_of_another_by_waking():
    """One of gloo's did: it then tried a lock whose owner it kept from running, for 4 ms at a time."""
    joined = subprocess.run(
        [sys.executable, "-c", JOINED], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    batch = dict(line.rsplit(" ", 1) for line in joined.stdout.splitlines())
    assert {"gloo_tcp_loop", "pt_gloo_runloop"} < batch.keys()
    assert set(batch.values()) == {"True"}
