"""Ranks that lost others, ran out of memory, or have different weights."""

import os
import pickle
import socket
from datetime import timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from common.errors import TrainingError
from trainer.__main__ import main
from trainer.computing.optimiser import Optimiser
from trainer.distributed import collectives
from trainer.distributed.collectives import convert_errors, wait
from trainer.distributed.drift import _checksums, synchronise
from trainer.distributed.failures import Failure, FailureKind, root_cause
from trainer.distributed.ranks import join_process_group
from trainer.options.optimisation_options import OptimisationOptions


class Reply:
    """A GPU event that completes, and a backend that reports a lost peer, at query number `at`; 0: never."""

    def __init__(self, at: int) -> None:
        self.at, self.looks = at, 0

    def query(self) -> bool:
        self.looks += 1
        return self.looks == self.at

    def get_error(self) -> SimpleNamespace:
        return SimpleNamespace(name="REMOTE_ERROR" if self.query() else "SUCCESS")


def test_a_wait_for_a_gpu_ends_when_its_event_completes_or_a_peer_is_lost(messages):
    event = Reply(at=4)
    wait(event, Reply(at=0))
    assert event.looks == 4
    with join_process_group(1), messages.raises(TrainingError), convert_errors("at step 5"):
        wait(Reply(at=0), Reply(at=3))


def test_a_rank_asks_the_backend_of_its_own_device():
    with join_process_group(1):
        assert collectives.backend_of(torch.device("cpu")).name() == "gloo"


@pytest.mark.parametrize(
    "error", [RuntimeError("Connection closed\nmore"), dist.DistBackendError("")], ids=["gloo", "NCCL"]
)
def test_an_error_of_a_collective_becomes_a_lost_error(error, messages):
    with join_process_group(1), messages.raises(TrainingError), convert_errors("in an evaluation"):
        raise error


@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, dist.DistBackendError, RuntimeError])
def test_full_memory_is_not_a_lost_peer(kind):
    with join_process_group(1), pytest.raises(kind, match="out of memory"), convert_errors("at step 5"):
        raise kind("NCCL error in: NCCLUtils.cpp\nCuda failure 2 'out of memory'")


def test_a_failed_rendezvous_names_the_address(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "RANK": "1"}
    for name, value in meeting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(collectives, "RENDEZVOUS_TIMEOUT", timedelta(seconds=1))
    monkeypatch.setattr("sys.argv", ["trainer", "--data", "d.h5", "--output", "out"])
    assert main() == 1
    said = capsys.readouterr().err
    assert "rank 1 did not meet" in said
    assert f"127.0.0.1:{port} (" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("local_rank", "said"), [("0", 1), ("1", 0)])
def test_too_few_gpus_are_an_error(monkeypatch, capsys, local_rank, said, messages):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["trainer", "--data", "d.h5", "--output", "out"])
    assert main() == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == said
    messages.check(errors)


def test_an_error_is_reported_before_the_group_is_destroyed(monkeypatch, capsys, tmp_path):
    said_before: list[str] = []
    leave = dist.destroy_process_group

    def watched():
        said_before.append(capsys.readouterr().err)
        leave()

    monkeypatch.setattr(dist, "destroy_process_group", watched)
    monkeypatch.setattr("sys.argv", ["trainer", "--data", str(tmp_path / "none.h5"), "--output", str(tmp_path)])
    assert main() == 1
    assert "none.h5: no such file" in said_before[0]


def test_values_of_ranks_are_not_unpickled(tmp_path):
    class Order:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    content = BytesIO()
    torch.save(Order(), content)
    with pytest.raises(pickle.UnpicklingError):
        collectives._unpacked(torch.frombuffer(content.getbuffer(), dtype=torch.uint8))
    assert not (tmp_path / "made").exists()
    value = {"a": (1, 2.5, None, "x"), "b": [{3}, torch.ones(2)], 4: True}
    assert str(collectives._unpacked(collectives._packed(value))) == str(value)


FINAL, CAUSE, CONSEQUENCE = FailureKind


def failure(kind: FailureKind, time: float, *, attempt: int = 0, where: str | None = "at step 5") -> Failure:
    return Failure(kind=kind, time=time, what=f"{kind} at {time:g}", attempt=attempt, where=where)


@pytest.mark.parametrize(
    ("failures", "found"),
    [
        ([failure(CONSEQUENCE, 1), failure(CAUSE, 3), failure(CAUSE, 2)], "cause at 2 at step 5"),
        ([failure(CONSEQUENCE, 2), failure(CONSEQUENCE, 1)], "consequence at 1 at step 5"),
        ([failure(CAUSE, 1), failure(CONSEQUENCE, 3, attempt=1), failure(CAUSE, 4, attempt=1)], "cause at 4 at step 5"),
        ([failure(FINAL, 2), failure(CAUSE, 1), failure(CAUSE, 3, attempt=1)], "final at 2 at step 5"),
        ([failure(CAUSE, 1, where=None), failure(CONSEQUENCE, 2, where="at step 7")], "cause at 1 at step 7"),
        ([failure(CAUSE, 1, where=None)], "cause at 1"),
    ],
)
def test_a_recurring_failure_is_reported_or_else_the_first_cause_of_the_last_attempt(failures, found):
    assert root_cause(failures).short == found


def stepped(model: torch.nn.Module) -> Optimiser:
    """Return an optimiser after one step."""
    found = Optimiser(model, [], OptimisationOptions())
    for each in model.parameters():
        each.grad = torch.ones_like(each)
    found.step(0.01)
    return found


def test_a_rank_with_different_weights_takes_weights_and_moments_of_the_first(monkeypatch):
    first, own = (torch.nn.Linear(2, 1) for _ in range(2))
    own.load_state_dict(first.state_dict())
    of_first, of_own = stepped(first), stepped(own)
    ranks: Any = SimpleNamespace(world_size=2, gather=lambda mine: [mine, _checksums(first)])
    assert synchronise(own, of_own, ranks) is None
    own.weight.data[0, 1] += 0.25
    of_own.state()["first.0"] += 1
    sent = iter([*(each.detach() for each in first.parameters()), *of_first.state().values()])
    monkeypatch.setattr(dist, "broadcast", lambda tensor, src: tensor.copy_(next(sent)) if src == 0 else None)
    ranks.gather = lambda mine: [mine, 0.0 if isinstance(mine, float) else _checksums(first)]
    assert synchronise(own, of_own, ranks) == pytest.approx(0.25)
    assert _checksums(own) == _checksums(first)
    assert all(torch.equal(each, of_first.state()[name]) for name, each in of_own.state().items())
    assert next(sent, None) is None
