"""What DistributedDataParallel sums is a rank's own share, which is slowed down and fails like any other."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.distributed import ddp
from trainer.distributed.ddp import SummingComputer
from trainer.distributed.ranks import join_process_group
from trainer.rank_errors import RankError


@pytest.fixture(autouse=True)
def one_rank() -> Iterator[None]:
    with join_process_group(1):
        yield


def computer(error: Exception | None = None) -> SummingComputer:
    """Of a small model, whose loss is an error where one is given."""

    def loss_of(model: nn.Module, numbers: np.ndarray, _step: int, _timer: StepTimer) -> torch.Tensor:
        if error:
            raise error
        found: torch.Tensor = model(torch.ones(len(numbers), 3)).sum()
        return found

    timer = StepTimer()
    timer.begin(2)
    alone = GradientComputer(nn.Linear(3, 1), loss_of, rows=9, device=torch.device("cpu"), timer=timer)
    return SummingComputer(alone, timer=timer, bits=32)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), RankError, "^2 rows do not fit into the memory of cpu at once"),
        (RuntimeError("CUDA error: unspecified launch failure"), RuntimeError, "^CUDA error"),
    ],
)
def test_rows_that_do_not_fit_into_memory_are_told_from_other_errors(
    error: Exception, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        computer(error)(np.arange(2), 2, 0)


def test_a_rank_that_is_slowed_down_sleeps_for_so_many_times_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times, slept = iter([1.0, 3.0]), list[float]()
    monkeypatch.setattr(ddp, "time", SimpleNamespace(perf_counter=lambda: next(times), sleep=slept.append))
    computer()(np.arange(2), 2, 0, 4.0)
    assert slept == [6.0]
