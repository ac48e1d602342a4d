"""Records of training runs for tests, as trainer/output/reporter.py describes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG = {"model": "lstm", "learning_rate": 0.008, "hidden": 32, "data": "data.h5", "output": "model"}

_TIMES = {"loading": 1.0, "rates": 2.0, "training": 9.0, "checkpoints": 1.0, "evaluation": 0.5, "other": 0.5}
_LOST = {"imbalance": 0.1, "communication": 0.15, "data": 0.02, "checkpoints": 0.1, "rest": 0.03}
MEASURED: dict[str, Any] = {"times": _TIMES, "lost": _LOST, "balanced": 0.6, "wall": 14.0}


def start(time: float = 100.0, *, from_step: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "start",
        "time": time,
        "config": CONFIG,
        "world_size": 2,
        "devices": ["CPU", "CPU"],
        "rows": {"training": 640, "validation": 32, "test": 64},
        "digest": "d" * 32,
        "global_batch": 64,
        "epochs": 2,
        "steps": 20,
        "from_step": from_step,
        "own_rates": [1000.0, 500.0],
        "precision": "float32",
        **changes,
    }


def step(number: int, time: float, *, loss: float = 0.5) -> dict[str, Any]:
    return {
        "kind": "step",
        "time": time,
        "epoch": (number - 1) // 10 + 1,
        "step": number,
        "loss": loss,
        "rows_per_second": 1200.0,
        "balanced": 0.9,
        "split": [43, 21],
        "compute_seconds": [0.043, 0.042],
    }


def epoch(number: int, time: float, **measures: float) -> dict[str, Any]:
    validation = {"loss": 0.4, "accuracy": 0.8, **measures}
    return {"kind": "epoch", "time": time, "epoch": number, "loss": 0.45, "validation": validation}


def checkpoint(number: int, time: float) -> dict[str, Any]:
    return {"kind": "checkpoint", "time": time, "step": number, "file": f"checkpoints/step-{number}.pt", "seconds": 0.1}


def waiting(number: int, time: float, seconds: float = 0.0) -> dict[str, Any]:
    return {"kind": "waiting", "time": time, "step": number, "seconds": seconds}


def tested(time: float, **measures: float) -> dict[str, Any]:
    return {"kind": "test", "time": time, "epoch": 2, "loss": 0.3, "accuracy": 0.85, "majority": 0.6, **measures}


def end(time: float, **content: Any) -> dict[str, Any]:
    return {"kind": "end", "time": time, "stopped": False, "seconds": 10.0, "samples_per_second": 128.0, **content}


def write(folder: Path, *lines: Mapping[str, Any] | str) -> Path:
    """Write a record of these lines to a folder; a text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "record.jsonl").write_text(text)
    return folder


def whole(folder: Path, **changes: Any) -> Path:
    """Write the folder of a finished run. `changes` override fields of its start."""
    return write(
        folder,
        start(**changes),
        step(1, 101.0, loss=0.7),
        step(10, 105.0),
        epoch(1, 105.5),
        step(20, 110.0, loss=0.3),
        epoch(2, 110.5),
        checkpoint(20, 110.6),
        tested(111.0),
        end(111.5),
    )


def line(text: str) -> dict[str, Any]:
    """Return a line of a record from a short form, such as `step 10 106` or `start 118 from 10 ranks 3`.

    Ends are `ended` and `halted`, or with MEASURED also `measured` and `stopped`, and `waited`, with six seconds of
    waiting for text.
    """
    kind, at, *numbers = text.split()
    if kind == "start":
        more = dict(zip(numbers[::2], map(int, numbers[1::2]), strict=True))
        return start(float(at), from_step=more.get("from", 0), world_size=more.get("ranks", 2))
    if kind in ("step", "checkpoint", "waiting"):
        make = {"step": step, "checkpoint": checkpoint, "waiting": waiting}[kind]
        return make(int(at), *map(float, numbers))
    measured = {} if kind in ("ended", "halted") else MEASURED
    if kind == "waited":
        measured = {**MEASURED, "times": {**_TIMES, "waiting": 6.0}}
    return end(float(at), **measured, stopped=kind in ("halted", "stopped"))
