"""Two ways to add up gradients, on one rank: the trainer's own, and DistributedDataParallel (`--exchange ddp`).

One rank shows that both give the same gradients on this device, and what each costs besides sending: copies, hooks, and
the calls of NCCL. It does not show what several ranks gain. On one rank the trainer leaves its own all-reduce out, and
DistributedDataParallel calls NCCL all the same.
"""

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import LOSS, new_model
from benchmarks.gpu.part import SETTINGS, Budget, Outcome, deviation, print_progress
from benchmarks.gpu.rows import make_data, make_rows
from benchmarks.gpu.training import single_rank, train
from benchmarks.record import table
from trainer.classification.rows import Rows
from trainer.classification.task import text_gradients
from trainer.clock import step_timer
from trainer.distributed.ddp import SummingComputer
from trainer.distributed.exchange import GradientExchange

EXCHANGES = ("rows", "ddp")
_BOUNDS = {32: 1e-6, 16: 1e-3}
"""Of the deviation of gradients that are sent in so many bits from those of the trainer's own exchange in 32."""
_STEPS = 3
"""From the second step on DistributedDataParallel's buckets are in the order in which gradients are ready."""
_HELD_OUT = 100


@dataclass(frozen=True)
class Sizes:
    """What is computed and trained."""

    compared: int = 2048
    """Rows of the batch whose gradients are compared."""
    steps: int = 200
    batches: tuple[int, ...] = (1024, 16_384)
    runs: int = 3
    seconds: float = 80
    """After which no more runs are begun."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """The deviations of the gradients, and the milliseconds of a step by model, global batch and exchange."""
    budget = Budget(sizes.seconds)
    with single_rank(device) as ranks:
        off = _deviations(device, sizes.compared)
        rows = make_rows(max(sizes.batches) * sizes.steps + 2 * _HELD_OUT, device)
        times: dict[tuple[str, int], dict[str, list[float]]] = {}
        for _ in range(sizes.runs):
            for name, batch in ((name, batch) for name in SETTINGS for batch in sizes.batches):
                data = make_data(rows[: batch * sizes.steps + 2 * _HELD_OUT], validation=_HELD_OUT, test=_HELD_OUT)
                for exchange in EXCHANGES if budget.left else ():
                    options: dict[str, Any] = {"global_batch": batch, "epochs": 1, **SETTINGS[name]}
                    summary = train(data, ranks, exchange=exchange, **options)
                    found = times.setdefault((name, batch), {exchange: [] for exchange in EXCHANGES})
                    found[exchange].append(1000 * summary["seconds"] / summary["steps"])
    ratios = []
    cells = []
    for (name, batch), of in times.items():
        own, ddp = (median(of[exchange]) for exchange in EXCHANGES)
        ratios.append(ddp / own)
        cells.append([name, f"{batch:,}", f"{own:.3f}", f"{ddp:.3f}", f"{ratios[-1]:.2f}"])
    print_progress("\n" + table(["model", "global batch", "rows: ms a step", "ddp: ms a step", "ddp / rows"], cells))
    wrong = [name for name, (found, bound) in off.items() if not found <= bound]
    said = f"gradients of ddp are off by {max(found for found, _ in off.values()):.0e} at most"
    said += f", too far: {', '.join(wrong)}" if wrong else ", which is within the bounds"
    said += (
        f"; its steps take {min(ratios):.2f} to {max(ratios):.2f} times as long as those of the trainer's own exchange"
    )
    figures = {
        "deviations": {name: list(each) for name, each in off.items()},
        "steps": [[*case, of] for case, of in times.items()],
    }
    return Outcome(said=said, figures=figures, failed=bool(wrong))


def _deviations(device: torch.device, count: int) -> dict[str, tuple[float, float]]:
    """By model and bits: how far the gradients of DistributedDataParallel are off, and how far they may be."""
    rows, found = make_rows(count, torch.device("cpu")), {}
    near = rows.copy_to(device) if device.type == "cuda" else rows
    for name in SETTINGS:
        expected = _gradient(name, device, near, "rows", bits=32)
        for bits, bound in _BOUNDS.items():
            off = deviation(_gradient(name, device, near, "ddp", bits=bits), expected)
            found[f"{name}, {bits} bits"] = off, bound
            print_progress(f"gradients of ddp, {name}, {bits} bits: off by {off:.1e}, may be {bound:.0e}")
    return found


def _gradient(name: str, device: torch.device, rows: Rows, exchange: str, *, bits: int) -> torch.Tensor:
    """All gradients of these rows as one vector, after they were added up."""
    model, timer = new_model(name, device), step_timer(device, slowed=False)
    alone = text_gradients(model, rows, loss=LOSS, device=device, timer=timer)
    compute = SummingComputer(alone, timer=timer, bits=bits) if exchange == "ddp" else alone
    summing = GradientExchange(model, model.tables, timer=timer, bits=bits, summed=exchange == "ddp")
    count = len(rows)
    for step in range(_STEPS):
        model.zero_grad()
        timer.begin(count)
        loss = compute(np.arange(count), count, 0)
        summing.reduce(step=step, size=count, touched=None, loss=loss, rows=count, stop=False, save=False)
    summing.drain()
    timer.finish()
    return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
