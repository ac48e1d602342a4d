"""Which layout of a batch is fastest on a GPU: padded to its longest row, in groups of similar length, or packed.

Forward and backward of the trainer's model over 1, 2, 4 or 8 groups, and of plain torch's over padded and packed rows.
Less padding is not always less time: cuDNN has a kernel for small hidden states that needs rows which are not packed,
and a group of few rows takes as long as one of many.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import LOSS, new_model
from benchmarks.gpu.part import SETTINGS, Budget, Outcome, milliseconds, print_progress
from benchmarks.gpu.rates import plain_settings
from benchmarks.gpu.rows import ROW_LENGTH, VOCABULARY, make_rows
from benchmarks.peers.plain_torch import Plain
from benchmarks.record import table
from corpus.text import FIRST_WORD
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import TextBatch
from trainer.classification.word_dropout import WordDropout
from trainer.computing import dropout
from trainer.computing.precision import NAMES, capability, choose
from trainer.config import TrainConfig

GROUPS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    batches: tuple[int, ...] = (256, 1024, 4096, 16_384, 65_536)
    repeats: int = 10
    seconds: float = 40


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Milliseconds of forward and backward of each layout."""
    budget = Budget(sizes.seconds)
    found: list[dict[str, Any]] = []
    rows = make_rows(max(sizes.batches), device)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False  # as in the trainer's ranks
    for name in SETTINGS:
        for precision in dict.fromkeys((choose("auto", [capability(device)]), "float32")):
            for size in sizes.batches:
                if not budget.left:
                    print_progress(f"{name}, {precision}, {size}: left out, as the time is spent")
                    continue
                numbers = np.arange(size)
                batch = rows.batch(numbers, device, keys=dropout.keys(0, 0, numbers), words=_words(name))
                taken = {
                    way: milliseconds(step, device, repeats=sizes.repeats)
                    for way, step in _ways(name, precision, batch, device).items()
                }
                found.append({"model": name, "precision": precision, "batch": size, "ms": taken})
                print_progress(
                    f"{name}, {precision}, {size}: " + ", ".join(f"{way} {ms:.2f}" for way, ms in taken.items())
                )
    cells = [[each["model"], each["precision"], f"{each['batch']:,}", *_cells(each["ms"])] for each in found]
    print_progress("\nms of forward and backward\n" + table(["model", "precision", "batch", *found[0]["ms"]], cells))
    first = [each for each in found if each["model"] == "default" and each["precision"] == found[0]["precision"]]
    best = ", ".join(f"{min(each['ms'], key=each['ms'].get)} at {each['batch']:,}" for each in first)
    return Outcome(said=f"quickest of the default model: {best}", figures={"found": found})


def _cells(taken: dict[str, float]) -> list[str]:
    return [f"{ms:.2f}" for ms in taken.values()]


def _words(name: str) -> WordDropout | None:
    """The dropout of words of a model; None for the reference's model, which has none."""
    share = TrainConfig(data=Path(), output=Path(), **SETTINGS[name]).word_dropout
    return WordDropout(share, ROW_LENGTH, seed=0) if share else None


def _ways(name: str, precision: str, batch: TextBatch, device: torch.device) -> dict[str, Callable[[], Any]]:
    model = new_model(name, device)
    model.precision = NAMES[precision]
    words = VOCABULARY + FIRST_WORD
    plain = {packed: Plain(words, plain_settings(name, packed=packed)).to(device) for packed in (False, True)}
    widths = batch.lengths.tolist()

    def grouped(groups: int) -> Callable[[], Any]:
        return lambda: _grouped(model, batch, widths, min(groups, len(batch)))

    return {
        **{f"{groups} group{'s' * (groups > 1)}": grouped(groups) for groups in GROUPS},
        "plain, padded": lambda: _plain(plain[False], batch, NAMES[precision]),
        "plain, packed": lambda: _plain(plain[True], batch, NAMES[precision]),
    }


def _grouped(model: Classifier, batch: TextBatch, widths: list[int], groups: int) -> None:
    """Compute in so many groups of equal size; each group is as wide as its first row, which is its longest."""
    model.zero_grad()
    assert batch.keys is not None
    size = -(-len(batch) // groups)
    loss = torch.zeros((), device=batch.keys.device)
    for start in range(0, len(batch), size):
        some = slice(start, start + size)
        outputs = model(batch.tokens[some, : widths[start]], batch.lengths[some], batch.keys[some])
        loss = loss + LOSS.sum(outputs, batch.labels[some], batch.ratings[some])
    (loss / len(batch)).backward()


def _plain(model: Plain, batch: TextBatch, precision: torch.dtype) -> None:
    model.zero_grad()
    with torch.autocast(batch.tokens.device.type, precision, enabled=precision != torch.float32):
        logits = model(batch.tokens, batch.lengths)
    torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), batch.labels.float()).backward()
