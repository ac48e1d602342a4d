"""Rows evaluated a second, by the trainer's own evaluation: rows on the host, and rows on the GPU."""

from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import LOSS, new_model
from benchmarks.gpu.part import SETTINGS, Budget, Outcome, print_progress
from benchmarks.gpu.rows import make_rows
from benchmarks.gpu.training import single_rank
from benchmarks.record import table
from trainer.classification.evaluate import evaluate
from trainer.computing.precision import NAMES, capability, choose
from trainer.computing.threads import Threads


@dataclass(frozen=True)
class Sizes:
    """How much is evaluated."""

    rows: int = 2_000_000
    runs: int = 3
    seconds: float = 40


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Rows a second of each model in each precision."""
    budget, rates = Budget(sizes.seconds), {}
    rows = make_rows(sizes.rows, device)
    where = {"on the host": rows, "on the device": rows.copy_to(device)}
    split = np.array([len(rows)])
    with single_rank(device):
        for name in SETTINGS:
            model = new_model(name, device)
            for precision in dict.fromkeys((choose("auto", [capability(device)]), "float32")):
                model.precision = NAMES[precision]
                for place, on in where.items():
                    taken: list[float] = []
                    evaluate(
                        model,
                        on[: len(rows) // 10],
                        split=split // 10,
                        loss=LOSS,
                        threads=Threads(1),
                        stop=lambda: False,
                    )
                    while not taken or (len(taken) < sizes.runs and budget.left):
                        start = perf_counter()
                        evaluate(model, on, split=split, loss=LOSS, threads=Threads(1), stop=lambda: False)
                        taken.append(perf_counter() - start)
                    rates[name, precision, place] = len(rows) / median(taken)
                    print_progress(f"{name}, {precision}, {place}: {rates[name, precision, place]:,.0f} rows/s")
    cells = [[*case, f"{rate:,.0f}"] for case, rate in rates.items()]
    print_progress("\n" + table(["model", "precision", "rows", "rows/s"], cells))
    figures: list[Any] = [[*case, rate] for case, rate in rates.items()]
    best = {name: max(rate for case, rate in rates.items() if case[0] == name) for name in SETTINGS}
    said = ", ".join(f"{name} {rate / 1e6:.2f} million rows/s" for name, rate in best.items())
    return Outcome(said=said, figures={"rates": figures, "rows": sizes.rows})
