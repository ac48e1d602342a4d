import os
import signal
from typing import Any

import pytest
import torch
import torch.distributed as dist

from common.errors import DataError, TrainingError
from tests.forking import PIPE
from tests.waiting import PATIENCE
from trainer.computing.threads import Threads
from trainer.distributed import ranks

JOINED = """
import os
from pathlib import Path
from trainer.distributed.ranks import join_process_group
idle = {int(thread) for thread in os.listdir("/proc/self/task")} - {os.getpid()}
with join_process_group(2) as ranks:
    before = set(os.listdir("/proc/self/task"))
    ranks.threads.map(str, [1, 2])
    for thread in Path("/proc/self/task").iterdir():
        if int(thread.name) not in idle:
            name = (thread / "comm").read_text().strip() if thread.name in before else "computing"
            name = "computing" if thread.name == str(os.getpid()) else name
            print(name, os.sched_getscheduler(int(thread.name)) == os.SCHED_BATCH)
"""


def test_gloo_threads_on_a_cpu_do_not_preempt_others(warm_parent, tmp_path):
    """A gloo thread that preempted the owner of a lock would spin on it for 4 ms. Compute threads are excluded, because
    they would wait for each other as long."""
    script = tmp_path / "joined.py"
    script.write_text(JOINED)
    process = warm_parent.start(script, environment=os.environ, stdout=PIPE)
    threads = [line.rsplit(" ", 1) for line in process.communicate(PATIENCE)[0].splitlines()]
    named = {"gloo_tcp_loop", "pt_gloo_runloop"} if torch.__version__ >= (2, 13) else {"pt_gloo_runloop"}
    assert named < {name for name, _ in threads}
    assert {batch for name, batch in threads if name == "computing"} == {"False"}
    assert {batch for name, batch in threads if name != "computing"} == {"True"}


@pytest.mark.parametrize("error", [TrainingError("no disk"), DataError("no disk")])
def test_an_error_of_one_rank_is_raised_on_all(monkeypatch, error):
    gathered: list[Any] = [None, None]

    def gather(own, mine, _group):
        gathered[own.rank] = mine
        return gathered

    def agree(rank):
        with ranks.Ranks(rank=rank, world_size=2, device=torch.device("cpu"), threads=Threads(1)).agreement():
            if rank == 1:
                raise error

    monkeypatch.setattr(ranks.Ranks, "gather", gather)
    for rank in (1, 0):
        with pytest.raises(TrainingError, match=r"^rank 1: no disk$"):
            agree(rank)


def test_a_failed_gpu_rank_does_not_wait_for_others(monkeypatch):
    init = dist.init_process_group
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _device: None)
    monkeypatch.setattr(dist, "init_process_group", lambda _backend, **how: init("gloo", **how))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)  # the default, also after the test
    with pytest.raises(TrainingError, match="no disk"), ranks.join_process_group(1):
        raise TrainingError("no disk")
    assert dist.is_initialized()
    dist.destroy_process_group()
    with ranks.join_process_group(1):
        pass
    assert not dist.is_initialized()


def test_a_stop_request_is_recorded_and_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with ranks.StopSignals() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_ranks_of_a_machine_share_its_cores_by_default(monkeypatch):
    monkeypatch.setattr(ranks, "cores", lambda: 12)
    for here, asked, threads in ((1, None, 12), (2, None, 6), (13, None, 1), (2, 5, 5)):
        monkeypatch.setattr(ranks.Ranks, "gather", lambda _own, mine, here=here: [mine] * here + ["another machine"])
        with ranks.join_process_group(asked) as joined:
            assert (joined.threads.count, joined.local_size, torch.get_num_threads()) == (threads, here, 1)
