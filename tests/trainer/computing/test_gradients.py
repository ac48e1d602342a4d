"""Gradients of a share are the same in pieces, on several threads, and at once. Threads keep the order of results, and
every exception is raised."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.trainer.conftest import make_rows
from tests.waiting import PATIENCE
from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.rows import TextRows, WordDropout
from trainer.classification.task import text_gradients
from trainer.clock import COMPUTE, StepTimer
from trainer.computing import gradients as computing
from trainer.computing.gradients import GradientComputer
from trainer.computing.row_gradients import mean_of_rows
from trainer.computing.threads import Threads
from trainer.rank_errors import RankError

SETTINGS = {"words": 80, "embedding": 8, "hidden": 8, "layers": 2, "pooling": "mean+max+words", "outputs": 1}
ROWS = 60


def gradients(threads=1, parts=(slice(0, ROWS),)):
    torch.manual_seed(0)
    shares = {"dropout": 0.5, "embedding_dropout": 0.5}
    model = models.build("lstm", {**SETTINGS, **shares}).double()
    timer, rows = StepTimer(), TextRows(**make_rows(ROWS, seed=3)._asdict())
    words = WordDropout(0.3, rows.tokens.shape[1], seed=0)
    loss = Loss(kind="bce", scale=Scale(1, 5, 4), positive_weight=0.5)
    how = {"loss": loss, "device": torch.device("cpu"), "words": words, "timer": timer, "threads": Threads(threads)}
    compute = text_gradients(model, rows, **how)
    for step in range(2):
        model.zero_grad()
        timer.begin(ROWS)
        for part in parts:
            compute(np.arange(ROWS)[part], ROWS, step)
    assert timer.latest_stats()[0] == ROWS
    assert timer.latest_stats()[1] > 0
    timer.finish()
    assert set(timer.sums) <= set(COMPUTE)
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize(
    "how",
    [{"threads": 3}, {"parts": (slice(0, 13), slice(13, 13), slice(13, ROWS))}],
    ids=["three threads", "added to existing gradients"],
)
def test_gradients_computed_otherwise_are_the_same(how):
    torch.testing.assert_close(gradients(**how), gradients(), atol=1e-12, rtol=0)


class Vectors(torch.nn.Module):
    """Table with a sparse or a dense gradient, and a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn((20, 3), generator=torch.Generator().manual_seed(1)))
        self.factor = torch.nn.Parameter(torch.ones(3))


def gradients_of_vectors(*, sparse: bool, full_at: int, parts: tuple[slice, ...], precision: torch.dtype):
    """Return the gradients of 12 rows in pieces of 4, with a full memory once, in the piece `full_at`."""
    model, pieces = Vectors(), iter(range(100))

    def loss_of(model, numbers, _step, _timer):
        if next(pieces) == full_at:
            raise torch.OutOfMemoryError("CUDA out of memory")
        ids = torch.from_numpy(np.stack((numbers, 2 * numbers % 20)).T.copy())
        ends = torch.arange(2, 2 * len(ids) + 1, 2)
        vectors = mean_of_rows(model.table, ids.flatten(), ends) if sparse else model.table[ids].mean(1)
        return (vectors * model.factor).square().sum()

    how = {"sparse_tables": [model.table] if sparse else [], "precision": precision, "device": torch.device("cpu")}
    compute = GradientComputer(model, loss_of, rows=12, timer=StepTimer(), **how)
    compute.piece_rows = 4
    loss = torch.stack([compute(np.arange(12)[part], 12, 0) for part in parts]).sum()
    if sparse:
        compute.set_table_gradients()
    assert compute.piece_rows == (2 if full_at < 100 else 4)
    return loss.detach(), model.factor.grad, model.table.grad.to_dense()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("full_at", "parts"), [(0, (slice(0, 12),)), (2, (slice(0, 12),)), (3, (slice(0, 5), slice(5, 12)))]
)
def test_pieces_computed_before_memory_was_full_count_once(sparse, precision, full_at, parts):
    expected = gradients_of_vectors(sparse=False, full_at=100, parts=(slice(0, 12),), precision=torch.float32)
    found = gradients_of_vectors(sparse=sparse, full_at=full_at, parts=parts, precision=precision)
    torch.testing.assert_close(found, expected)


def computed_with_memory_for(rows: int) -> int:
    """Compute 60 rows with memory for this number of rows. Return the size of the pieces."""

    def loss_of(model, numbers, _step, _timer):
        if len(numbers) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return (model.table * model.factor).square().sum()

    compute = GradientComputer(Vectors(), loss_of, rows=60, timer=StepTimer(), device=torch.device("cpu"))
    compute(np.arange(60), 60, 0)
    return compute.piece_rows


@pytest.mark.parametrize(("rows", "piece"), [(60, 0), (30, 30), (29, 15), (7, 4), (1, 1)])
def test_pieces_are_as_large_as_memory_allows(rows, piece):
    assert computed_with_memory_for(rows) == piece


def test_memory_for_less_than_one_row_is_an_error(messages):
    with messages.raises(RankError):
        computed_with_memory_for(0)


@pytest.mark.parametrize(("device", "before"), [("cpu", []), ("cuda", ["synchronize"])])
def test_a_slowed_rank_sleeps_in_proportion_to_its_own_time(monkeypatch, device, before):
    times, calls = iter([1.0, 3.0]), list[str]()
    clock = SimpleNamespace(
        perf_counter=lambda: calls.append("time") or next(times),
        sleep=lambda seconds: calls.append(f"sleep {seconds}"),
    )
    monkeypatch.setattr(computing, "time", clock)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: calls.append("synchronize"))

    def loss_of(model, _numbers, _step, _timer):
        calls.append("compute")
        return (model.table.sum() * model.factor).sum()

    compute = GradientComputer(Vectors(), loss_of, rows=2, device=torch.device(device), timer=StepTimer())
    compute.slowness = 4.0
    compute(np.arange(2), 2, 0)
    assert calls == [*before, "time", "compute", *before, "time", "sleep 6.0"]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_results_come_in_the_order_of_the_parts(count):
    assert Threads(count).map(lambda part: part * part, range(7)) == [0, 1, 4, 9, 16, 25, 36]
    assert Threads(count).map(lambda part: part, []) == []


def test_parts_are_computed_in_parallel_and_the_first_by_the_caller():
    together = threading.Barrier(3, timeout=PATIENCE)

    def meet(_part):
        together.wait()
        return threading.current_thread().name, torch.get_num_threads()

    names, threads = zip(*Threads(3).map(meet, range(3)), strict=True)
    assert names[0] == threading.current_thread().name
    assert len(set(names)) == 3
    assert threads[1:] == (1, 1)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_exception_of_a_part_is_raised_after_all_have_finished(failing):
    ended = []

    def work(part):
        if part == failing:
            raise ValueError(f"part {part}")
        ended.append(part)

    with pytest.raises(ValueError, match=f"part {failing}"):
        Threads(2).map(work, [0, 1])
    assert ended == [1 - failing]
