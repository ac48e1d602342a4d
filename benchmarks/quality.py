"""Whether the model classifies as well as fastText does: the same encoded rows, the same test rows, several seeds.

    python -m benchmarks quality NAME[:LABEL]=FILE[,FILE...]... [--seeds 5] [--own-split] [--ranks 1] [--option=...]

Each NAME is a pile of reviews that is preprocessed first; LABEL is the field of its labels, where it has several that
may be. fastText (Joulin et al. 2017), supervised and with single
words, gets the rows as texts of word ids: those that Shoal's model learns from, and the number of epochs and the rate
that do best on the rows held out, by which Shoal's own settings were chosen. Beside it, fastText on the cleaned texts
whole, without cutting, dropping stopwords or a vocabulary.

Each seed splits a pile's rows into those to learn from and those to test anew, as large as the dataset's own: a few
thousand test rows favour one model or the other by chance, by more than two good ones differ. `--own-split` keeps to
the dataset's own.
"""

import argparse
import itertools
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.record import Log
from benchmarks.rows import columns_of, write_parts
from bootstrap.generator import write_reviews
from bootstrap.progress import Bars
from bootstrap.train import train_here
from corpus.dataset import open_dataset
from corpus.formats import Codes
from corpus.settings import Settings
from corpus.text import digest, in_test_set, modal_rating, words
from jobs.pipeline import preprocess
from jobs.ranges import cut, read_batches
from jobs.sources import Inputs, Wanted
from jobs.tally import Tally
from jobs.understanding import understand
from trainer.config import parse
from trainer.data import Rows, load
from trainer.metrics import Confusion, measures

_GENERATED = 8_000
_EPOCHS, _RATES = (5, 25), (0.1, 0.5)
_MEASURES = ("accuracy", "f1_negative", "balanced_accuracy")

Example = tuple[str, int]
Parts = tuple[list[Example], list[Example], list[Example]]
"""To learn from, held out, to test."""
Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks quality", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME[:LABEL]=FILE[,FILE...]",
        help="reviews, as shoal preprocess takes them (default: 8,000 that are generated)",
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each model (default: %(default)s)")
    parser.add_argument(
        "--option", action="append", default=[], help="an option of shoal train, such as --option=--hidden=64"
    )
    parser.add_argument("--ranks", type=int, default=1, help="of Shoal (default: %(default)s)")
    parser.add_argument("--own-split", action="store_true", help="the dataset's own test rows with every seed")
    options = parser.parse_args(arguments)
    log = Log("quality")
    record: dict[str, dict[str, list[Figures]]] = {}
    for pile in options.piles or ["generated="]:
        name, _, files = pile.partition("=")
        name, _, label = name.partition(":")
        with TemporaryDirectory() as folder:
            if not options.piles:
                files = f"{folder}/reviews.json"
                write_reviews(Path(files), texts=_GENERATED)
            inputs = Inputs(files=tuple(files.split(",")), wanted=Wanted(label=label or None))
            made = preprocess(inputs, folder)
            data = load(Path(made.dataset))
            log.say(f"\n{name}: {len(data.training)} rows, {len(data.validation)} held out, {len(data.test)} to test")
            whole = _whole_texts(inputs)
            found: dict[str, list[Figures]] = {"shoal": [], "fastText, same rows": [], "fastText, whole texts": []}
            dataset, majority = Path(made.dataset), []
            for seed in range(options.seeds):
                if not options.own_split:
                    dataset = _split_anew(Path(made.dataset), Path(folder) / f"{seed}.h5", seed)
                    whole = _shuffled(whole, seed)
                    data = load(dataset)
                learnt, held_out, test = (_as_texts(rows) for rows in (data.training, data.validation, data.test))
                majority.append(max(np.bincount([label for _, label in test])) / len(test))
                found["shoal"].append(_shoal(dataset, Path(folder) / "model", seed, options))
                found["fastText, same rows"].append(_fasttext(Path(folder), learnt, held_out, test, seed))
                found["fastText, whole texts"].append(_fasttext(Path(folder), whole[0], whole[1], whole[2], seed))
        rows = []
        for model, runs in found.items():
            cells = [_spread([run[measure] for run in runs]) for measure in _MEASURES]
            rows.append([model, *cells, _spread([run["seconds"] for run in runs], 1)])
        log.table([f"{name} (majority {mean(majority):.1%})", *_MEASURES, "seconds"], rows)
        record[name] = found
    log.keep({"options": vars(options), "runs": record})


def _split_anew(path: Path, output: Path, seed: int) -> Path:
    """The rows of a dataset, dealt by chance into as many to learn from and to test as it has."""
    with open_dataset(path) as dataset:
        columns = columns_of([dataset.train, dataset.test])
        mixed, train = np.random.default_rng(seed).permutation(len(columns.lengths)), len(dataset.train)
        write_parts(output, dataset, columns, train=mixed[:train], test=mixed[train:])
    return output


def _shuffled(parts: Parts, seed: int) -> Parts:
    """Examples dealt by chance into parts of the same sizes."""
    everything = [example for part in parts for example in part]
    random.Random(seed).shuffle(everything)  # noqa: S311
    ends = list(itertools.accumulate(len(part) for part in parts))
    return everything[: ends[0]], everything[ends[0] : ends[1]], everything[ends[1] :]


def _shoal(dataset: Path, output: Path, seed: int, options: argparse.Namespace) -> Figures:
    config = parse(["--data", str(dataset), "--output", str(output), "--seed", str(seed), "--force", *options.option])
    start = time.perf_counter()
    with Bars() as bars:
        summary = train_here(config, ranks=options.ranks, bars=bars)
    return {**{measure: summary[measure] for measure in _MEASURES}, "seconds": time.perf_counter() - start}


def _fasttext(
    folder: Path, learnt: Sequence[Example], held_out: Sequence[Example], test: Sequence[Example], seed: int
) -> Figures:
    """The settings with the best accuracy on the rows held out, judged by the test rows."""
    import fasttext  # of requirements-bench.txt

    file = folder / "fasttext.txt"
    shuffled = random.Random(seed).sample(learnt, len(learnt))  # noqa: S311
    file.write_text("".join(f"__label__{label} {text}\n" for text, label in shuffled))
    start = time.perf_counter()
    models = [
        fasttext.train_supervised(str(file), epoch=epochs, lr=rate, dim=100, seed=seed, thread=1, verbose=0)
        for epochs, rate in itertools.product(_EPOCHS, _RATES)
    ]
    best = max(models, key=lambda model: _judged(model, held_out)["accuracy"])
    return {**_judged(best, test), "seconds": (time.perf_counter() - start) / len(models)}


def _judged(model: Any, examples: Sequence[Example]) -> Figures:
    said = [int(labels[0].removeprefix("__label__")) for labels in model.predict([text for text, _ in examples])[0]]
    kinds = np.bincount([2 * label + call for (_, label), call in zip(examples, said, strict=True)], minlength=4)
    true_negative, false_positive, false_negative, true_positive = (int(kind) for kind in kinds)
    found = measures(
        Confusion(
            true_positive=true_positive,
            false_positive=false_positive,
            false_negative=false_negative,
            true_negative=true_negative,
        )
    )
    return {measure: float(found[measure] or 0.0) for measure in _MEASURES}


def _as_texts(rows: Rows) -> list[Example]:
    """Rows as texts in which a word is its id."""
    return [
        (" ".join(map(str, tokens[:length].tolist())), int(label))
        for tokens, length, label in zip(rows.tokens, rows.lengths, rows.labels, strict=True)
    ]


def _whole_texts(inputs: Inputs) -> Parts:
    """The distinct cleaned texts of a pile: to learn from, held out (a twentieth), and to test."""
    understanding = understand(inputs)
    settings = understanding.settings(Settings())
    found: dict[bytes, tuple[str, dict[int, int]]] = {}
    for text, code in _reviews(inputs, settings):
        cleaned = words(text)
        if cleaned:
            _, codes = found.setdefault(digest(cleaned), (" ".join(cleaned), {}))
            codes[code] = codes.get(code, 0) + 1
    least = 1 if settings.labelled else settings.positive_from
    examples = [(key, (text, int(modal_rating(codes) >= least))) for key, (text, codes) in sorted(found.items())]
    learnt = [example for key, example in examples if not in_test_set(key, settings.test_share)]
    test = [example for key, example in examples if in_test_set(key, settings.test_share)]
    return learnt[len(learnt) // 20 :], learnt[: len(learnt) // 20], test


def _reviews(inputs: Inputs, settings: Settings) -> Iterator[tuple[str, int]]:
    tally, codes = Tally(), Codes(settings)
    parts: Iterable[Any] = itertools.chain.from_iterable(cut(understand(inputs).sources, 1))
    for part in parts:
        for batch in read_batches(part, codes, tally):
            yield from zip(batch.texts, batch.codes, strict=True)


def _spread(values: Sequence[float], digits: int = 3) -> str:
    return f"{mean(values):.{digits}f} ± {stdev(values) if len(values) > 1 else 0.0:.{digits}f}"


if __name__ == "__main__":
    main(sys.argv[1:])
