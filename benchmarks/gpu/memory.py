"""What a run reports and does when the GPU's memory is full at some place; and shares that are computed in pieces.

Each place is a run of its own (full_memory.py). A run passes if it reports one sentence and exits with 1, without a
traceback; or if it needed no memory there, and came to its end.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.checks import BOUNDS, LOSS, new_model
from benchmarks.gpu.full_memory import CASES
from benchmarks.gpu.part import Budget, Outcome, print_progress
from benchmarks.gpu.rows import make_rows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer

ROOT = Path(__file__).parents[2]
_SENTENCE = " the memory of "


@dataclass(frozen=True)
class Sizes:
    """What is tried: the cases, and a share of so many rows in a fraction of the memory that it takes."""

    share: int = 65_536
    cases: tuple[str, ...] = tuple(CASES)
    seconds: float = 80
    case_seconds: float = 35
    """The time after which a case is ended."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """The cases, one after the other, and the share in pieces."""
    budget = Budget(sizes.seconds)
    found: list[dict[str, Any]] = []
    for name in sizes.cases:
        left_out = {"case": name, "said": "left out, as the time is spent", "ok": False}
        found.append(_run(name, sizes.case_seconds) if budget.left else left_out)
        print_progress(f"{name}: {'' if found[-1]['ok'] else 'WRONG: '}{found[-1]['said']}")
    if device.type == "cuda":
        found.append(_in_pieces(device, sizes.share))
        print_progress(f"{found[-1]['case']}: {found[-1]['said']}")
    wrong = [each["case"] for each in found if not each["ok"]]
    said = f"{len(found) - len(wrong)} of {len(found)} as they should be"
    said += f", not: {', '.join(wrong)}" if wrong else ""
    return Outcome(said=said, figures={"cases": found}, failed=bool(wrong))


def _run(name: str, seconds: float) -> dict[str, Any]:
    """Run one case; returns its last message, and whether it ended as it should."""
    command = [sys.executable, "-m", "benchmarks.gpu.full_memory", name]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"case": name, "said": f"not done in {seconds:g} seconds", "ok": False}
    lines = done.stderr.strip().splitlines()
    told = next((line for line in lines if line.startswith("trainer: ")), lines[-1] if lines else "")
    if done.returncode == 0:
        return {"case": name, "said": "it needed no memory there, and came to its end", "ok": True, "status": 0}
    ok = done.returncode == 1 and _SENTENCE in told and "Traceback" not in done.stderr
    if not ok:
        print_progress("\n".join(lines[-12:]))
    return {"case": name, "said": f"status {done.returncode}: {told}", "ok": ok, "status": done.returncode}


def _in_pieces(device: torch.device, share: int) -> dict[str, Any]:
    """Gradients of a share in a memory that is too small for it, beside those of the whole."""
    case = f"a share of {share:,} rows in a fourth of the memory that it takes"
    rows = make_rows(share, device)
    model, numbers, found = new_model("default", device), np.arange(share), []
    for limited in (False, True):
        timer = StepTimer()
        compute = text_gradients(model, rows, loss=LOSS, device=device, timer=timer)
        model.zero_grad()
        timer.begin(share)
        if limited:
            torch.cuda.empty_cache()
            most = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(torch.cuda.max_memory_allocated(device) / 4 / most)
        compute(numbers, share, 0)
        found.append(torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None]).cpu())
    torch.cuda.set_per_process_memory_fraction(1.0)
    off = float((found[1] - found[0]).norm() / found[0].norm())
    said = f"in pieces of {compute.piece_rows:,} rows, off by {off:.1e}"
    return {"case": case, "said": said, "ok": 0 < compute.piece_rows < share and off < BOUNDS["float32"]}
