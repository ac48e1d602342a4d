"""Training speed of Shoal and of plain torch: an LSTM of the same size, with equal rows, global batch and precision.

    python -m benchmarks training [--runs 3] [--ranks 1 2] [--batches 256 1024] [--rows 60000]

Shoal runs with its defaults. Its default model drops half of the words of a text. It is also measured with all words,
as in plain torch; so is the reference's model. Plain torch is DistributedDataParallel around nn.LSTM, with rows padded
to the longest of the batch or packed, and with one thread a rank or all cores. Figures are rows per second of training,
and the time of the reference's training (10 epochs of 21.3 million rows) at Shoal's rate.
"""

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.ranks import run_on_ranks, train_here
from benchmarks.record import Log, ratio
from benchmarks.rows import write_rows
from common.cores import cores
from common.display import plural
from trainer.command_line import parse_arguments
from trainer.config import TrainConfig

MODELS = {
    "default": {},
    "reference": {"embedding": 100, "hidden": 32, "layers": 2, "pooling": "last"},
}
_ALL_WORDS = "Shoal, all words"
_SHOAL = {"Shoal": (), _ALL_WORDS: ("--word-dropout=0",)}
_PEERS = {"plain torch, padded": False, "packed": True}
_REFERENCE = 10 * 21_300_000  # rows


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks training", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks on this machine (default: 1 2)"
    )
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[256, 1024], help="global batches (default: 256 1024)"
    )
    parser.add_argument("--rows", type=int, default=60_000, help="rows to train on (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("training")
    found: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "rows.h5"
        write_rows(data, options.rows)
        for _ in range(options.runs):
            for name, ranks, batch in itertools.product(MODELS, options.ranks, options.batches):
                rates = found.setdefault((name, ranks, batch), {})
                for way in _ways(name):
                    rate = _shoal(data, Path(folder) / "model", name, ranks, batch, _SHOAL[way])
                    rates.setdefault(way, []).append(rate)
                for (peer, packed), threads in itertools.product(_PEERS.items(), _threads(ranks)):
                    rate = _plain(data, name, ranks, batch, packed, threads)
                    rates.setdefault(f"{peer}, {plural(threads, 'thread')}", []).append(rate)
                log.say(f"{name}, {ranks}, {batch}: { {way: round(runs[-1]) for way, runs in rates.items()} }")
    rows = []
    for (name, ranks, batch), rates in found.items():
        middle = {way: median(runs) for way, runs in rates.items()}
        best = max((way for way in middle if way not in _SHOAL), key=lambda way: middle[way])
        for way in _ways(name):
            cells = [name, way, str(ranks), f"{batch:,}", f"{middle[way]:,.0f}", f"{middle[best]:,.0f}", best]
            cells.append(ratio(rates[way], rates[best]))
            rows.append([*cells, f"{_REFERENCE / middle[way] / 60:,.0f}"])
    headers = ["model", "by", "ranks", "global batch", "rows/s", "best of plain torch", "which is", "ratio"]
    log.table([*headers, "213M rows, min"], rows)
    log.keep({"options": vars(options), "rates": [[*case, rates] for case, rates in found.items()]})


def _ways(model: str) -> list[str]:
    return [way for way in _SHOAL if model == "default" or way == _ALL_WORDS]


def _threads(ranks: int) -> list[int]:
    """Return the numbers of threads to try with plain torch: one for each rank, or all cores divided by the ranks."""
    return sorted({1, max(1, cores() // ranks)})


def _settings(data: Path, output: Path, name: str, batch: int, more: Sequence[str]) -> TrainConfig:
    model = [f"--{key}={value}" for key, value in MODELS[name].items()]
    paths = (f"--data={data}", f"--output={output}")
    return parse_arguments(
        [*paths, f"--global-batch={batch}", "--epochs=1", "--precision=float32", "--force", *model, *more]
    )


def _shoal(data: Path, output: Path, name: str, ranks: int, batch: int, more: Sequence[str]) -> float:
    summary = train_here(_settings(data, output, name, batch, more), ranks=ranks)
    return float(summary["samples_per_second"])


def _plain(data: Path, name: str, ranks: int, batch: int, packed: bool, threads: int) -> float:
    config = _settings(data, data, name, batch, ())
    peer_options = {
        **{key: config.values()[key] for key in ("embedding", "hidden", "layers", "pooling", "precision", "epochs")},
        "data": str(data),
        "global_batch": batch,
        "packed": packed,
        "threads": threads,
    }
    return float(run_on_ranks(ranks, "benchmarks.peers.plain_torch", peer_options)["rate"])
