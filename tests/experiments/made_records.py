"""Records of training runs for tests, as trainer/output/reporter.py describes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

LINES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("made_records.yaml").read_text())
CONFIG: dict[str, Any] = LINES["config"]
MEASURED: dict[str, Any] = LINES["measured"]


def start(time: float = 100.0, *, from_step: int = 0, **changes: Any) -> dict[str, Any]:
    return {**LINES["start"], "time": time, "config": CONFIG, "from_step": from_step, **changes}


def step(number: int, time: float, *, loss: float = 0.5) -> dict[str, Any]:
    return {**LINES["step"], "time": time, "epoch": (number - 1) // 10 + 1, "step": number, "loss": loss}


def epoch(number: int, time: float, **measures: float) -> dict[str, Any]:
    validation = {"loss": 0.4, "accuracy": 0.8, **measures}
    return {**LINES["epoch"], "time": time, "epoch": number, "validation": validation}


def checkpoint(number: int, time: float) -> dict[str, Any]:
    return {**LINES["checkpoint"], "time": time, "step": number, "file": f"checkpoints/step-{number}.pt"}


def waiting(number: int, time: float, seconds: float = 0.0) -> dict[str, Any]:
    return {"kind": "waiting", "time": time, "step": number, "seconds": seconds}


def tested(time: float, **measures: float) -> dict[str, Any]:
    return {**LINES["test"], "time": time, **measures}


def end(time: float, **content: Any) -> dict[str, Any]:
    return {**LINES["end"], "time": time, **content}


def write(folder: Path, *lines: Mapping[str, Any] | str) -> Path:
    """Write a record of these lines to a folder; a text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "record.jsonl").write_text(text)
    return folder


def whole(folder: Path, **changes: Any) -> Path:
    """Write the folder of a finished run. `changes` override fields of its start."""
    lines = [step(1, 101.0, loss=0.7), step(10, 105.0), epoch(1, 105.5), step(20, 110.0, loss=0.3), epoch(2, 110.5)]
    return write(folder, start(**changes), *lines, checkpoint(20, 110.6), tested(111.0), end(111.5))


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
        measured = {**MEASURED, "times": {**MEASURED["times"], "waiting": 6.0}}
    return end(float(at), **measured, stopped=kind in ("halted", "stopped"))
