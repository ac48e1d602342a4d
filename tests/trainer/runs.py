"""Runs of the trainer, in this process or on ranks in other processes, and readers of their output."""

import io
import json
import signal
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from tests.forking import ForkedProcess
from tests.trainer import forked
from tests.waiting import PATIENCE, until
from trainer import rate_measurement
from trainer.__main__ import main
from trainer.output import reporter
from trainer.output.summary import Embeddings, Metrics, SinceStart, Totals

_FIELDS = {name for part in (Metrics, Totals, SinceStart, Embeddings) for name in part.__annotations__}
_OF_FILES = ("similarity_", "analogy_", "pip_")
"""Beginnings of fields that `Embeddings` describes together."""


def run_here(*arguments: object) -> tuple[int, str]:
    """Run `python -m trainer` in this process with one thread, and record all steps. Return its status and its
    standard error. A new process would take seconds to import PyTorch."""
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(errors):
        patch.setattr("sys.argv", ["trainer", *map(str, arguments), "--threads", "1"])
        patch.setattr(reporter, "STEP_SECONDS", 0.0)
        patch.setattr(rate_measurement, "_LOOK", forked.LOOK)
        patch.setitem(rate_measurement.measure_own_rates.__kwdefaults__, "seconds", forked.SECONDS)
        status = main()
    return status, errors.getvalue()


def train_here(output: Path, *arguments: object) -> dict[str, Any]:
    """Run `python -m trainer` in this process to its end. Return the content of summary.json."""
    status, errors = run_here("--output", output, *arguments)
    assert status == 0, errors
    return summary(output)


def finish(process: ForkedProcess, status: int = 0) -> str:
    """Wait for a program, and check its exit status. Return its standard error."""
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, errors
    return errors


def wait_for_lines(process: ForkedProcess, output: Path, kind: str, count: int = 1) -> None:
    """Wait until the record of a running program has `count` lines of a kind."""

    def holds() -> bool:
        assert process.poll() is None, process.communicate()
        return (output / "record.jsonl").exists() and len(lines(output, kind)) >= count

    until(holds)


def stop(process: ForkedProcess, number: int = signal.SIGTERM) -> str:
    """Ask a run to stop, which ends with a checkpoint. Return its standard error."""
    process.send_signal(number)
    return finish(process)


def kill_all(process: ForkedProcess) -> None:
    """Kill torchrun and all ranks at once, like a lost machine."""
    for each in [*psutil.Process(process.pid).children(recursive=True), process]:
        each.kill()
    process.communicate()


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises this error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def changed(content: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Set the values at some places, such as `progress.epoch`, and return the content. Remove a value instead of
    setting None."""
    for place, value in changes.items():
        inside = content
        *outer, name = place.split(".")
        for each in outer:
            inside = inside[each]
        inside[name] = value
        if value is None:
            del inside[name]
    return content


def summary(output: Path) -> dict[str, Any]:
    """Return the content of summary.json, which must contain only declared fields and no NaN."""
    content: dict[str, Any] = json.loads((output / "summary.json").read_text(), parse_constant=_refuse)
    assert {name for name in content if not name.startswith(_OF_FILES)} <= _FIELDS
    return content


def lines(output: Path, kind: str) -> list[dict[str, Any]]:
    """Return the lines of a kind in the record, without an incomplete last line."""
    *whole, _ = (output / "record.jsonl").read_text().split("\n")
    found = map(json.loads, whole)
    return [line for line in found if line["kind"] == kind]


def notes(output: Path) -> list[str]:
    """Return the notes in the record."""
    return [line["text"] for line in lines(output, "note")]


def step_losses(output: Path) -> dict[int, float]:
    """Return the loss of each step in the record."""
    return {line["step"]: line["loss"] for line in lines(output, "step")}


def weights(output: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the saved model."""
    return load_file(output / "model" / "model.safetensors")


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")
