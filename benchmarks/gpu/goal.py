"""The reference's training, ten epochs of 21.3 million rows: for some seconds at each global batch, or to its end.

Training and evaluation are projected, each at its measured rate. Do not trust phases that are measured while the GPU
waits for the host: the kernels of a step (kernels.py), which come first, show what it really does.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import LOSS
from benchmarks.gpu.kernels import kernels_of_step, model_as_trained
from benchmarks.gpu.part import Outcome, keep, print_progress
from benchmarks.gpu.rows import make_data, make_rows
from benchmarks.gpu.training import single_rank, train
from benchmarks.record import table
from trainer.classification.data import TextData
from trainer.classification.evaluate import evaluate
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import Rows
from trainer.computing.threads import Threads
from trainer.distributed.ranks import Ranks

EPOCHS = 10
GOALS = {"3 minutes": 180, "1 minute": 60}


@dataclass(frozen=True)
class Sizes:
    """What is trained: `rows` to learn from, `validation` rows after each epoch, `test` rows at the end."""

    rows: int = 21_300_000
    validation: int = 1_120_000
    test: int = 2_370_000
    batches: tuple[int, ...] = (16_384, 65_536)
    seconds: float = 35
    """Of training at each global batch."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """A part of the run at each global batch, its phases, and the time that the whole run would take."""
    start = perf_counter()
    rows = make_rows(sizes.rows + sizes.validation + sizes.test, device)
    print_progress(f"made {len(rows):,} rows in {perf_counter() - start:.1f} s")
    data = make_data(rows, validation=sizes.validation, test=sizes.test)
    with single_rank(device) as ranks:
        kernels = {batch: kernels_of_step(data.training, device, batch) for batch in sizes.batches}
        keep({"kernels": kernels})
        model = model_as_trained(device)
        each_epoch, once = (_evaluation_seconds(model, rows) for rows in (data.validation, data.test))
        print_progress(f"{sizes.validation:,} rows are evaluated in {each_epoch:.2f} s, {sizes.test:,} in {once:.2f} s")
        evaluating = EPOCHS * each_epoch + once
        figures: dict[str, Any] = {"kernels": kernels, "judging": evaluating, "stretches": (found := [])}
        for batch in sizes.batches:
            found.append(_stretch(data, ranks, batch, evaluating, sizes))
            keep(figures)
    best = min(found, key=lambda each: float(each["projected"]))
    reached = [name for name, seconds in GOALS.items() if best["projected"] <= seconds]
    said = (
        f"{best['projected'] / 60:.1f} minutes for all, by {best['epochs']:.2f} epochs, {best['batch']:,} rows a step; "
        f"goals reached: {', '.join(reached) or 'none'}"
    )
    return Outcome(said=said, figures=figures)


def _evaluation_seconds(model: Classifier, rows: Rows) -> float:
    """The time of an evaluation after some of its rows have been evaluated once: it is counted for each epoch."""
    for some in (rows[: len(rows) // 10], rows):
        start = perf_counter()
        evaluate(model, some, split=np.array([len(some)]), loss=LOSS, threads=Threads(1), stop=lambda: False)
    return perf_counter() - start


def _stretch(data: TextData, ranks: Ranks, batch: int, evaluating: float, sizes: Sizes) -> dict[str, Any]:
    """Train for some seconds, and stop as Ctrl-C would."""
    with asked_to_stop(sizes.seconds):
        summary = train(data, ranks, global_batch=batch, epochs=EPOCHS)
    steps, (phases,) = summary["steps"], summary["profile"]
    rate = summary["samples_per_second"]
    projected = EPOCHS * sizes.rows / rate + evaluating
    milliseconds = {phase: 1000 * seconds / steps for phase, seconds in phases.items()}
    of_step = 1000 * summary["seconds"] / steps
    print_progress(
        f"\nglobal batch {batch:,}: {rate:,.0f} rows/s, {steps} steps of {of_step:.2f} ms; {projected:.0f} s for all"
    )
    cells = [[phase, f"{ms:.3f}", f"{ms / of_step:.0%}"] for phase, ms in milliseconds.items()]
    print_progress(table(["phase", "ms a step", "of a step"], cells))
    return {
        "batch": batch,
        "rate": rate,
        "steps": steps,
        "epochs": summary["rows_seen"] / sizes.rows,
        "projected": projected,
        "milliseconds": milliseconds,
        "summary": summary,
    }


@contextmanager
def asked_to_stop(seconds: float) -> Iterator[None]:
    """Ask this process to stop after so many seconds, if it still trains then."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # for a signal after the run
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGTERM, before)
