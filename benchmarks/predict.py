"""How many texts a second `shoal predict` labels on one core, with and without its start, beside the plain way.

    python -m benchmarks predict [NAME=FILE,...] [--texts 25000] [--runs 5]

The texts are generated reviews, short ones and long ones (eight in one), and the files that are named. The plain way is
`benchmarks/peers/plain_predict.py`. Both have the same untrained model of the default sizes, whose vocabulary are the
10,000 most frequent words of all the texts. Their answers are compared first. The start is the time of one text. Time
is CPU time, by the kernel's account. Do not run too few texts: most of the time would then be the start.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.meter import metered
from benchmarks.record import Log
from bootstrap.demo.reviews import write_reviews
from bootstrap.prediction.texts import find_text_files, read_text_files
from common.errors import ShoalError
from corpus.dataset_settings import Settings
from corpus.reading.sources import ReadingOptions
from corpus.reading.tally import Tally
from corpus.rules import most_frequent
from corpus.text import FIRST_WORD, load_stopwords, word_ids, words
from trainer.classification import models
from trainer.classification.losses import CROSS_ENTROPY, Loss, Scale
from trainer.classification.model_folder import write_model
from trainer.classification.trained_model import TrainedModel
from trainer.config import TrainConfig

WAYS: Mapping[str, Sequence[str]] = {
    "shoal": ("bootstrap.cli.main", "predict", "--model"),
    "plain": ("benchmarks.peers.plain_predict",),
}
"""Modules and their arguments, before the model and the files."""
_LONG = 8
_ROUNDING = 1.5e-4
_MEMORY, _SECONDS = 4 << 30, 3600.0


def main(arguments: Sequence[str]) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks predict", description=__doc__.partition("\n")[0])
    parser.add_argument("piles", nargs="*", metavar="NAME=FILE[,FILE...]", help="files of texts, beside generated ones")
    parser.add_argument("--texts", type=int, default=25_000, help="texts of each length (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    if wrong := [pile for pile in options.piles if not all(pile.partition("="))]:
        parser.error(f"{wrong[0]} is not NAME=FILE[,FILE...]")
    log = Log("predict")
    with TemporaryDirectory() as name, one_core():
        folder = Path(name)
        piles = {"generated, short": [f"{folder}/short.json"], "generated, long": [f"{folder}/long.json"]}
        write_texts(folder / "short.json", folder / "long.json", options.texts)
        for pile in options.piles:
            case, _, files = pile.partition("=")
            piles[case] = files.split(",")
        texts = {case: _texts(files) for case, files in piles.items()}
        write_untrained_model(folder / "model", texts.values())
        (folder / "one.txt").write_text("good lamp\n")
        piles["one text"] = [f"{folder}/one.txt"]
        for case, files in piles.items():  # compiles what is compiled once
            _check(case, [_seconds(way, folder, files)[1] for way in WAYS.values()])
        spent: dict[str, dict[str, list[float]]] = {case: {way: [] for way in WAYS} for case in piles}
        for run in range(options.runs):
            for case, files in piles.items():
                for way, command in WAYS.items():
                    spent[case][way].append(_seconds(command, folder, files)[0])
            last = {case: {way: round(each[-1], 2) for way, each in ways.items()} for case, ways in spent.items()}
            log.say(f"{run}: {last}")
    _report(log, spent, texts)
    log.keep({"options": vars(options), "texts": {case: len(each) for case, each in texts.items()}, "cpu": spent})


def write_texts(short: Path, long: Path, count: int) -> None:
    """Write `count` different texts to each of the files."""
    write_reviews(short, texts=count)
    texts = list(dict.fromkeys(_texts([str(short)])))
    several = zip(*(texts[number:] + texts[:number] for number in range(_LONG)), strict=True)
    for path, found in ((short, texts), (long, map(". ".join, several))):
        lines = (json.dumps({"reviewText": text, "overall": 5}) for text in islice(found, count))
        path.write_text("".join(f"{line}\n" for line in lines))


def write_untrained_model(folder: Path, texts: Iterable[Sequence[str]]) -> None:
    """Write an untrained model of the default sizes for these texts."""
    settings, stopwords = Settings(), load_stopwords()
    counts = Counter(word for some in texts for text in some for word in words(text) if word not in stopwords)
    vocabulary = [word for word, _ in most_frequent(counts.items(), settings.vocabulary_size)]
    loss = Loss(kind=CROSS_ENTROPY, scale=Scale(1, 5, 4), positive_weight=1.0)
    config = TrainConfig(data=Path(), output=Path())
    chosen = config.model_settings(config.model, words=len(vocabulary) + FIRST_WORD, outputs=loss.outputs)
    model = TrainedModel(
        name=config.model,
        settings=chosen,
        classifier=models.build(config.model, chosen),
        loss=loss,
        ids=word_ids(vocabulary),
        stopwords=stopwords,
        row_length=settings.row_length,
        about={},
    )
    write_model(folder, model)


def _texts(files: Sequence[str]) -> list[str]:
    return [
        text
        for batch in read_text_files(find_text_files(files, ReadingOptions(), Settings()), Tally())
        for text in batch.texts
    ]


@contextmanager
def one_core() -> Iterator[None]:
    """Run what is started inside this block on the last core alone."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _seconds(command: Sequence[str], folder: Path, files: Sequence[str]) -> tuple[float, list[list[str]]]:
    """Label some files; returns the CPU-seconds and the answers."""
    out = folder / "answers"
    arguments = [sys.executable, "-m", *command, str(folder / "model"), *files]
    usage = metered(arguments, out, memory_limit=_MEMORY, time_limit=_SECONDS)
    if usage.failed:
        raise ShoalError(f"{' '.join(arguments)} failed: {usage.failed}")
    lines = (line.split("\t") for line in out.read_text().split("\n"))
    return usage.cpu, [line for line in lines if len(line) == 3]


def _check(case: str, answers: Sequence[list[list[str]]]) -> None:
    """Raise ShoalError where the answers of the two ways differ; a last digit may be rounded either way."""
    for number, lines in enumerate(zip(*answers, strict=True), 1):
        labels, probabilities, texts = zip(*lines, strict=True)
        said = [float(probability) for probability in probabilities]
        if len(set(labels)) > 1 or len(set(texts)) > 1 or max(said) - min(said) > _ROUNDING:
            raise ShoalError(f"{case}, text {number}: answers differ: {lines}")


def _report(log: Log, spent: dict[str, dict[str, list[float]]], texts: Mapping[str, list[str]]) -> None:
    starts = {way: median(seconds) for way, seconds in spent["one text"].items()}
    rows = []
    for case, found in texts.items():
        middle = {way: median(seconds) for way, seconds in spent[case].items()}
        after = {way: seconds - starts[way] for way, seconds in middle.items()}
        runs = [plain / ours for ours, plain in zip(spent[case]["shoal"], spent[case]["plain"], strict=True)]
        rows.append(
            [
                *(case, f"{len(found):,}", f"{sum(map(len, found)) / len(found):,.0f}"),
                *(f"{len(found) / seconds:,.0f}" for seconds in (*middle.values(), *after.values())),
                f"{median(runs):.2f} ({min(runs):.2f} to {max(runs):.2f})",
                f"{after['plain'] / after['shoal']:.2f}",
            ]
        )
    log.say(f"Start, CPU-seconds: { {way: round(seconds, 2) for way, seconds in starts.items()} }")
    heads = (
        "texts",
        "number",
        "letters of a text",
        "shoal",
        "plain",
        "shoal, without the start",
        "plain, without the start",
        "ratio (of the runs)",
        "ratio without the start",
    )
    log.table(heads, rows)
