"""Effect of pretrained word embeddings on the classifiers (`shoal train --embeddings`).

    python -m benchmarks downstream 'NAME=OPTIONS OF shoal train'... [--text FILE...] [--seeds 5] [--models MODEL...]

Piles are those of `fasttext quality`. Rows are the first --words words of each text, by rule 1b
(docs/reference/dataset.md). `shoal embed` learns vectors from the training rows without their labels, and from the
lines of the --text files. It sees no held-out rows and no test rows.

Each model learns from the share --labelled of the rows, with three starts: random vectors of its default size, random
vectors of the size of the learned ones, and the learned vectors. With --word-rates each start runs with each rate, and
for each seed the run with the best accuracy on the held-out rows counts.

Differences are those of the last start to each other start, for the same seeds, with the standard error of their mean.
Seconds are those of the training steps.
"""

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.fasttext import shoal
from benchmarks.fasttext.piles import Example, Pile, make_parts, read_pile
from benchmarks.ranks import train_here
from benchmarks.record import Log, difference, spread
from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from corpus.dataset import Split, open_dataset, write_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock
from corpus.reading.storage import open_blocks
from corpus.tokens import tokens
from trainer.command_line import parse_arguments
from trainer.output.run_files import MODEL
from trainer.registry import CLASSIFIERS, MODELS

_GENERATED = 2_000
_MODELS = tuple(name for name in CLASSIFIERS if "embeddings" in MODELS[name].options)
_RANDOM, _AS_LONG, _LEARNED = "random", "random, as long", "learned before"

_MEASURES = ("accuracy", "macro_f1")


class _Run(NamedTuple):
    accuracy: float
    macro_f1: float
    seconds: float
    held_out: float
    """Accuracy on the held-out rows."""
    word_rate: float | None


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks downstream", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME=OPTIONS",
        help=f"texts, with options of shoal train to read them (default: {_GENERATED:,} generated texts)",
    )
    parser.add_argument("--text", nargs="+", default=[], metavar="FILE", help="more text to learn vectors from")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each model, interleaved (default: %(default)s)")
    parser.add_argument("--models", nargs="+", choices=_MODELS, default=_MODELS, help="(default: all)")
    parser.add_argument(
        "--words", type=int, default=100, help="largest number of words of a row (default: %(default)s)"
    )
    parser.add_argument(
        "--labelled", type=float, default=1.0, help="share of the rows to learn from (default: %(default)s)"
    )
    parser.add_argument("--size", type=int, default=100, help="dimensions of a vector (default: %(default)s)")
    parser.add_argument(
        "--word-rates", type=float, nargs="+", metavar="RATE", help="learning rates of the vectors to choose from"
    )
    parser.add_argument("--log", default="downstream", help="name of the record (default: %(default)s)")
    options = parser.parse_args(arguments)
    if wrong := [pile for pile in options.piles if not all(pile.partition("="))]:
        parser.error(f"{wrong[0]} is not NAME=OPTIONS")
    log = Log(options.log)
    record = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not options.piles:
            write_reviews(folder / "reviews.json", texts=_GENERATED)
        pile_options = dict(
            pile.split("=", 1) for pile in options.piles or [f"generated=--input {folder}/reviews.json"]
        )
        more = [line for file in options.text for line in _lines(file)]
        for pile, how in pile_options.items():
            found = _compared(log, read_pile(how), more, folder, options)
            _tabulate(log, pile, found)
            record[pile] = {
                model: {start: [run._asdict() for run in runs] for start, runs in of_model.items()}
                for model, of_model in found.items()
            }
    log.keep({"options": vars(options), "runs": record})


def _lines(address: str) -> list[list[str]]:
    """Return the words of each line of a file, by rule 1b."""
    lines = b"".join(open_blocks(address)).decode(errors="replace").split("\n")
    return [found for line in lines if (found := tokens(line))]


def _compared(
    log: Log, pile: Pile, more: Sequence[Sequence[str]], folder: Path, options: argparse.Namespace
) -> dict[str, dict[str, list[_Run]]]:
    """Return the runs of each model from each start, one for each seed."""
    found: dict[str, dict[str, list[_Run]]] = {model: {} for model in options.models}
    for seed in range(options.seeds):
        seed_folder = folder / "seed"
        parts = make_parts(pile, seed_folder, seed=seed)
        (whole,) = seed_folder.glob("texts-*/dataset.h5")
        data = cut(whole, seed_folder / "rows.h5", options.words)
        began = time.monotonic()
        vectors = _learn_vectors(seed_folder / "vectors", parts.learned, more, size=options.size, seed=seed)
        log.say(f"{seed}: vectors took {time.monotonic() - began:.1f} s, of {len(parts.learned):,} rows and other text")
        starts: dict[str, tuple[str, ...]] = {
            _RANDOM: (),
            _AS_LONG: (f"--embedding={options.size}",),
            _LEARNED: (f"--embeddings={vectors}",),
        }
        for model, runs in found.items():
            arguments = (f"--model={model}", f"--seed={seed}", f"--train-share={options.labelled}")
            for start, start_options in starts.items():
                rate_runs = [
                    _trained(data, seed_folder, rate, *arguments, *start_options)
                    for rate in options.word_rates or [None]
                ]
                for run in rate_runs:
                    log.say(f"{seed}, {model}, {start}: {run}")
                runs.setdefault(start, []).append(max(rate_runs, key=lambda run: run.held_out))
        shutil.rmtree(seed_folder)
    return found


def cut(whole: Path, path: Path, words: int) -> Path:
    """Write a dataset with the first `words` words of each row of a dataset of whole texts."""
    with open_dataset(whole) as dataset:
        settings = Settings(
            row_length=words,
            vocabulary_size=len(dataset.vocabulary),
            labelled=True,
            stopwords="none",
            words="tokens",
            duplicates=True,
        )
        train, test = (_cut_rows(split, settings) for split in (dataset.train, dataset.test))
        write_dataset(
            path, train=train, test=test, vocabulary=dataset.vocabulary, settings=settings, stopwords=frozenset()
        )
    return path


def _cut_rows(split: Split, settings: Settings) -> RowBlock:
    rows = split.rows(0, len(split))
    lengths = np.minimum(rows.lengths, settings.row_length)
    ends = np.cumsum(rows.lengths, dtype=np.int64)
    tokens = np.zeros((len(lengths), settings.row_length), settings.token_dtype)
    for row, start, length in zip(tokens, ends - rows.lengths, lengths, strict=True):
        row[:length] = rows.tokens[start : start + length]
    return rows._replace(tokens=tokens, lengths=lengths.astype(np.uint16))


def _learn_vectors(
    folder: Path, examples: Sequence[Example], more: Sequence[Sequence[str]], *, size: int, seed: int
) -> Path:
    """Learn vectors from these texts, and return the folder of the model."""
    folder.mkdir()
    text = folder / "text.txt"
    text.write_text("".join(f"{line}\n" for line in (*(each.text for each in examples), *map(" ".join, more))))
    arguments = ("--tokeniser=spaces", f"--embedding={size}", "--min-count=2", "--epochs=5", "--threads=1")
    shoal.train(folder / "run", f"--input={text}", f"--seed={seed}", *arguments, verb="embed")
    return folder / "run" / MODEL


def _trained(data: Path, folder: Path, word_rate: float | None, *options: str) -> _Run:
    arguments = [f"--data={data}", f"--output={folder / 'model'}", "--threads=1", "--force", *options]
    if word_rate is not None:
        arguments.append(f"--word-rate={word_rate}")
    with Bars() as bars:
        found = train_here(parse_arguments(arguments), ranks=1, bars=bars)
    held_out = found["validation"]["accuracy"]
    return _Run(found["accuracy"], found["macro_f1"], found["times"]["training"], held_out, word_rate)


def _tabulate(log: Log, pile: str, found: Mapping[str, Mapping[str, Sequence[_Run]]]) -> None:
    rows = [
        [
            model,
            start,
            *(cell for name in _MEASURES for cell in _cells(runs, of_model[_LEARNED], name, against=start != _LEARNED)),
            spread([run.seconds for run in runs], 1),
        ]
        for model, of_model in found.items()
        for start, runs in of_model.items()
    ]
    heads = ["accuracy", "learned before, less this", "macro-F1", "learned before, less this", "s"]
    log.table([pile, "vectors", *heads], rows)


def _cells(runs: Sequence[_Run], learned: Sequence[_Run], name: str, *, against: bool) -> tuple[str, str]:
    ours, theirs = [getattr(run, name) for run in learned], [getattr(run, name) for run in runs]
    return spread(theirs, 4), difference(ours, theirs) if against else ""
