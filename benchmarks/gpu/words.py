"""Skip-gram on generated text: words per second by the rows of a step, in complete runs of the trainer.

Words follow Zipf's law, so steps touch as many different words as in real text. Only their frequencies can be learned.
The time is that of the training steps, without reading.
"""

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.gpu.part import Outcome, keep, print_progress
from benchmarks.gpu.training import single_rank, stopped_after
from benchmarks.record import table
from corpus.text import FIRST_WORD
from trainer import start
from trainer.config import configured
from trainer.distributed.ranks import Ranks
from trainer.embeddings.task import Embedding
from trainer.embeddings.text_rows import TextRows, Vocabulary
from trainer.registry import MODELS

GOAL = 50e6
"""Goal for words per second."""
_ROW = 128
_HELD_OUT = 64
_MODEL: dict[str, Any] = {"model": "skipgram", **MODELS["skipgram"].defaults}


@dataclass(frozen=True)
class Sizes:
    """Amount of training."""

    rows: int = 1 << 16
    words: int = 71_000
    """Size of the vocabulary, near the number of words that occur five times in text8."""
    batches: tuple[int, ...] = (4096, 1024, 256, 64, 16)
    sizes: tuple[int, ...] = (100, 200)
    """Dimensions of the vectors."""
    seconds: float = 6
    """Time after which a training run is stopped."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure words per second, the loss, and the phases of a step, for each size and batch."""
    data = make_text(sizes.rows, sizes.words)
    with single_rank(device) as ranks:
        found = []
        for size, batch in product(sizes.sizes, sizes.batches):
            found.append(_trained(data, ranks, size, batch, sizes.seconds))
            keep({"trainings": found})
    best = max(found, key=lambda each: float(each["words_per_second"]))
    said = (
        f"{best['words_per_second'] / 1e6:.1f} million words a second with vectors of {best['size']} and "
        f"{best['batch']:,} rows a step; the goal of {GOAL / 1e6:g} million is "
        f"{'reached' if best['words_per_second'] > GOAL else 'not reached'}"
    )
    return Outcome(said=said, figures={"trainings": found})


def make_text(rows: int, words: int) -> TextRows:
    """Return rows of one line each, with words by Zipf's law. All words occur."""
    generator = np.random.default_rng(0)
    drawn = np.exp(generator.random((rows, _ROW), dtype=np.float32) * np.float32(math.log(words + 1)))
    tokens = np.minimum(drawn.astype(np.int32), words) - 1 + FIRST_WORD
    tokens[:, -1] = 0
    tokens.reshape(-1)[:words] = np.arange(words) + FIRST_WORD
    counts = np.bincount(tokens.reshape(-1), minlength=words + FIRST_WORD)[FIRST_WORD:]
    held_out = tokens[:_HELD_OUT].copy()
    return TextRows(
        vocabulary=Vocabulary(words=tuple(f"w{number}" for number in range(words)), counts=counts),
        tokens=tokens,
        held_out=held_out,
        words=rows * (_ROW - 1),
        digest="generated",
    )


def _trained(data: TextRows, ranks: Ranks, size: int, batch: int, seconds: float) -> dict[str, Any]:
    options = {**_MODEL, "embedding": size, "global_batch": batch, "epochs": 1000}
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(Embedding, "load", return_value=data),
        stopped_after(seconds),
    ):
        summary = start.train(configured({"data": Path("generated"), "output": Path(folder), **options}), ranks)
    speed = summary["rows_seen"] * summary["words_a_row"] / summary["times"]["training"]
    (phases,) = summary["profile"]
    print_progress(f"\nvectors of {size}, {batch:,} rows a step: {speed / 1e6:.2f} million words a second")
    of_step = {phase: 1000 * taken / summary["steps"] for phase, taken in phases.items()}
    print_progress(table(["phase", "ms a step"], [[phase, f"{ms:.3f}"] for phase, ms in of_step.items()]))
    return {"size": size, "batch": batch, "words_per_second": speed, "summary": summary}
