"""Runs each part in a separate process, so that a part that fails or never ends does not stop the others.

Do not use the GPU in this process: it would occupy some of the GPU's memory.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NamedTuple

from benchmarks.record import Log, table

ROOT = Path(__file__).parents[2]


class GpuPart(NamedTuple):
    """A part. `module` of this package has `Sizes`, and `measure(device, sizes)`, which returns an Outcome
    (part.py)."""

    module: str
    what: str
    seconds: int
    """Time limit, after which the part is killed."""


PARTS = {
    "gradients": GpuPart("checks", "gradients, masks, rows, evaluation and optimisers compared with a CPU", 90),
    "rates": GpuPart("rates", "trained rows per second, compared with plain torch", 150),
    "words": GpuPart("words", "words per second of skip-gram, and the phases of its step", 110),
    "yelp": GpuPart("yelp", "ten epochs of fastText's model on 560,000 texts of Yelp's length", 150),
    "nccl": GpuPart("nccl", "one complete run, with NCCL on one rank", 60),
}
"""Parts in the order of their runs: the most informative for their time come first."""
_SECONDS, _LEAST_SECONDS = 570, 20
"""Time limit of all parts together, because a borrowed GPU is often lent for ten minutes; and the shortest remaining
time in which a part still starts."""


def main(arguments: Sequence[str]) -> None:
    """Run the named parts, or all. Exit with 1 if a part failed."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks gpu",
        description="Check and measure on this machine's GPU. Parts, with their time limits in seconds: "
        + " · ".join(f"{name} ({part.seconds}), {part.what}" for name, part in PARTS.items()),
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to run (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=_SECONDS, help="time limit of all parts (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    names = options.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"the part {unknown[0]} does not exist; choose from {', '.join(PARTS)}")
    if lacking := _lacking():
        sys.stdout.write(f"gpu: {lacking}, so nothing was measured\n")
        return
    end, rows = time.monotonic() + options.seconds, []
    for name in names:
        left = end - time.monotonic()
        if left < _LEAST_SECONDS:
            rows.append([name, "left out", "no time was left"])
            continue
        outcome = run(name, min(left, PARTS[name].seconds))
        rows.append([name, "failed" if outcome["failed"] else "done", outcome["said"]])
    sys.stdout.write("\n" + table(["part", "", "result"], rows) + "\n")
    if any(state == "failed" for _, state, _ in rows):
        sys.exit(1)


def _lacking() -> str | None:
    try:
        torch, *_ = map(import_module, ("torch", "numpy", "safetensors", "tqdm"))
    except ImportError as error:
        return f"{sys.executable} cannot import what is needed ({error})"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no GPU on this machine"
    return None


def run(name: str, seconds: float) -> dict[str, Any]:
    """Run a part for at most `seconds`, write its record, and return `failed`, `said` and its `figures`."""
    from trainer.config import RANK_ENVIRONMENT  # here, because it needs NumPy, which `_lacking` has checked

    part = PARTS[name]
    environment = {**os.environ, **RANK_ENVIRONMENT, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    log = Log(f"gpu-{name}")
    with TemporaryDirectory() as folder:
        outcome_path = Path(folder) / "outcome.json"
        last = _follow(_command(part, outcome_path), environment, seconds, log)
        outcome = (
            json.loads(outcome_path.read_text())
            if outcome_path.exists()
            else {"failed": True, "said": "", "figures": {}}
        )
    outcome["said"] = outcome["said"] or last  # the last line of a part that did not end normally
    log.say(f"{name} {'failed' if outcome['failed'] else 'done'}: {outcome['said']}")
    log.keep(outcome)
    return outcome


def _command(part: GpuPart, outcome_path: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.gpu", part.module, str(outcome_path)]


def _follow(command: Sequence[str], environment: Mapping[str, str], seconds: float, log: Log) -> str:
    """Run a command for at most `seconds`, and log its output. Return its last line, or that it took too long."""
    last, ended = "it printed nothing", False
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,  # a group, so that all of its processes can be killed
    ) as process:

        def end() -> None:
            nonlocal ended
            ended = True
            os.killpg(process.pid, signal.SIGKILL)

        timer = Timer(seconds, end)
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                log.say(line.rstrip())
                last = line.strip() or last
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
    return f"it took longer than {seconds:.0f} seconds" if ended else last
