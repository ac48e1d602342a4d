"""Two ranks that share a GPU: what ranks do together, which one rank never does.

Gradients of large tables are exchanged between ranks, the parameter server is asked, weights are compared after each
epoch, and the balancer gives a slowed rank fewer rows. NCCL refuses two ranks on one GPU, also under MPS, so gloo
carries what they send (stand_ins.py): times say nothing of a cluster's.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from benchmarks.gpu.part import Outcome, print_progress

_NEAR = 1e-3
"""How far the loss of two ranks may be from that of one, as a share: sums of floating-point numbers have another
order."""
_WORDS: dict[str, Any] = {"model": "skipgram", "optimiser": "sgd", "learning_rate": 1.0}
"""At a higher rate so little text would be unlearnt again, and differences in last bits would grow."""


@dataclass(frozen=True)
class Sizes:
    """What is trained, in each case."""

    rows: int = 20_000
    words: int = 20_000
    """Of the vocabulary of skip-gram's text."""
    global_batch: int = 64
    epochs: int = 2
    text_batch: int = 512
    """The rows of a step of the LSTM."""
    more: dict[str, Any] = field(default_factory=dict)
    """More options of all runs."""


CASES: Mapping[str, tuple[int, dict[str, Any]]] = {
    "one rank": (1, _WORDS),
    "exchange": (2, _WORDS),
    "averages": (2, {**_WORDS, "mode": "average:5"}),
    "parameter server": (2, {**_WORDS, "mode": "async:5"}),
    "balance": (2, {"model": "lstm", "slow": {"1": 3.0}}),
}
"""The number of ranks, and options of the run."""


def measure(device: torch.device, sizes: Sizes) -> Outcome:  # noqa: ARG001
    """Run all cases, and check what their summaries say."""
    found: dict[str, dict[str, Any]] = {}
    for name, (ranks, options) in CASES.items():
        found[name] = _run(ranks, {"sizes": asdict(sizes), "options": options})
        print_progress(f"{name}: {found[name]}")
    wrong = [f"{name}: {problem}" for name, each in found.items() for problem in _problems(name, each, found)]
    said = (
        "; ".join(wrong) or "two ranks learn as one does, with equal weights after each epoch, and share rows by speed"
    )
    return Outcome(said=f"gloo on {found['exchange'].get('device')}; {said}", figures=found, failed=bool(wrong))


def _problems(name: str, run: Mapping[str, Any], of: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is wrong with a run."""
    if "error" in run:
        return [run["error"]]
    problems = [f"weights differed by {run['apart']:.0e}"] if run["apart"] else []
    alone = of["one rank"].get("loss", float("nan"))
    if name == "exchange" and not abs(run["loss"] - alone) <= _NEAR * alone:
        problems.append(f"a loss of {run['loss']:.4f}, and {alone:.4f} on one rank")
    if run["rows_seen"] != sum(run["rows_of_ranks"]):
        problems.append("rows are missing")
    if name == "balance" and not run["rows_of_ranks"][0] > run["rows_of_ranks"][1]:
        problems.append(f"the slowed rank had {run['rows_of_ranks'][1]:,} of {run['rows_seen']:,} rows")
    return problems


def _run(ranks: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the first of so many ranks tells of its run, or the `error` by which it ended."""
    launcher = [sys.executable, "-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [*launcher, "-m", "benchmarks.gpu.pair_rank", json.dumps(asked)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print_progress(done.stderr)
        return {"error": next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
