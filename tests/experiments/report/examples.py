"""Folders of runs, as reports find them."""

import json
from pathlib import Path
from typing import Any

from tests.experiments import made_records as records

_LOST = {"imbalance": 0.08, "communication": 0.1, "data": 0.02, "checkpoints": 0.02, "rest": 0.03}
_CONFUSION = {"classes": ["negative", "positive"], "counts": [[400, 50], [70, 480]]}
_MISTAKES = [
    {"class": "negative", "prediction": "positive", "probability": 0.98, "words": "a sturdy \u202e<b> lamp …"},
    {"class": "positive", "prediction": "negative", "probability": 0.75, "words": "=1+1 is not bad"},
    {"class": "positive", "prediction": "negative", "probability": "high", "words": "left out"},
]


def training(folder: Path, *, ranks: int = 2, rates: list[float] | None = None, seed: int = 0, **config: Any) -> Path:
    """Write a finished run of 3 epochs of 20 steps, with ranks of these rates."""
    own = rates or [1000.0] * ranks
    reached = 0.75 * sum(own)
    split = [round(640 * rate / sum(own)) for rate in own]
    at, config = 100.0, {**records.CONFIG, "balance": "steps", "seed": seed, **config}
    changes = {"world_size": ranks, "devices": ["CPU"] * ranks, "own_rates": own, "global_batch": 640}
    lines = [records.start(at, config=config, steps=60, epochs=3, **changes)]
    for number in range(1, 61):
        at += sum(split) / reached
        fields = {"epoch": (number - 1) // 20 + 1, "split": split, "compute_seconds": [0.1] * ranks}
        lines.append({**records.step(number, at, loss=0.7 - 0.005 * number), **fields, "rows_per_second": reached})
        if number % 20 == 0:
            lines.append(records.epoch(number // 20, at, accuracy=0.7 + 0.003 * number, macro_f1=0.65 + 0.003 * number))
    took = at - 100
    times = {"loading": 1.0, "rates": 2.0, "training": took, "checkpoints": 0.2, "evaluation": 0.5, "other": 0.1}
    measures = {"balanced_accuracy": 0.8123, "macro_f1": 0.83, "f1_positive": 0.9012, "f1_negative": 0.7588}
    lines.append(records.tested(at + 1, **measures, confusion=_CONFUSION, mistakes=_MISTAKES))
    end = {"times": times, "lost": _LOST, "balanced": 0.75, "seconds": took, "samples_per_second": reached}
    return records.write(folder, *lines, records.end(at + 1, **end, rows_seen=60 * 640, share_of_ideal=0.75))


def launched(folder: Path, *, dollars: float, seconds: float = 400.0, **changes: Any) -> Path:
    training(folder, **changes)
    shares = {"start the nodes": 0.4, "copy the data": 0.1, "train": 0.45, "end the nodes": 0.05}
    stages = [{"name": name, "seconds": at * seconds, "dollars": at * dollars} for name, at in shares.items()]
    content = {"where": "deployment", "began": 0.0, "seconds": seconds, "stages": stages, "cost": dollars}
    (folder / "launch.json").write_text(json.dumps(content))
    return folder


def experiment(folder: Path) -> Path:
    """Write the folder of an experiment with three arms of two finished runs, and an arm with an unfinished run."""
    for repeat in (1, 2):
        training(folder / "1-rank" / f"{repeat}", ranks=1, seed=repeat)
        training(folder / "2-ranks" / f"{repeat}", rates=[980.0, 980.0 - 20 * repeat], seed=repeat)
        training(folder / "1-k80" / f"{repeat}", rates=[600.0], seed=repeat, slow={"0": 1.78})
    records.write(folder / "later" / "1", records.start(config={**records.CONFIG, "seed": 1}))
    return folder
