"""How fast Shoal trains beside plain torch: the same layers, rows, global batch and number format, in one run.

    python -m benchmarks training [--runs 3] [--ranks 1 2] [--batches 256 1024] [--rows 60000]

Plain torch is DistributedDataParallel around nn.LSTM, once with rows padded to the longest of the batch and once with
packed sequences, with the environment that Shoal gives its ranks. Rows a second, of training alone; and what the
reference's training, 10 epochs of 21.3 million rows, would take at Shoal's.
"""

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.ranks import run_on
from benchmarks.record import Log
from benchmarks.rows import write_rows
from bootstrap.progress import Bars
from bootstrap.train import train_here
from trainer.config import parse

MODELS = {
    "default": {},
    "reference": {"embedding": 100, "hidden": 32, "layers": 2, "pooling": "last"},
}
_PEERS = {"plain torch, padded": False, "plain torch, packed": True}
_SHOAL = "shoal"
_REFERENCE = 10 * 21_300_000  # rows


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks training", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="on this machine (default: 1 2)")
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 1024], help="(default: 256 1024)")
    parser.add_argument("--rows", type=int, default=60_000, help="to train on (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of a rank on a CPU (default: %(default)s)")
    parser.add_argument("--precision", default="float32", help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("training")
    found: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "rows.h5"
        write_rows(data, options.rows)
        for _ in range(options.runs):
            for name, ranks, batch in itertools.product(MODELS, options.ranks, options.batches):
                rates = found.setdefault((name, ranks, batch), {way: [] for way in (_SHOAL, *_PEERS)})
                rates[_SHOAL].append(_shoal(data, Path(folder) / "model", name, ranks, batch, options))
                for peer, packed in _PEERS.items():
                    rates[peer].append(_plain(data, name, ranks, batch, packed, options))
                log.say(f"{name}, {ranks}, {batch}: { {way: round(runs[-1]) for way, runs in rates.items()} }")
    rows = []
    for (name, ranks, batch), rates in found.items():
        middle = {way: median(runs) for way, runs in rates.items()}
        best = max(middle[peer] for peer in _PEERS)
        cells = [f"{rate:,.0f}" for rate in middle.values()]
        rows.append([name, str(ranks), f"{batch:,}", *cells, f"{middle[_SHOAL] / best:.2f}"])
        rows[-1].append(f"{_REFERENCE / middle[_SHOAL] / 60:,.0f}")
    log.table(
        ["model", "ranks", "global batch", *(_SHOAL, *_PEERS), "shoal / best of the others", "213M rows, min"], rows
    )
    log.keep({"options": vars(options), "rates": [[*case, rates] for case, rates in found.items()]})


def _settings(data: Path, output: Path, name: str, batch: int, options: argparse.Namespace) -> Any:
    asked = [f"--{key}={value}" for key, value in MODELS[name].items()]
    return parse(
        [
            *(f"--data={data}", f"--output={output}", f"--global-batch={batch}", f"--epochs={options.epochs}"),
            *(f"--precision={options.precision}", f"--threads={options.threads}", "--force", *asked),
        ]
    )


def _shoal(data: Path, output: Path, name: str, ranks: int, batch: int, options: argparse.Namespace) -> float:
    with Bars() as bars:
        summary = train_here(_settings(data, output, name, batch, options), ranks=ranks, bars=bars)
    return float(summary["samples_per_second"])


def _plain(data: Path, name: str, ranks: int, batch: int, packed: bool, options: argparse.Namespace) -> float:
    config = _settings(data, data, name, batch, options)
    asked = {
        **{key: getattr(config, key) for key in ("embedding", "hidden", "layers", "pooling", "threads", "precision")},
        "data": str(data),
        "global_batch": batch,
        "epochs": options.epochs,
        "packed": packed,
    }
    return float(run_on(ranks, "benchmarks.peers.plain_torch", asked)["rate"])
