"""Trained rows per second: the trainer and DistributedDataParallel around cuDNN's LSTM, interleaved in one process.

Both train in the same precision; tf32 is off, as always in the trainer. The first steps are not timed. The trainer
warms up when it measures its own rate, and plain torch leaves its first steps out.
"""

from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import torch

from benchmarks.gpu.part import SETTINGS, Budget, Outcome, keep, print_progress
from benchmarks.gpu.rows import VOCABULARY, make_data, make_rows
from benchmarks.gpu.training import single_rank, train
from benchmarks.peers import plain_torch
from benchmarks.record import table
from corpus.text import FIRST_WORD
from trainer.classification.data import TextData
from trainer.classification.models.lstm_options import LSTMOptions
from trainer.classification.rows import TextRows
from trainer.computing.precision import capability, choose
from trainer.distributed.ranks import Ranks

REFERENCE_ROWS = 10 * 21_300_000
"""Rows of the reference's training."""
_HELD_OUT = 100
_SHOAL, _PEERS = "shoal", {"plain, padded": False, "plain, packed": True}


@dataclass(frozen=True)
class Sizes:
    """Amount of training. A case has the steps of these rows, at most `most_steps`."""

    rows: int = 1_000_000
    most_steps: int = 400
    batches: tuple[int, ...] = (256, 1024, 4096, 16_384, 65_536)
    runs: int = 3
    seconds: float = 110


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure rows per second of every model, precision and global batch. Repeat all cases while there is time."""
    budget = Budget(sizes.seconds)
    rows = make_rows(sizes.rows + 2 * _HELD_OUT, device)
    precisions = dict.fromkeys((choose("auto", [capability(device)]), "float32"))
    found: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    with single_rank(device) as ranks:
        for _, name, precision, batch in product(range(sizes.runs), SETTINGS, precisions, reversed(sizes.batches)):
            if not budget.left:
                continue
            data = _data(rows, min(sizes.rows, batch * sizes.most_steps))
            rates = found.setdefault((name, precision, batch), {way: [] for way in (_SHOAL, *_PEERS)})
            rates[_SHOAL].append(_trained(data, ranks, name, precision, batch))
            for peer, packed in _PEERS.items():
                rates[peer].append(_plain(data, device, name, precision, batch, packed))
            keep({"rates": [[*case, rates] for case, rates in found.items()]})
            print_progress(f"{name}, {precision}, {batch}: { {way: round(runs[-1]) for way, runs in rates.items()} }")
    cells, best = [], 0.0
    for (name, precision, batch), rates in found.items():
        middle = {way: median(runs) for way, runs in rates.items()}
        ratio = middle[_SHOAL] / max(middle[peer] for peer in _PEERS)
        cells.append([name, precision, f"{batch:,}", *(f"{rate:,.0f}" for rate in middle.values()), f"{ratio:.2f}"])
        cells[-1].append(f"{REFERENCE_ROWS / middle[_SHOAL] / 60:.1f}")
        best = max(best, middle[_SHOAL])
    headers = ["model", "precision", "global batch", _SHOAL, *_PEERS, "shoal / best of the others", "213M rows, min"]
    print_progress("\nrows/s\n" + table(headers, cells))
    cases = len(SETTINGS) * len(precisions) * len(sizes.batches)
    said = f"{len(found)} of {cases} cases; at its best {best:,.0f} rows/s, and {REFERENCE_ROWS / best:,.0f} s for all"
    figures: dict[str, Any] = {"rates": [[*case, rates] for case, rates in found.items()]}
    return Outcome(said=said, figures=figures)


def _data(rows: TextRows, training: int) -> TextData:
    return make_data(rows[: training + 2 * _HELD_OUT], validation=_HELD_OUT, test=_HELD_OUT)


def _trained(data: TextData, ranks: Ranks, name: str, precision: str, batch: int) -> float:
    options: dict[str, Any] = {"global_batch": batch, "epochs": 1, "precision": precision, **SETTINGS[name]}
    return float(train(data, ranks, **options)["samples_per_second"])


def _plain(data: TextData, device: torch.device, name: str, precision: str, batch: int, packed: bool) -> float:
    return plain_torch.train(
        plain_settings(name, global_batch=batch, epochs=1, precision=precision, packed=packed),
        data.training.tokens,
        data.training.lengths,
        data.training.labels,
        words=VOCABULARY + FIRST_WORD,
        device=device,
    )


def plain_settings(name: str, **others: Any) -> dict[str, Any]:
    """Return the options of plain torch for a model of SETTINGS."""
    shape = {key: getattr(LSTMOptions, key) for key in ("embedding", "hidden", "layers", "pooling")}
    return {**shape, **SETTINGS[name], **others}
