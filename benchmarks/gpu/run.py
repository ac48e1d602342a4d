"""Runs the parts, each in a process of its own, so that a part that fails or never ends does not stop the others.

Do not use the GPU in this process: it would keep some of the GPU's memory from the parts.
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
    """`module` of this package: it has `Sizes`, and `measure(device, sizes)`, which returns an Outcome (part.py)."""

    module: str
    what: str
    seconds: int
    """The time after which it is ended."""


PARTS = {
    "kernels": GpuPart("kernels", "the kernels of a step of training", 60),
    "gradients": GpuPart("checks", "gradients, masks, rows, evaluation and optimisers beside a CPU's", 90),
    "rates": GpuPart("rates", "rows trained on a second, beside plain torch", 150),
    "words": GpuPart("words", "words a second of skip-gram, and what a step of it takes", 110),
    "yelp": GpuPart("yelp", "ten epochs of fastText's model on 560,000 texts of Yelp's length", 150),
    "nccl": GpuPart("nccl", "one run from beginning to end, with NCCL on one rank", 60),
}
"""In the order in which they run: those that show most in little time come first."""
_SECONDS, _LEAST_SECONDS = 570, 20
"""Of all parts together, as a borrowed GPU is often lent for ten minutes; and of a part that is still begun."""


def main(arguments: Sequence[str]) -> None:
    """Run the parts that the command line names, all without a name; exit status 1 where one failed."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks gpu",
        description="Check and measure on this machine's GPU. The parts, with the seconds after which one is ended: "
        + " · ".join(f"{name} ({part.seconds}), {part.what}" for name, part in PARTS.items()),
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="(default: all of them)")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of all parts together (default: %(default)s)")
    options = parser.parse_args(arguments)
    names = options.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; name some of {', '.join(PARTS)}")
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
    """Run a part for at most `seconds`, and keep its record; returns `failed`, `said` and its `figures`."""
    from trainer.config import RANK_ENVIRONMENT  # needs NumPy, which is known to be there by now

    part = PARTS[name]
    environment = {**os.environ, **RANK_ENVIRONMENT, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    log = Log(f"gpu-{name}")
    with TemporaryDirectory() as folder:
        told = Path(folder) / "outcome.json"
        last = _follow(_command(part, told), environment, seconds, log)
        outcome = json.loads(told.read_text()) if told.exists() else {"failed": True, "said": "", "figures": {}}
    outcome["said"] = outcome["said"] or last  # of a part that did not come to its end
    log.say(f"{name} {'failed' if outcome['failed'] else 'done'}: {outcome['said']}")
    log.keep(outcome)
    return outcome


def _command(part: GpuPart, told: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.gpu", part.module, str(told)]


def _follow(command: Sequence[str], environment: Mapping[str, str], seconds: float, log: Log) -> str:
    """Run a command for at most `seconds`, and log its output; returns the last line, or that it took too long."""
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
        process_group=0,  # so that all of it can be ended
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
