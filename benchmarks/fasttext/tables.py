"""Whether a training step takes as long with a larger table of vectors: gradients and the optimiser's step, one thread.

    python -m benchmarks fasttext tables [--rows 10000 100000 1000000 5000000] [--runs 5]

Every batch touches the same number of rows. They are chosen anew for each batch, by Zipf's law, and lie anywhere in the
table, as the buckets of n-grams do: so more of a large table is outside the processor's caches. Each run makes all
tables anew. What the kernel takes to give a table its memory, at the first touch of each page, is left out: the
optimiser's moments are written to before.
"""

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.record import Log
from trainer.classification import models
from trainer.classification.losses import BCE, Loss, Scale
from trainer.classification.rows import RaggedRows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.order import IntArray

OPTIMISERS = ("sgd", "adagrad", "adam")
_BATCH, _LENGTH, _TOUCHED = 64, 130, 4000
_LEAST = 10_000
_DRAWN = 30_000
_SPREAD = 2_654_435_761  # a prime
_WARM = 5
_LOSS = Loss(kind=BCE, scale=Scale(0, 1, 1), positive_weight=1.0)


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fasttext tables", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[10_000, 100_000, 1_000_000, 5_000_000],
        help="of the table (default: 10 thousand to 5 million)",
    )
    parser.add_argument("--dimensions", type=int, default=10, help="of a vector (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="steps that are timed (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    if min(options.rows) < _LEAST:
        parser.error(f"--rows must be at least {_LEAST:,}: of a smaller table a batch would touch fewer rows")
    torch.set_num_threads(1)
    log = Log("fasttext-tables")
    found: dict[tuple[str, int], list[float]] = {case: [] for case in itertools.product(OPTIMISERS, options.rows)}
    for run in range(options.runs):
        for (optimiser, rows), rates in found.items():
            rates.append(steps_a_cpu_second(rows, optimiser, dimensions=options.dimensions, steps=options.steps))
        log.say(f"{run}: { {f'{kind}, {rows:,}': round(rates[-1]) for (kind, rows), rates in found.items()} }")
    smallest = min(options.rows)
    cells = []
    for (kind, rows), rates in found.items():
        ratios = [rate / other for rate, other in zip(rates, found[kind, smallest], strict=True)]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        cells.append([kind, f"{rows:,}", f"{median(rates):,.0f}", f"{min(rates):,.0f} to {max(rates):,.0f}", spread])
    log.table(["optimiser", "rows of the table", "steps a CPU-second", "of the runs", f"to {smallest:,} rows"], cells)
    log.keep({"options": vars(options), "rates": [[*case, rates] for case, rates in found.items()]})


def steps_a_cpu_second(rows: int, optimiser: str, *, dimensions: int, steps: int) -> float:
    """The training steps a CPU-second, with batches of 64 texts of 130 words that touch 4,000 of `rows` rows."""
    settings = {"words": rows, "embedding": dimensions, "ngrams": 1, "buckets": 1, "dropout": 0.0, "outputs": 1}
    model, timer = models.build("fasttext", settings), StepTimer()
    texts = _texts(rows, _WARM + steps)
    compute = text_gradients(model, texts, loss=_LOSS, device=torch.device("cpu"), timer=timer)
    config = TrainConfig(data=Path(), output=Path(), model="fasttext", optimiser=optimiser, momentum=0.0)
    updates = Optimiser(model, model.tables, config, sparse_tables=model.sparse_tables)
    for moments in updates.state().values():
        moments.add_(0.0)

    def step(number: int) -> None:
        batch: IntArray = np.arange(number * _BATCH, (number + 1) * _BATCH)
        timer.begin(_BATCH)
        updates.clear()
        compute(batch, _BATCH, number)
        compute.set_table_gradients()
        updates.step(0.01)

    for number in range(_WARM):
        step(number)
    start = time.process_time()
    for number in range(_WARM, _WARM + steps):
        step(number)
    return steps / (time.process_time() - start)


def _texts(rows: int, batches: int) -> RaggedRows:
    """Texts of random words, of which each batch has so many different ones."""
    generator = np.random.default_rng(0)
    size = _BATCH * _LENGTH
    tokens = np.empty((batches, size), np.uint32)
    for batch in tokens:
        ranks = (rows ** generator.random(_DRAWN)).astype(np.int64)  # from 1 to rows - 1
        _, first = np.unique(ranks, return_index=True)
        touched = ranks[np.sort(first)[:_TOUCHED]] * _SPREAD % rows
        batch[:] = touched[generator.integers(0, len(touched), size)]
    count = batches * _BATCH
    labels = generator.integers(0, 2, count, dtype=np.uint8)
    lengths = np.full(count, _LENGTH, np.uint32)
    return RaggedRows(
        tokens=tokens.ravel(),
        lengths=lengths,
        labels=labels,
        ratings=labels,
        ends=lengths.cumsum(dtype=np.int64),
        row_length=_LENGTH,
    )
