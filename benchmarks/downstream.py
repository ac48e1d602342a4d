"""What vectors of words that were learnt before bring to the classifiers (`shoal train --embeddings`).

    python -m benchmarks downstream 'NAME=OPTIONS OF shoal train'... [--text FILE...] [--seeds 5] [--models MODEL...]

Piles and rows are those of `fasttext both`: the first --words words of each text, by rule 1b (docs/dataset.md).
gensim's word2vec learns vectors of the rows to learn from, without their labels, and of the lines of the --text files;
of the rows held out and of the test rows it sees nothing. Each model learns from the share --labelled of the rows, and
starts from random vectors of its default size, from random ones of the size of gensim's, and from gensim's. Differences
are those of the last to each of the others, of the same seeds, with the standard error of their mean. Seconds are those
of the training steps alone.
"""

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.fasttext.both import cut, difference, spread
from benchmarks.fasttext.piles import Example, Pile, make_parts, read_pile
from benchmarks.record import Log
from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from bootstrap.training.local import train_locally
from corpus.reading.storage import open_blocks
from corpus.tokens import tokens
from trainer.classification.models import MODULES
from trainer.command_line import parse_arguments

_GENERATED = 2_000
_RANDOM, _AS_LONG, _LEARNT = "random", "random, as long", "learnt before"
_VECTORS = "vectors.bin"


class _Run(NamedTuple):
    accuracy: float
    macro_f1: float
    seconds: float


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks downstream", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME=OPTIONS",
        help=f"texts, and how shoal train is to read them (default: {_GENERATED:,} that are generated)",
    )
    parser.add_argument("--text", nargs="+", default=[], metavar="FILE", help="more text to learn vectors of")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each model, in turns (default: %(default)s)")
    parser.add_argument("--models", nargs="+", choices=tuple(MODULES), default=list(MODULES), help="(default: all)")
    parser.add_argument("--words", type=int, default=100, help="of a row at most (default: %(default)s)")
    parser.add_argument("--labelled", type=float, default=1.0, help="share of the rows (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100, help="dimensions of a vector (default: %(default)s)")
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
        asked = dict(pile.split("=", 1) for pile in options.piles or [f"generated=--input {folder}/reviews.json"])
        more = [line for file in options.text for line in _lines(file)]
        for pile, how in asked.items():
            found = _compared(log, read_pile(how), more, folder, options)
            _tabulate(log, pile, found)
            record[pile] = {
                model: {start: [run._asdict() for run in runs] for start, runs in of_model.items()}
                for model, of_model in found.items()
            }
    log.keep({"options": vars(options), "runs": record})


def _lines(address: str) -> list[list[str]]:
    """The words of each line of a file, by rule 1b."""
    lines = b"".join(open_blocks(address)).decode(errors="replace").split("\n")
    return [found for line in lines if (found := tokens(line))]


def _compared(
    log: Log, pile: Pile, more: Sequence[Sequence[str]], folder: Path, options: argparse.Namespace
) -> dict[str, dict[str, list[_Run]]]:
    """The runs of each model from each start, one for each seed."""
    found: dict[str, dict[str, list[_Run]]] = {model: {} for model in options.models}
    for seed in range(options.seeds):
        made = folder / "made"
        parts = make_parts(pile, made, seed=seed)
        (whole,) = made.glob("texts-*/dataset.h5")
        data = cut(whole, made / "rows.h5", options.words)
        began = time.monotonic()
        _write_vectors(made / _VECTORS, parts.learnt, more, size=options.size, seed=seed)
        log.say(f"{seed}: gensim took {time.monotonic() - began:.1f} s for {len(parts.learnt):,} rows and other text")
        starts = {
            _RANDOM: (),
            _AS_LONG: (f"--embedding={options.size}",),
            _LEARNT: (f"--embeddings={made / _VECTORS}",),
        }
        for model, runs in found.items():
            for start, given in starts.items():
                run = _trained(
                    data, made, f"--model={model}", f"--seed={seed}", f"--train-share={options.labelled}", *given
                )
                runs.setdefault(start, []).append(run)
                log.say(f"{seed}, {model}, {start}: {run}")
        shutil.rmtree(made)
    return found


def _write_vectors(
    path: Path, examples: Sequence[Example], more: Sequence[Sequence[str]], *, size: int, seed: int
) -> None:
    from gensim.models import Word2Vec

    lines = [*(example.text.split(" ") for example in examples), *more]
    model = Word2Vec(lines, sg=1, vector_size=size, window=5, negative=5, min_count=2, epochs=5, workers=1, seed=seed)
    model.wv.save_word2vec_format(str(path), binary=True)


def _trained(data: Path, folder: Path, *options: str) -> _Run:
    asked = [f"--data={data}", f"--output={folder / 'model'}", "--threads=1", "--force", *options]
    with Bars() as bars:
        found = train_locally(parse_arguments(asked), ranks=1, bars=bars)
    return _Run(found["accuracy"], found["macro_f1"], found["times"]["training"])


def _tabulate(log: Log, pile: str, found: Mapping[str, Mapping[str, Sequence[_Run]]]) -> None:
    rows = [
        [
            model,
            start,
            *(cell for at in range(2) for cell in _cells(runs, of_model[_LEARNT], at, against=start != _LEARNT)),
            spread([run.seconds for run in runs], 1),
        ]
        for model, of_model in found.items()
        for start, runs in of_model.items()
    ]
    heads = ["accuracy", "learnt before, less this", "macro-F1", "learnt before, less this", "s"]
    log.table([pile, "vectors", *heads], rows)


def _cells(runs: Sequence[_Run], learnt: Sequence[_Run], at: int, *, against: bool) -> tuple[str, str]:
    ours, theirs = [run[at] for run in learnt], [run[at] for run in runs]
    return spread(theirs, 4), difference(ours, theirs) if against else ""
