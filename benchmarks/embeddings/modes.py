"""Modes in which ranks learn word embeddings together, with ranks of equal speed and with a slow rank.

    python -m benchmarks embeddings modes [TEXT...] [--similarity FILE...] [--seeds 3] [--slow 2]

Two ranks run on this machine with one thread each. `shoal train --slow` slows one down by the factor --slow. First all
modes learn for equal --epochs, to compare times and vectors. Then each mode learns for about the time that the
asynchronous mode took. Seconds are those of learning. `off` splits each step equally, so the fast rank waits for the
slow one; `steps` splits by speed.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.embeddings.texts import add_options, evaluation_options, write_texts
from benchmarks.fasttext import shoal
from benchmarks.record import Log, spread
from shoal.runs.sources.local_readers import FOLDER

_SLOW, _ASYNC_SLOW = "one slow", "async, one slow"
_ALONE = "one rank"
WAYS = (
    *(_ALONE, "sync", "average", "async"),
    *("sync, one slow, off", "sync, one slow, steps", "average, one slow", _ASYNC_SLOW),
)
_RANKS = 2

Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings modes", description=__doc__.partition("\n")[0]
    )
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each mode, interleaved (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--slow", type=float, default=2.0, help="factor of the slow rank (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100, help="dimensions of a vector (default: %(default)s)")
    parser.add_argument("--local-steps", type=int, default=20, help="K of average and async (default: %(default)s)")
    parser.add_argument(
        "--global-batch", type=int, default=16, help="rows of a step, of 128 words (default: %(default)s)"
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, metavar="WAY", help=f"of: {'; '.join(WAYS)}")
    options = parser.parse_args(arguments)
    ways = {way: _mode_arguments(way, options) for way in options.ways}
    log = Log("embeddings-modes")
    found: dict[str, dict[str, dict[str, list[Figures]]]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for text_name, text in write_texts(options, folder).items():
            runs = _Runs(log, folder / text_name, text.path, options)
            equal = runs.run_all(text_name, ways, dict.fromkeys(ways, options.epochs))
            _tabulate(log, f"{text_name}, {options.epochs} epochs", equal)
            slowed = {way: arguments for way, arguments in ways.items() if _SLOW in way}
            found[text_name] = {"equal epochs": equal}
            if _ASYNC_SLOW not in slowed:
                continue
            seconds = {way: mean(run["seconds"] for run in equal[way]) for way in slowed}
            until = seconds[_ASYNC_SLOW]
            epochs = {way: max(1, round(options.epochs * until / taken)) for way, taken in seconds.items()}
            timed = runs.run_all(text_name, slowed, epochs)
            _tabulate(log, f"{text_name}, about {until:.1f} s", timed)
            found[text_name]["equal time"] = timed
    log.keep({"options": vars(options), "runs": found})


def _mode_arguments(way: str, options: argparse.Namespace) -> list[str]:
    """Return the options of `shoal train` for a mode."""
    mode, *more = way.split(", ")
    arguments = [f"--nodes={1 if way == _ALONE else _RANKS}"]
    if mode in ("average", "async"):
        arguments.append(f"--mode={mode}:{options.local_steps}")
    if _SLOW in more:
        arguments.append(f"--slow=1:{options.slow:g}")
    return [*arguments, *(f"--balance={each}" for each in more if each != _SLOW)]


class _Runs:
    """Runs on one text."""

    def __init__(self, log: Log, folder: Path, text: Path, options: argparse.Namespace) -> None:
        """Read the text, and fill the caches of compiled code."""
        self._log, self._folder, self._options = log, folder, options
        folder.mkdir()
        self._train(f"--input={text}", "--tokeniser=spaces", "--epochs=1")
        self._stream = (folder / "model" / FOLDER).rename(folder / FOLDER)

    def run_all(
        self, text: str, ways: Mapping[str, Sequence[str]], epochs: Mapping[str, int]
    ) -> dict[str, list[Figures]]:
        """Return the figures of each mode, one for each seed."""
        found: dict[str, list[Figures]] = {way: [] for way in ways}
        for seed in range(self._options.seeds):
            for way, runs in found.items():
                summary = self._train(f"--data={self._stream}", f"--epochs={epochs[way]}", f"--seed={seed}", *ways[way])
                runs.append(_figures(summary, epochs[way]))
                self._log.say(f"{text}, {seed}, {way}: { {key: round(v, 4) for key, v in runs[-1].items()} }")
        return found

    def _train(self, *arguments: str) -> Mapping[str, Any]:
        options = self._options
        return shoal.train(
            self._folder / "model",
            *("--threads=1", "--pip", *evaluation_options(options)),
            *(f"--embedding={options.size}", f"--global-batch={options.global_batch}", *arguments),
            verb="embed",
        ).summary


def _figures(summary: Mapping[str, Any], epochs: int) -> Figures:
    stale = summary.get("staleness") or {}
    names = ("loss", "pip_loss", "pip_cosine", "similarity")
    return {
        "epochs": epochs,
        "seconds": summary["times"]["training"],
        **{name: summary[name] for name in names if summary.get(name) is not None},
        **{f"staleness_{name}": float(value) for name, value in stale.items()},
    }


def _tabulate(log: Log, text: str, found: Mapping[str, Sequence[Figures]]) -> None:
    names = [name for name in ("pip_loss", "pip_cosine", "similarity", "loss") if name in next(iter(found.values()))[0]]
    first = next(iter(found.values()))
    rows = [
        [
            way,
            f"{runs[0]['epochs']:g}",
            spread([run["seconds"] for run in runs], 1),
            *(spread([run[name] for run in runs], 1 if name == "pip_loss" else 4) for name in names),
            f"{mean(run['pip_loss'] / other['pip_loss'] for run, other in zip(runs, first, strict=True)) - 1:+.1%}",
        ]
        for way, runs in found.items()
    ]
    heads = ("epochs", "s", *(name.replace("_", " ") for name in names), f"pip loss, to {next(iter(found))}")
    log.table([text, *heads], rows)
