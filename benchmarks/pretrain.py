"""Language models on CPUs: tokens a second beside plain torch, and two ranks of different speed.

    python -m benchmarks pretrain [PART...] [--runs 5]

Parts:

- `steps`: whole steps in float32 on one thread, in turns, beside nn.LSTM and a softmax by one matrix product
  (benchmarks/gpu/language.py). Plain torch has no DropConnect and no word dropout. A ratio is that of the CPU times of
  two steps, one after the other.
- `mixed`: `shoal pretrain` on two ranks, one of which has .56 of the other's speed, on generated reviews: the share of
  the sum of their rates that the run reaches, and what it loses.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.balance import SLOW
from benchmarks.gpu.language import BYTES, Case, own_step, plain_step, random_tokens, words
from benchmarks.record import Log
from benchmarks.trained import train_here
from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from corpus.dataset_settings import DEFAULT
from corpus.reading.sources import Inputs
from jobs.pipeline import preprocess_locally
from trainer.config import configured
from trainer.options.run_options import Slowdown

_CASES = {
    "small": Case(words(256, 512, 2), 32, 70),
    "medium": Case(words(400, 1152, 3), 32, 70),
    "1,024 bytes": Case(replace(BYTES, hidden=1024), 32, 128),
}
_TEXTS = 20_000
_MIXED = {"model": "awd-lstm", "preset": "small", "epochs": 1}
STEPS, MIXED = "steps", "mixed"

Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pretrain", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{STEPS}, {MIXED} (default: both)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument(
        "--global-batch",
        type=int,
        default=128,
        help="of mixed: rows a step; by default a CPU has 32 (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - {STEPS, MIXED}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {STEPS} and {MIXED}")
    parts = options.parts or (STEPS, MIXED)
    log, record = Log("pretrain"), dict[str, Any]()
    if STEPS in parts:
        record[STEPS] = _steps(log, _CASES, options.runs)
    if MIXED in parts:
        with TemporaryDirectory() as folder:
            record[MIXED] = _mixed(log, Path(folder), options.runs, options.global_batch)
    log.keep(record)


def _steps(log: Log, cases: dict[str, Case], runs: int) -> dict[str, list[Figures]]:
    """Tokens per CPU second of both programs, one for each run."""
    torch.set_num_threads(1)
    found = {name: _timed_steps(case, runs) for name, case in cases.items()}
    rows = []
    for name, each in found.items():
        ratios = [run["own"] / run["plain"] for run in each]
        own, plain = (f"{median(run[program] for run in each):,.0f}" for program in ("own", "plain"))
        rows.append([name, own, plain, f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", str(runs)])
    log.table(["model", "tokens a CPU second", "plain torch's", "ratio", "all runs", "runs"], rows)
    return found


def _timed_steps(case: Case, runs: int) -> list[Figures]:
    cpu, tokens, count = torch.device("cpu"), random_tokens(case), case.rows * case.tokens
    steps = {"own": own_step(cpu, case, tokens), "plain": plain_step(cpu, case, tokens)}
    found = []
    for run in range(runs + 1):
        figures = {}
        for name, step in steps.items():
            begun = time.process_time()
            step()
            figures[name] = count / (time.process_time() - begun)
        if run:  # the first steps allocate
            found.append(figures)
    return found


def _mixed(log: Log, folder: Path, runs: int, global_batch: int) -> list[Figures]:
    """What two ranks reach of the sum of their rates, one for each run."""
    write_reviews(folder / "reviews.json", texts=_TEXTS)
    data = preprocess_locally(Inputs(files=(str(folder / "reviews.json"),)), str(folder), settings=DEFAULT).dataset
    found = []
    for run in range(runs):
        asked = {
            **_MIXED,
            "global_batch": global_batch,
            "data": Path(data),
            "output": folder / f"model-{run}",
            "seed": run,
        }
        config = replace(configured(asked), slow={1: Slowdown(1 / SLOW)})
        with Bars() as bars:
            summary = train_here(config, ranks=2, bars=bars)
        found.append({"balanced": summary["balanced"], "share": summary["share_of_ideal"], **summary["lost"]})
        log.say(f"mixed, {run}: {found[-1]}")
    log.table(
        list(found[0]),
        [[f"{pick(run[figure] for run in found):.1%}" for figure in found[0]] for pick in (median, min, max)],
    )
    return found
