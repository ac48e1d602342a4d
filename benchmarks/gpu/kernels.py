"""Kernels of a training step, the longest first.

Phases of a step do not show a GPU's use of time, because a GPU works asynchronously to its host.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import LOSS, new_model
from benchmarks.gpu.part import Outcome, finish, keep, milliseconds, print_progress
from benchmarks.gpu.rows import ROW_LENGTH, VOCABULARY, make_rows
from benchmarks.gpu.training import single_rank
from benchmarks.record import table
from corpus.text import FIRST_WORD, PADDING
from trainer.classification.data import place_rows
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.lstm import spread_padding
from trainer.classification.rows import Rows, TextRows, WordDropout
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing.optimiser import Optimiser
from trainer.computing.precision import NAMES, capability, choose
from trainer.config import TrainConfig

_STEPS, _LISTED = 5, 16
_COLUMNS = TrainConfig.embedding or 64


@dataclass(frozen=True)
class Sizes:
    """Rows of a step."""

    batches: tuple[int, ...] = (16_384, 65_536)


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure the kernels of a step of the default model, by global batch."""
    rows, found = make_rows(2 * max(sizes.batches), device), dict[int, list[dict[str, Any]]]()
    with single_rank(device):
        for batch in sizes.batches:
            found[batch] = kernels_of_step(rows, device, batch)
            keep({"kernels": found})
    embedding = {batch: embedding_backward(rows, device, batch) for batch in sizes.batches}
    longest = {batch: kernels[0] for batch, kernels in found.items()}
    said = "; ".join(f"{batch:,} rows: {each['ms']:.2f} ms in {each['name'][:60]}" for batch, each in longest.items())
    return Outcome(said=said, figures={"kernels": found, "embedding": embedding})


def embedding_backward(rows: TextRows, device: torch.device, batch: int) -> dict[str, float]:
    """Measure the gradient of word vectors in milliseconds.

    The cases are a padded batch as in torch, a batch with the padding's ids spread over the table, and no padding.
    """
    some, words = rows.batch(np.arange(batch), device), VOCABULARY + FIRST_WORD
    spread = spread_padding(some.tokens, some.lengths, words)
    real = torch.arange(some.tokens.shape[1], device=device) < some.lengths[:, None]
    found = {}
    for name, ids, padding in (
        ("padded", some.tokens, PADDING),
        ("spread", spread, -1),
        ("packed", some.tokens[real], -1),
    ):
        gradients = torch.ones(*ids.shape, _COLUMNS, device=device)
        backward = partial(torch.ops.aten.embedding_dense_backward, gradients, ids, words, padding, False)
        found[name] = milliseconds(backward, device)
    print_progress(
        f"\nembedding_dense_backward of {batch:,} rows: " + ", ".join(f"{k} {v:.3f} ms" for k, v in found.items())
    )
    return found


def model_as_trained(device: torch.device) -> Classifier:
    """Return the default model in the precision of `--precision auto`."""
    model = new_model("default", device)
    model.precision = NAMES[choose("auto", [capability(device)])]
    return model


def kernels_of_step(training: Rows, device: torch.device, batch: int) -> list[dict[str, Any]]:
    """Return the kernels of a step, the longest first: name, milliseconds a step, and number of calls."""
    model = model_as_trained(device)
    timer, rows = StepTimer(), place_rows(training[: 2 * batch], device)
    config = TrainConfig(model="lstm", data=Path(), output=Path())
    words = WordDropout(config.word_dropout, ROW_LENGTH, config.seed)
    compute = text_gradients(model, rows, loss=LOSS, device=device, words=words, timer=timer)
    optimiser, size = Optimiser(model, model.tables, config), len(rows)
    numbers = np.random.default_rng(0).permutation(size)[:batch]

    def step() -> None:
        optimiser.clear()
        timer.begin(len(numbers))
        compute(numbers, len(numbers), 0)
        optimiser.step(1e-3)

    for _ in range(3):
        step()
    finish(device)
    kind = torch.profiler.ProfilerActivity.CUDA if device.type == "cuda" else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profile:
        for _ in range(_STEPS):
            step()
        finish(device)
    taken = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    events = sorted(profile.key_averages(), key=lambda event: -getattr(event, taken))[:_LISTED]
    found = [
        {
            "name": event.key,
            "ms": getattr(event, taken) / 1000 / _STEPS,
            "times": event.count / _STEPS,
        }
        for event in events
    ]
    print_progress(f"\nthe kernels of a step of {batch:,} rows")
    print_progress(
        table(["kernel", "ms a step", "times"], [[e["name"][:90], f"{e['ms']:.3f}", f"{e['times']:g}"] for e in found])
    )
    return found
