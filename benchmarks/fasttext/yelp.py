"""Times of training on generated texts of Yelp polarity's size and number of words.

    python -m benchmarks fasttext yelp [--texts 560000] [--runs 3] [--cases CASE...]

Each case trains for one epoch, or for the epochs in its name. A rank has one thread unless the name says otherwise.
"Epoch, s" is the time of the training steps. The whole command also starts Python and torch, measures the ranks' rates,
evaluates, and writes checkpoints and the model.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.fasttext import shoal
from benchmarks.fasttext.piles import read_texts
from benchmarks.gpu.texts import TEST, TRAINING, WORDS, draw_texts, spell
from benchmarks.record import Log

_SGD, _GLUON, _ADAGRAD = ("--preset=fasttext",), ("--preset=gluon",), ("--model=fasttext",)
_ADAM = (*_ADAGRAD, "--optimiser=adam", "--learning-rate=0.02")
CASES: Mapping[str, shoal.Case] = {
    "SGD, --preset fasttext, 1 rank": shoal.Case((*_SGD, "--epochs=1"), 1),
    "SGD, --preset fasttext, 2 ranks": shoal.Case((*_SGD, "--epochs=1"), 2),
    "SGD, --preset fasttext, 2 threads": shoal.Case((*_SGD, "--epochs=1"), 1, threads=2),
    "Adagrad, --model fasttext, 1 rank": shoal.Case((*_ADAGRAD, "--epochs=1"), 1),
    "Adagrad, --model fasttext, 2 ranks": shoal.Case((*_ADAGRAD, "--epochs=1"), 2),
    "Adagrad, --model fasttext, 2 threads": shoal.Case((*_ADAGRAD, "--epochs=1"), 1, threads=2),
    "Adam, 1 rank": shoal.Case((*_ADAM, "--epochs=1"), 1),
    "Adam, 2 ranks": shoal.Case((*_ADAM, "--epochs=1"), 2),
    "Adam, 2 threads": shoal.Case((*_ADAM, "--epochs=1"), 1, threads=2),
    "Adam, --preset gluon, 1 epoch, 2 threads": shoal.Case((*_GLUON, "--epochs=1"), 1, threads=2),
    "SGD, --preset fasttext, 5 epochs, 2 threads": shoal.Case(_SGD, 1, threads=2),
    "Adagrad, --model fasttext, 5 epochs, 2 threads": shoal.Case((*_ADAGRAD, "--epochs=5"), 1, threads=2),
    "Adam, 25 epochs, 2 threads": shoal.Case((*_ADAM, "--epochs=25"), 1, threads=2),
    "Adam, --preset gluon, 25 epochs, 2 threads": shoal.Case(_GLUON, 1, threads=2),
}
_USUAL = tuple(CASES)[:9]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fasttext yelp", description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=TRAINING, help="training texts (default: %(default)s)")
    parser.add_argument("--test", type=int, default=TEST, help="test texts (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=tuple(CASES),
        default=_USUAL,
        metavar="CASE",
        help=f"some of: {'; '.join(CASES)} (default: the first {len(_USUAL)})",
    )
    parser.add_argument("--log", default="fasttext-yelp", help="name of the record (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log(options.log)
    training: dict[str, list[dict[str, Any]]] = {case: [] for case in options.cases}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_csv(folder / "train.csv", options.texts, seed=0)
        write_csv(folder / "test.csv", options.test, seed=1)
        data = read_texts(folder / "train.csv", folder / "test.csv", folder)
        for run in range(options.runs):
            for case, runs in training.items():
                runs.append(_train(CASES[case], data, folder / "model", run))
                log.say(f"{run}, {case}: {runs[-1]}")
    _tabulate(log, training)
    log.keep({"options": vars(options), "training": training})


def write_csv(path: Path, count: int, *, seed: int) -> None:
    """Write `count` texts with their labels, 1 or 2."""
    with path.open("wb") as file:
        for lines, labels in _lines(count, seed):
            quoted = (b'"%d","%s"\n' % (label + 1, line) for line, label in zip(lines, labels, strict=True))
            file.write(b"".join(quoted))


def _lines(count: int, seed: int) -> Iterator[tuple[list[bytes], list[int]]]:
    """Yield the texts and labels of each block.

    The words of a block are gathered from one array of bytes, in which zeros fill short words. Joining words one by one
    takes much longer.
    """
    spelling = np.array([f"{spell(word)} ".encode() for word in range(WORDS)])
    widths = np.char.str_len(spelling)
    for words, lengths, labels in draw_texts(count, seed=seed):
        letters = spelling[words].view(np.uint8)
        joined = letters[letters > 0].tobytes()
        ends = np.cumsum(widths[words])[np.cumsum(lengths) - 1].tolist()
        lines = [joined[start : end - 1] for start, end in pairwise([0, *ends])]
        yield lines, labels.tolist()


def _train(case: shoal.Case, data: Path, output: Path, seed: int) -> dict[str, Any]:
    summary, usage = shoal.train(output, f"--data={data}", f"--seed={seed}", *case.arguments)
    kept = {name: summary[name] for name in ("accuracy", "macro_f1", "rows", "epochs", "steps", "times")}
    return {**kept, "epoch": summary["times"]["training"] / summary["epochs"], "usage": asdict(usage)}


def _tabulate(log: Log, training: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    rows = [
        [
            case,
            f"{median(run['rows'] / run['epoch'] for run in runs):,.0f}",
            _spread([run["epoch"] for run in runs]),
            f"{median(run['usage']['wall'] for run in runs):.0f} s",
            f"{mean(run['accuracy'] for run in runs):.3f}",
            str(len(runs)),
        ]
        for case, runs in training.items()
    ]
    log.table(["training", "rows/s", "epoch, s", "whole command", "accuracy", "runs"], rows)


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
