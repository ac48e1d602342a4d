"""`python -m benchmarks.gpu.full_memory CASE`: a training run whose GPU's memory is full at one place.

It exits as the run does. The memory is filled by plain allocations, which are freed after that place. On a CPU the
operation that allocates memory at that place fails as it would on a GPU.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch.distributed as dist

from benchmarks.gpu import stand_ins

_ROWS, _BATCH = 2000, 500
_SMALLEST = 512  # bytes that torch gives out at least


class Case(NamedTuple):
    """`method` of a class (`module`, `owner`) finds no memory; on a CPU `fails`, inside it, fails by `error`."""

    module: str
    owner: str
    method: str
    fails: str
    error: RuntimeError


_OF_TORCH = torch.OutOfMemoryError("CUDA out of memory")
_OF_NCCL = dist.DistBackendError("NCCL error\nCuda failure 2 'out of memory'")
CASES = {
    "one row": Case(
        "computing.gradients", "GradientComputer", "__call__", "trainer.classification.rows.Rows.batch", _OF_TORCH
    ),
    "first collective": Case(
        "distributed.exchange", "GradientExchange", "__init__", "torch.distributed.broadcast", _OF_NCCL
    ),
    "all-reduce": Case("distributed.exchange", "GradientExchange", "reduce", "torch.cat", _OF_TORCH),
    "moments": Case("computing.optimiser", "Optimiser", "__init__", "torch.zeros_like", _OF_TORCH),
    "first step": Case("computing.optimiser", "Optimiser", "step", "trainer.computing.optimiser.adam", _OF_TORCH),
}


@contextmanager
def full(device: torch.device, case: Case) -> Iterator[None]:
    """Leave no memory free on `device`."""
    if device.type != "cuda":
        with mock.patch(case.fails, side_effect=type(case.error)(*case.error.args)):
            yield
        return
    held, size = [], torch.cuda.get_device_properties(device).total_memory
    while size >= _SMALLEST:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device=device))
        except torch.OutOfMemoryError:
            size //= 2
    try:
        yield
    finally:
        held.clear()
        torch.cuda.empty_cache()


def main() -> int:
    """Run the case that is named; returns the run's exit status."""
    stand_ins.install()
    from benchmarks.gpu.rows import make_data, make_rows
    from benchmarks.gpu.training import use_data
    from trainer import __main__ as trainer

    case = CASES[sys.argv[1]]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = make_data(make_rows(_ROWS, torch.device("cpu")), validation=100, test=100)
    owner = getattr(import_module(f"trainer.{case.module}"), case.owner)
    method = getattr(owner, case.method)

    def without_memory(*arguments: Any, **options: Any) -> Any:
        with full(device, case):
            return method(*arguments, **options)

    with TemporaryDirectory() as folder, use_data(data), mock.patch.object(owner, case.method, without_memory):
        run = ["--data", "generated", "--output", folder, "--global-batch", str(_BATCH), "--epochs", "1"]
        sys.argv = ["trainer", *run]
        return trainer.main()


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # as the trainer ends after an error
