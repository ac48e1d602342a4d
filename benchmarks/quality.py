"""Whether the model classifies as well as fastText does: the same encoded rows, the same test rows, several seeds.

    python -m benchmarks quality 'NAME=OPTIONS OF shoal preprocess'... [--seeds 5] [--rows 500 2000 ...] [--ranks 1]

Each NAME is a pile of reviews that is preprocessed first, as OPTIONS say, such as 'imdb=--input FILE --label-field
label'. fastText (Joulin et al. 2017), supervised and with single words, learns from the same rows as Shoal's model, as
texts of word ids. It gets the number of epochs and the rate that do best on the rows held out, by which Shoal's own
settings were chosen. Further cases have more to read: Shoal with negations, with all stopwords, and with negations,
longer rows and more words; fastText with whole texts, and with pairs of words, too.

Each seed splits a pile's rows anew into rows to learn from and rows to test, of the numbers that the dataset has. By
chance, a few thousand test rows favour one model by more than two good models differ. `--own-split` keeps the dataset's
split. `--rows` limits the rows to learn from, once for each number.
"""

import argparse
import itertools
import json
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.record import Log
from benchmarks.rows import columns_of, write_parts
from benchmarks.trained import train_here
from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from corpus.dataset import open_dataset
from trainer.classification.data import load_data
from trainer.classification.metrics import Confusion, measures
from trainer.classification.rows import Rows
from trainer.command_line import parse_arguments

_GENERATED = 8_000
_EPOCHS, _RATES = (5, 25), (0.1, 0.5)
_MEASURES = ("accuracy", "macro_f1", "f1_negative", "balanced_accuracy")
_TEXTS = {
    "rows": (),
    "negations": ("--stopwords=keep-negations",),
    "all words": ("--stopwords=none",),
    "long rows": ("--stopwords=keep-negations", "--row-length=400", "--vocabulary-size=30000"),
    "whole texts": ("--stopwords=none", "--row-length=2000", "--vocabulary-size=1000000"),
}
"""How a pile is preprocessed, beside its own options. Hardly any text has more than 2,000 words."""

Example = tuple[str, int]
Figures = dict[str, float]


class _Model(NamedTuple):
    texts: str
    """The dataset, one of _TEXTS."""
    pairs: int | None = None
    """fastText's word n-grams; None for Shoal."""


MODELS = {
    "Shoal": _Model("rows"),
    "fastText, same rows": _Model("rows", 1),
    "Shoal, negations kept": _Model("negations"),
    "Shoal, no stopwords": _Model("all words"),
    "Shoal, negations kept, longer rows": _Model("long rows"),
    "fastText, whole texts": _Model("whole texts", 1),
    "fastText, whole texts, pairs": _Model("whole texts", 2),
}
_PAIRED = ("Shoal", "fastText, same rows")


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks quality", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME=OPTIONS",
        help="reviews, and how shoal preprocess is to read them (default: 8,000 that are generated)",
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each model (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[0], help="the most rows to learn from (default: all)")
    parser.add_argument("--only", nargs="+", choices=tuple(MODELS), default=tuple(MODELS), metavar="MODEL")
    parser.add_argument(
        "--option", action="append", default=[], help="an option of shoal train, such as --option=--hidden=64"
    )
    parser.add_argument("--ranks", type=int, default=1, help="ranks of Shoal (default: %(default)s)")
    parser.add_argument("--own-split", action="store_true", help="the dataset's own test rows with every seed")
    parser.add_argument("--log", default="quality", help="name of the record (default: %(default)s)")
    options = parser.parse_args(arguments)
    if wrong := [pile for pile in options.piles if not all(pile.partition("="))]:
        parser.error(f"{wrong[0]} is not NAME=OPTIONS")
    log = Log(options.log)
    record: dict[str, dict[str, list[Figures]]] = {}
    for pile in options.piles or ["generated="]:
        name, _, asked = pile.partition("=")
        with TemporaryDirectory() as folder:
            if not options.piles:
                write_reviews(Path(folder, "reviews.json"), texts=_GENERATED)
                asked = f"--input {folder}/reviews.json"
            wanted = {MODELS[model].texts for model in options.only}
            made = {texts: _dataset(asked, _TEXTS[texts], Path(folder, texts)) for texts in wanted}
            for rows in options.rows:
                found = _compared(log, made, Path(folder), rows, options)
                record[f"{name}, {rows} rows" if rows else name] = found
                _tabulate(log, name, found)
    log.keep({"options": vars(options), "runs": record})


def _dataset(asked: str, how: Sequence[str], folder: Path) -> Path:
    shoal = [sys.executable, "-m", "bootstrap.cli.main", "preprocess", "--local", "--json", "--preset=reference"]
    done = subprocess.run([*shoal, "--output", folder, *shlex.split(asked), *how], stdout=subprocess.PIPE, check=True)
    return Path(json.loads(done.stdout)["dataset"])


def _compared(
    log: Log, made: dict[str, Path], folder: Path, rows: int, options: argparse.Namespace
) -> dict[str, list[Figures]]:
    """The figures of each model, one for each seed."""
    found: dict[str, list[Figures]] = {name: [] for name in options.only}
    for seed in range(options.seeds):
        split = {
            texts: _split(path, folder / f"{texts}.h5", None if options.own_split else seed, rows)
            for texts, path in made.items()
        }
        for name, runs in found.items():
            texts, pairs = MODELS[name]
            if pairs is None:
                runs.append(_shoal(split[texts], folder / "model", seed, options))
            else:
                runs.append(_fasttext(split[texts], folder / "fasttext.txt", seed, pairs))
            log.say(f"{seed}, {name}: {runs[-1]}")
    return found


def _split(path: Path, output: Path, seed: int | None, most: int) -> Path:
    """Split a dataset's rows by chance into as many to learn from (at most `most`) and to test as it has; with no seed
    keep its split."""
    with open_dataset(path) as dataset:
        columns, train = columns_of([dataset.train, dataset.test]), len(dataset.train)
        count = len(columns.lengths)
        mixed = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
        write_parts(output, dataset, columns, train=mixed[: min(most or train, train)], test=mixed[train:])
    return output


def _shoal(dataset: Path, output: Path, seed: int, options: argparse.Namespace) -> Figures:
    config = parse_arguments(
        ["--data", str(dataset), "--output", str(output), "--seed", str(seed), "--force", *options.option]
    )
    start = time.perf_counter()
    with Bars() as bars:
        summary = train_here(config, ranks=options.ranks, bars=bars)
    return {**_figures(summary), "seconds": time.perf_counter() - start}


def _fasttext(dataset: Path, file: Path, seed: int, pairs: int) -> Figures:
    """The figures on the test rows of the settings with the best accuracy on the rows held out."""
    import fasttext  # of requirements-bench.txt

    data = load_data(dataset)
    learnt, held_out, test = (_as_texts(rows) for rows in (data.training, data.validation, data.test))
    shuffled = random.Random(seed).sample(learnt, len(learnt))  # noqa: S311
    file.write_text("".join(f"__label__{label} {text}\n" for text, label in shuffled))
    start = time.perf_counter()
    asked = {"dim": 100, "wordNgrams": pairs, "seed": seed, "thread": 1, "verbose": 0}
    models = [
        fasttext.train_supervised(str(file), epoch=epochs, lr=rate, **asked)
        for epochs, rate in itertools.product(_EPOCHS, _RATES)
    ]
    best = max(models, key=lambda model: _judged(model, held_out)["accuracy"])
    return {**_judged(best, test), "seconds": (time.perf_counter() - start) / len(models)}


def _judged(model: Any, examples: Sequence[Example]) -> Figures:
    said = [int(labels[0].removeprefix("__label__")) for labels in model.predict([text for text, _ in examples])[0]]
    kinds = np.bincount([2 * label + call for (_, label), call in zip(examples, said, strict=True)], minlength=4)
    return _figures(measures(Confusion.of(kinds.tolist())))


def _figures(found: dict[str, Any]) -> Figures:
    macro = (found["f1_positive"] + found["f1_negative"]) / 2
    told = {**found, "macro_f1": macro}
    return {measure: float(told[measure]) for measure in (*_MEASURES, "majority")}


def _as_texts(rows: Rows) -> list[Example]:
    """Rows as texts in which a word is its id."""
    return [
        (" ".join(map(str, tokens[:length].tolist())), int(label))
        for tokens, length, label in zip(rows.tokens, rows.lengths, rows.labels, strict=True)
    ]


def _tabulate(log: Log, name: str, found: dict[str, list[Figures]]) -> None:
    rows = [
        [
            model,
            *(_spread([run[measure] for run in runs]) for measure in _MEASURES),
            _spread([run["seconds"] for run in runs], 1),
        ]
        for model, runs in found.items()
    ]
    if found.keys() >= set(_PAIRED):
        ours, theirs = (found[model] for model in _PAIRED)
        rows.append(
            ["Shoal less fastText, same rows", *(_difference(ours, theirs, measure) for measure in _MEASURES), ""]
        )
    first = next(iter(found.values()))
    log.table([f"{name} (majority {mean(run['majority'] for run in first):.1%})", *_MEASURES, "seconds"], rows)


def _difference(ours: Sequence[Figures], theirs: Sequence[Figures], measure: str) -> str:
    """The mean over seeds, and its standard error."""
    differences = [one[measure] - other[measure] for one, other in zip(ours, theirs, strict=True)]
    error = stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return f"{mean(differences):+.4f} ± {error:.4f}"


def _spread(values: Sequence[float], digits: int = 3) -> str:
    return f"{mean(values):.{digits}f} ± {stdev(values) if len(values) > 1 else 0.0:.{digits}f}"
