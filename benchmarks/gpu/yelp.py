"""Ten epochs of fastText's model on generated texts of Yelp polarity's size and number of words (texts.py).

A larger global batch is faster and learns less in ten epochs, so the result has both accuracy and time. The time is
that of the training steps and of the evaluations, without reading.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from benchmarks.gpu.part import Outcome, keep, print_progress
from benchmarks.gpu.texts import TEST, TRAINING, make_text_data, make_text_rows
from benchmarks.gpu.training import single_rank, stopped_after, train
from benchmarks.record import table
from trainer.classification.data import TextData
from trainer.distributed.ranks import Ranks
from trainer.registry import MODELS

EPOCHS, GOAL = 10, 60
"""Number of epochs, and the goal in seconds."""
_MODEL: dict[str, Any] = {"model": "fasttext", **MODELS["fasttext"].defaults}


@dataclass(frozen=True)
class Sizes:
    """Amount of training: `rows` to learn from, `validation` rows after each epoch, `test` rows at the end."""

    rows: int = TRAINING - TRAINING // 20
    validation: int = TRAINING // 20
    test: int = TEST
    batches: tuple[int, ...] = (4096, 1024, 256)
    seconds: float = 35
    """Time after which a training run is stopped."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure time and accuracy of ten epochs at each global batch. The time of a stopped training is projected."""
    start = perf_counter()
    rows = make_text_rows(sizes.rows + sizes.validation + sizes.test)
    data = make_text_data(rows, validation=sizes.validation, test=sizes.test)
    print_progress(f"made {len(rows):,} texts of {len(rows.tokens):,} words in {perf_counter() - start:.1f} s")
    with single_rank(device) as ranks:
        found = []
        for batch in sizes.batches:
            found.append(_trained(data, ranks, batch, sizes))
            keep({"trainings": found})
    best = min(found, key=lambda each: float(each["projected"]))
    said = (
        f"{best['projected']:.0f} s for {EPOCHS} epochs, {best['batch']:,} rows a step, accuracy {best['accuracy']}; "
        f"the goal of {GOAL} s is {'reached' if best['projected'] <= GOAL else 'not reached'}"
    )
    return Outcome(said=said, figures={"trainings": found})


def _trained(data: TextData, ranks: Ranks, batch: int, sizes: Sizes) -> dict[str, Any]:
    with stopped_after(sizes.seconds):
        summary = train(data, ranks, global_batch=batch, epochs=EPOCHS, **_MODEL)
    times, (phases,) = summary["times"], summary["profile"]
    epochs = summary["rows_seen"] / sizes.rows
    projected = EPOCHS / epochs * (times["training"] + times["evaluation"])
    said = f"{projected:.1f} s for {EPOCHS} epochs, by {epochs:.2f} of them; accuracy {summary['accuracy']}"
    print_progress(f"\nglobal batch {batch:,}: {summary['rows_seen'] / times['training']:,.0f} rows/s; {said}")
    of_step = {phase: 1000 * seconds / summary["steps"] for phase, seconds in phases.items()}
    print_progress(table(["phase", "ms a step"], [[phase, f"{ms:.3f}"] for phase, ms in of_step.items()]))
    return {
        "batch": batch,
        "epochs": epochs,
        "projected": projected,
        "accuracy": summary["accuracy"],
        "summary": summary,
    }
