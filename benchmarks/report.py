"""How long `shoal report` takes for a run of many steps and ranks, and its page to open in a browser.

    python -m benchmarks report [--runs 3] [--steps 100 1000 10000] [--ranks 4 256]

Records are generated: every step has a line with the rows and the seconds of each rank. The page is opened from a file,
by the headless Chromium of the tests, which `make test` installs, in a window of 1280 by 800: the time to the end of
the load event, and to the first paint. Of a launch the first page is not counted, because the browser itself starts
there.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.meter import Usage, metered
from benchmarks.record import Log
from common.errors import ShoalError

_BROWSER = Path(__file__).parent.parent / "tests" / "browser"
_VIEW = {"width": 1280, "height": 800, "scheme": "light", "printed": False, "count": [], "hover": [], "tabs": 0}
_BATCH, _EPOCHS = 65_536, 10
_MEMORY, _SECONDS = 8 * 10**9, 600.0


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 256])
    options = parser.parse_args(arguments)
    if not (_BROWSER / "node_modules").exists():
        raise ShoalError("the browser of the tests is not installed; `make test` installs it")
    log = Log("report")
    cases = [(steps, ranks) for steps in options.steps for ranks in options.ranks]
    written: dict[tuple[int, int], list[Usage]] = {case: [] for case in cases}
    opened: dict[tuple[int, int], list[dict[str, float]]] = {case: [] for case in cases}
    sizes = {}
    with TemporaryDirectory() as name:
        folders = {case: Path(name) / f"{case[0]}-steps-{case[1]}-ranks" for case in cases}
        for (steps, ranks), folder in folders.items():
            _write_record(folder, steps=steps, ranks=ranks)
        for run in range(options.runs):
            for case, folder in folders.items():
                command = [sys.executable, "-m", "bootstrap.cli.main", "report", str(folder)]
                usage = metered(command, folder / "log", memory_limit=_MEMORY, time_limit=_SECONDS)
                if usage.failed:
                    raise ShoalError((folder / "log").read_text())
                written[case].append(usage)
                opened[case].append(_open(folder / "report.html"))
                sizes[case] = ((folder / "record.jsonl").stat().st_size, (folder / "report.html").stat().st_size)
                log.say(f"{run}, {case}: {usage}, {opened[case][-1]}, {sizes[case]}")
    rows = [
        [
            f"{steps:,}",
            f"{ranks:,}",
            f"{sizes[steps, ranks][0] / 1e6:,.1f}",
            _spread([usage.wall for usage in written[steps, ranks]], ".1f"),
            f"{max(usage.peak_process for usage in written[steps, ranks]) / 1e6:,.0f}",
            f"{sizes[steps, ranks][1] / 1e3:,.0f}",
            _spread([each["loaded_ms"] for each in opened[steps, ranks]], ".0f"),
            _spread([each["painted_ms"] for each in opened[steps, ranks]], ".0f"),
        ]
        for steps, ranks in cases
    ]
    heads = ("steps", "ranks", "record, MB", "shoal report, s", "peak MB", "page, kB", "loaded, ms", "painted, ms")
    log.table(heads, rows)
    log.keep({"runs": [[*case, [vars(each) for each in written[case]], opened[case], sizes[case]] for case in cases]})


def _write_record(folder: Path, *, steps: int, ranks: int) -> None:
    """The record of a run whose ranks have rates between 900 and 1,100 rows a second."""
    folder.mkdir()
    chance = random.Random(ranks)  # noqa: S311
    rates = [chance.uniform(900, 1100) for _ in range(ranks)]
    rows = [round(_BATCH * rate / sum(rates)) for rate in rates]
    took = _BATCH / sum(rates)
    sizes = {"training": _BATCH * steps // _EPOCHS, "validation": _BATCH, "test": _BATCH}
    common = {"world_size": ranks, "global_batch": _BATCH, "epochs": _EPOCHS, "steps": steps, "digest": "0" * 32}
    start = {"config": {"model": "lstm", "balance": "steps"}, "devices": ["GPU"] * ranks, "rows": sizes, "from_step": 0}
    with (folder / "record.jsonl").open("w") as record:

        def write(kind: str, at: float, **content: Any) -> None:
            record.write(json.dumps({"kind": kind, "time": round(at, 3), **content}) + "\n")

        write("start", 0.0, **common, **start, own_rates=rates, precision="float32")
        for step in range(1, steps + 1):
            epoch = 1 + (step - 1) * _EPOCHS // steps
            split = [each + chance.randint(-3, 3) for each in rows]
            seconds = [took * chance.uniform(0.95, 1.0) for _ in rows]
            told = {"epoch": epoch, "step": step, "loss": 0.7 / (1 + step / steps), "rows_per_second": 0.9 * sum(rates)}
            write("step", step * took, **told, balanced=0.9, split=split, compute_seconds=seconds)
            if step * _EPOCHS % steps < _EPOCHS:
                write("epoch", step * took, epoch=epoch, loss=0.5, validation={"loss": 0.4, "accuracy": 0.9})


def _open(page: Path) -> dict[str, float]:
    """Milliseconds until a browser has loaded and painted the page."""
    views = [{**_VIEW, "page": str(page.absolute())}] * 2
    done = subprocess.run(["node", _BROWSER / "look.mjs"], input=json.dumps(views), capture_output=True, text=True)
    if done.returncode:
        raise ShoalError(f"the browser cannot open {page}: {done.stderr.strip()}")
    seen = json.loads(done.stdout)[1]
    return {name: seen[name] for name in ("loaded_ms", "painted_ms")}


def _spread(values: Sequence[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
