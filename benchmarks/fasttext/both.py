"""Whether an LSTM and fastText's model together (`--model both`) classify better than each alone, in the same time.

    python -m benchmarks fasttext both 'NAME=OPTIONS OF shoal train'... [--seeds 5] [--words 100 2000] [--log NAME]

Piles are as those of `quality`, and have the same rows for all models: the first --words words of each text, by rule 1b
(docs/dataset.md), with the full vocabulary. If no text of a pile is longer than the smallest of these numbers, the
others are left out. The LSTM and both have their default epochs, which are as many. fastText has 5, 10 or 25 epochs: of
those that take no longer than the LSTM's steps, the number that does best on the rows held out. A rank has one thread.
Seconds are those of the training steps, which is CPU time where no other program runs. The better model of two is the
one with the higher mean accuracy on the test rows.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fasttext.piles import Pile, make_parts, read_pile
from benchmarks.record import Log
from benchmarks.trained import train_here
from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from corpus.dataset import Split, open_dataset, write_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock
from trainer.command_line import parse_arguments

_GENERATED = 8_000
_LSTM, _FASTTEXT, _BOTH = "lstm", "fasttext", "both"
_EPOCHS = (5, 10, 25)


class _Run(NamedTuple):
    validation: float
    """The accuracy on the rows held out."""
    test: float
    seconds: float
    epochs: int


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fasttext both", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME=OPTIONS",
        help=f"texts, and how shoal train is to read them (default: {_GENERATED:,} that are generated)",
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each model, in turns (default: %(default)s)")
    parser.add_argument(
        "--words", type=int, nargs="+", default=[100, 2000], help="of a row at most (default: 100 2000)"
    )
    parser.add_argument("--log", default="fasttext-both", help="name of the record (default: %(default)s)")
    options = parser.parse_args(arguments)
    if wrong := [pile for pile in options.piles if not all(pile.partition("="))]:
        parser.error(f"{wrong[0]} is not NAME=OPTIONS")
    log = Log(options.log)
    found: dict[str, dict[str, list[_Run]]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not options.piles:
            write_reviews(folder / "reviews.json", texts=_GENERATED)
        asked = dict(pile.split("=", 1) for pile in options.piles or [f"generated=--input {folder}/reviews.json"])
        for pile, how in asked.items():
            texts = read_pile(how)
            for words in lengths_of(texts, options.words):
                case = f"{pile}, {words} words"
                found[case] = _compared(log, case, texts, words, folder, options.seeds)
    for case, runs in found.items():
        _tabulate(log, case, runs)
    record = {
        case: {model: [run._asdict() for run in each] for model, each in runs.items()} for case, runs in found.items()
    }
    log.keep({"options": vars(options), "runs": record})


def lengths_of(pile: Pile, asked: Sequence[int]) -> Sequence[int]:
    """Those of the lengths `asked` that make different rows of a pile."""
    longest = max(example.text.count(" ") + 1 for example in (*pile.learnt, *pile.test))
    return [words for words in sorted(asked) if words == min(asked) or longest > min(asked)]


def _compared(log: Log, case: str, pile: Pile, words: int, folder: Path, seeds: int) -> dict[str, list[_Run]]:
    """The runs of each model, one for each seed."""
    found: dict[str, list[_Run]] = {model: [] for model in (_LSTM, _FASTTEXT, _BOTH)}
    for seed in range(seeds):
        made = folder / "made"
        parts = make_parts(pile, made, seed=seed)
        (whole,) = made.glob("texts-*/dataset.h5")
        data = cut(whole, made / "rows.h5", words)
        lstm = _trained(data, made, _LSTM, seed)
        tried = [_trained(data, made, _FASTTEXT, seed, epochs) for epochs in _EPOCHS]
        in_time = [run for run in tried if run.seconds <= lstm.seconds] or tried[:1]
        both = _trained(data, made, _BOTH, seed)
        for model, run in ((_LSTM, lstm), (_FASTTEXT, max(in_time, key=lambda run: run.validation)), (_BOTH, both)):
            found[model].append(run)
            log.say(f"{case}, {seed}, {model}: {run}, of {len(parts.learnt):,} rows")
        shutil.rmtree(made)
    return found


def cut(whole: Path, path: Path, words: int) -> Path:
    """Write a dataset with the first `words` words of each row of one with whole texts."""
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


def _trained(data: Path, folder: Path, model: str, seed: int, epochs: int | None = None) -> _Run:
    asked = [f"--data={data}", f"--output={folder / 'model'}", f"--model={model}", f"--seed={seed}"]
    length = [f"--epochs={epochs}"] if epochs else []
    with Bars() as bars:
        found: Mapping[str, Any] = train_here(
            parse_arguments([*asked, *length, "--threads=1", "--force"]), ranks=1, bars=bars
        )
    return _Run(found["validation"]["accuracy"], found["accuracy"], found["times"]["training"], found["epochs"])


def _tabulate(log: Log, case: str, found: Mapping[str, Sequence[_Run]]) -> None:
    """The figures of all models, and those of both less those of the better one of the others."""
    better = max((_LSTM, _FASTTEXT), key=lambda model: mean(run.test for run in found[model]))
    rows = [
        [
            model,
            spread([run.validation for run in runs], 4),
            spread([run.test for run in runs], 4),
            spread([run.seconds for run in runs], 1),
            "/".join(str(run.epochs) for run in runs),
        ]
        for model, runs in found.items()
    ]
    differences = [
        difference([run[at] for run in found[_BOTH]], [run[at] for run in found[better]])
        for at in (_Run._fields.index("validation"), _Run._fields.index("test"))
    ]
    rows.append([f"{_BOTH} less {better}", *differences, "", ""])
    log.table([case, "accuracy, rows held out", "accuracy, test rows", "s", "epochs"], rows)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The mean over seeds, and its standard error."""
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    error = stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return f"{mean(differences):+.4f} ± {error:.4f}"


def spread(values: Sequence[float], digits: int) -> str:
    return f"{mean(values):.{digits}f} ± {stdev(values) if len(values) > 1 else 0.0:.{digits}f}"
