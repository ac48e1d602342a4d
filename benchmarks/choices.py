"""What each default of the model is worth: each is changed alone, on folds of the training rows, in the same time.

    python -m benchmarks choices DATASET... [--folds 4] [--only NAME...]

The test rows are not used, so that they stay unseen: one fold of the training rows is the test, and the others are
learnt from. Every other setting gets as many epochs as fit into the time of the defaults, by its own rate, which is
measured in an epoch before. Differences to the defaults are of the same folds, with the standard error of their mean.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from torch.nn import functional

from benchmarks.record import Log
from benchmarks.rows import columns_of, learnable_dataset, write_parts
from corpus.dataset import open_dataset
from trainer.command_line import parse_arguments
from trainer.distributed.ranks import join_process_group
from trainer.registry import MODELS
from trainer.start import train


class Variant(NamedTuple):
    """What is changed."""

    options: Sequence[str] = ()
    """Of `shoal train`."""
    model: str = MODELS["lstm"].module
    """The module that builds it."""
    smoothing: float = 0.0
    """Of the labels of cross-entropy (Szegedy et al. 2016, section 7)."""


DEFAULT, EVEN = "the defaults", "classes weigh the same"
VARIANTS: Mapping[str, Variant] = {
    DEFAULT: Variant(),
    "the reference's model and optimiser": Variant(("--preset=reference",)),
    "pooling: mean+words": Variant(("--pooling=mean+words",)),
    "pooling: mean": Variant(("--pooling=mean",)),
    "pooling: last": Variant(("--pooling=last",)),
    "attention": Variant(model="benchmarks.peers.attention"),
    "pairs of words": Variant(model="benchmarks.peers.pairs"),
    "bidirectional": Variant(model="benchmarks.peers.bidirectional"),
    "2 layers": Variant(("--layers=2",)),
    "hidden 64": Variant(("--hidden=64",)),
    "embedding 128": Variant(("--embedding=128",)),
    "word vectors as fast as all": Variant(("--word-rate=1",)),
    "word vectors at a tenth": Variant(("--word-rate=.1",)),
    "no word dropout": Variant(("--word-dropout=0",)),
    "word dropout .3": Variant(("--word-dropout=.3",)),
    "no embedding dropout": Variant(("--embedding-dropout=0",)),
    "no dropout before the last layer": Variant(("--dropout=0",)),
    "smooth labels": Variant(smoothing=0.1),
    "loss: bce": Variant(("--loss=bce",)),
    "loss: mse": Variant(("--loss=mse",)),
    EVEN: Variant(),
    "rows weigh the same": Variant(("--positive-weight=1",)),
    "half the rate": Variant(("--learning-rate=4e-3",)),
    "twice the rate": Variant(("--learning-rate=1.6e-2",)),
    "bfloat16": Variant(("--precision=bfloat16",)),
}
"""What is changed, by name. The weight for even classes depends on the dataset (`_trained`)."""
_MEASURES = ("accuracy", "macro_f1", "f1_negative")

Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks choices", description=__doc__.partition("\n")[0])
    parser.add_argument("datasets", nargs="*", type=Path, help="by shoal preprocess (default: of generated reviews)")
    parser.add_argument("--folds", type=int, default=4, help="runs of each (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=tuple(VARIANTS), default=[], help="others to try (default: all)")
    options = parser.parse_args(arguments)
    names = [name for name in VARIANTS if name == DEFAULT or not options.only or name in options.only]
    log = Log("choices")
    record = {}
    with TemporaryDirectory() as folder:
        for dataset in options.datasets or [learnable_dataset(Path(folder))]:
            log.say(f"\n{dataset.parent.name}/{dataset.name}, {options.folds} folds")
            found: dict[str, list[Figures]] = {name: [] for name in names}
            for fold, path in enumerate(_folds(dataset, Path(folder), options.folds)):
                default = _trained(path, Path(folder) / "model", DEFAULT, fold)
                for name in names:
                    made = default if name == DEFAULT else _in_the_same_time(path, Path(folder), name, fold, default)
                    found[name].append(made)
                    log.say(f"{fold}, {name}: {made}")
            log.table(
                ["setting", "epochs", "seconds", *(cell for name in _MEASURES for cell in (name, "difference"))],
                [[name, *_row(runs, found[DEFAULT])] for name, runs in found.items()],
            )
            record[dataset.parent.name] = found
    log.keep({"runs": record})


def _folds(dataset: Path, folder: Path, count: int) -> Iterator[Path]:
    """Datasets of the training rows alone, each with another part of them as test rows."""
    with open_dataset(dataset) as whole:
        columns = columns_of([whole.train])
        folds = np.array_split(np.random.default_rng(0).permutation(len(whole.train)), count)
        for number, test in enumerate(folds):
            rest = np.concatenate([fold for other, fold in enumerate(folds) if other != number])
            write_parts(folder / f"{number}.h5", whole, columns, train=rest, test=test)
            yield folder / f"{number}.h5"


def _in_the_same_time(dataset: Path, folder: Path, name: str, seed: int, default: Figures) -> Figures:
    rate = _trained(dataset, folder / "model", name, seed, epochs=1)["rows_per_second"]
    epochs = max(1, round(default["epochs"] * rate / default["rows_per_second"]))
    return _trained(dataset, folder / "model", name, seed, epochs=epochs)


def _trained(dataset: Path, output: Path, name: str, seed: int, *, epochs: int | None = None) -> Figures:
    choice = VARIANTS[name]
    asked = [f"--data={dataset}", f"--output={output}", f"--seed={seed}", "--force", *choice.options]
    if epochs:
        asked.append(f"--epochs={epochs}")
    if name == EVEN:
        with open_dataset(dataset) as whole:
            positive = float(np.mean(whole.train.arrays["labels"][:]))
        asked.append(f"--positive-weight={(1 - positive) / positive}")
    config, start = parse_arguments(asked), time.perf_counter()
    smooth = partial(functional.cross_entropy, label_smoothing=choice.smoothing)
    with (
        mock.patch.dict(MODELS, lstm=replace(MODELS["lstm"], module=choice.model)),
        mock.patch.object(functional, "cross_entropy", smooth),
        join_process_group(config.threads) as ranks,
    ):
        summary: dict[str, Any] = train(config, ranks)
    macro = (summary["f1_positive"] + summary["f1_negative"]) / 2
    return {
        **{measure: {**summary, "macro_f1": macro}[measure] for measure in _MEASURES},
        "epochs": summary["epochs"],
        "rows_per_second": summary["samples_per_second"],
        "seconds": time.perf_counter() - start,
    }


def _row(runs: Sequence[Figures], defaults: Sequence[Figures]) -> list[str]:
    cells = [f"{mean(run['epochs'] for run in runs):.0f}", f"{mean(run['seconds'] for run in runs):.0f}"]
    for measure in _MEASURES:
        differences = [run[measure] - default[measure] for run, default in zip(runs, defaults, strict=True)]
        error = stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
        told = "" if runs is defaults else f"{mean(differences):+.4f} ± {error:.4f}"
        cells += [f"{mean(run[measure] for run in runs):.4f}", told]
    return cells
