"""Quality and cost of text classification by Shoal and other programs: equal rows, several seeds, interleaved.

    python -m benchmarks fasttext quality 'NAME=OPTIONS OF shoal preprocess'... [--seeds 5] [--cases CASE...]
        [--shoal 'CASE=OPTIONS OF shoal train'...]

NAME is a pile of texts, and OPTIONS are the options to read it, such as 'imdb=--input FILE --label-field label'. A pile
with --test-input keeps its test rows, and the seed changes the order and the initial weights. For any other pile each
seed splits off other test rows.

All programs learn from the same rows with the same words, without the rows that Shoal holds out. The accuracy on these
held-out rows chooses the settings of the other programs: the C++ program's rate, or all settings of its own search
(autotune). For logistic regression on TF-IDF of words and pairs it chooses regularisation and class weights. Each rank
and thread has one core. Columns:

- train, CPU s: for the C++ program, CPU time of the epochs without its dictionary. For Shoal, seconds of the training
  steps times ranks or threads; this is CPU time if no other program runs. For a search, the time of the whole search.
- train, s: wall time of the same.
- all, CPU s and all, s: for the C++ program, its training call, without the start of Python and without writing the
  model. For Shoal, the whole command `shoal train --input`, from the start of Python to the written model.
- log loss, calibration error: of the probabilities. The latter uses ten bins of the predicted class's probability.
- predict, CPU us and predict, us: microseconds a text, for one call that labels all test texts with one thread and the
  model in memory.
"""

import argparse
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.fasttext import program, regression, shoal
from benchmarks.fasttext.piles import Parts, Pile, make_parts, read_pile, write_examples
from benchmarks.fasttext.program import Cost, classify, evaluate, timed
from benchmarks.fasttext.regression import Predict, Probabilities
from benchmarks.record import Log, difference, ratio, spread
from shoal.demo.reviews import write_reviews
from trainer.classification.labelling import Labeller
from trainer.classification.model_folder import load_model
from trainer.output.run_files import MODEL

_GENERATED = 8_000
_MEASURES = ("accuracy", "macro_f1", "log_loss", "calibration_error")
_COSTS = ("train_cpu", "train_wall", "all_cpu", "all_wall", "predict_cpu", "predict_wall")
_HEADERS = (
    *("accuracy", "macro-F1", "log loss", "calibration error"),
    *("train, CPU s", "train, s", "all, CPU s", "all, s", "predict, CPU us", "predict, us"),
)

Figures = dict[str, float]


class _Program(NamedTuple):
    settings: Mapping[str, Any]
    rates: tuple[float, ...] = (0.1,)
    """Rates to choose from, by the accuracy on the held-out rows."""


_Case = _Program | shoal.Case | Literal["autotune"] | Callable[[Parts], Predict]

CASES: Mapping[str, _Case] = {
    "fastText, 1 thread": _Program({"thread": 1}),
    "fastText, 2 threads": _Program({"thread": 2}),
    "fastText, best rate": _Program({"thread": 1}, rates=(0.1, 0.5, 1.0)),
    "Shoal, --preset fasttext": shoal.Case(("--preset=fasttext",)),
    "Shoal, --preset fasttext, 2 ranks": shoal.Case(("--preset=fasttext",), ranks=2),
    "Shoal, --model fasttext": shoal.Case(("--model=fasttext",)),
    "Shoal, --model fasttext, 2 ranks": shoal.Case(("--model=fasttext",), ranks=2),
    "Shoal, --model fasttext, 2 threads": shoal.Case(("--model=fasttext",), threads=2),
    "Shoal": shoal.Case(()),
    "fastText, autotune": "autotune",
    "TF-IDF, logistic regression": regression.tfidf,
}
_USUAL = tuple(CASES)[:8]
_BASELINE = "fastText, 1 thread"


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fasttext quality", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "piles",
        nargs="*",
        metavar="NAME=OPTIONS",
        help=f"texts, with options of shoal preprocess to read them (default: {_GENERATED:,} generated texts)",
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=tuple(CASES),
        default=_USUAL,
        metavar="CASE",
        help=f"some of: {'; '.join(CASES)} (default: the first {len(_USUAL)})",
    )
    parser.add_argument(
        "--shoal", nargs="+", default=[], metavar="CASE=OPTIONS", help="more cases, with options of shoal train"
    )
    parser.add_argument(
        "--autotune-seconds", type=int, default=60, help="time of fastText's autotune (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if wrong := [each for each in (*options.piles, *options.shoal) if not all(each.partition("="))]:
        parser.error(f"{wrong[0]} is not NAME=OPTIONS")
    given = dict(each.split("=", 1) for each in options.shoal)
    chosen = {case: CASES[case] for case in options.cases}
    cases = {**{case: shoal.Case(tuple(shlex.split(text))) for case, text in given.items()}, **chosen}
    log = Log("fasttext-quality")
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not options.piles:
            write_reviews(folder / "reviews.json", texts=_GENERATED)
        pile_options = dict(
            pile.split("=", 1) for pile in options.piles or [f"generated=--input {folder}/reviews.json"]
        )
        piles = {pile: read_pile(how) for pile, how in pile_options.items()}
        _warm_up(next(iter(piles.values())), folder)
        found = {pile: _compared(log, pile, texts, folder, cases, options) for pile, texts in piles.items()}
    for pile, runs in found.items():
        _tabulate(log, pile, runs)
    log.keep({"options": vars(options), "runs": found})


def _warm_up(pile: Pile, folder: Path) -> None:
    """Fill the caches of compiled code."""
    few = pile.learned[:: 1 + len(pile.learned) // 1000]  # evenly, because the texts may be sorted by class
    _shoal(shoal.Case(("--preset=fasttext",)), make_parts(Pile(few, few, 0.0), folder / "few", seed=0), folder, seed=0)


def _compared(
    log: Log, name: str, pile: Pile, folder: Path, cases: Mapping[str, _Case], options: argparse.Namespace
) -> dict[str, list[Figures]]:
    """Return the figures of each case, one for each seed."""
    found: dict[str, list[Figures]] = {case: [] for case in cases}
    for seed in range(options.seeds):
        parts = make_parts(pile, folder / f"{name}-{seed}", seed=seed)
        for case, runs in found.items():
            runs.append(_run(cases[case], parts, folder, seed=seed, seconds=options.autotune_seconds))
            log.say(f"{name}, {seed}, {case}: { {figure: round(value, 4) for figure, value in runs[-1].items()} }")
        shutil.rmtree(parts.train.parent)
    return found


def _run(case: _Case, parts: Parts, folder: Path, *, seed: int, seconds: int) -> Figures:
    if isinstance(case, shoal.Case):
        return _shoal(case, parts, folder, seed)
    if callable(case):
        predict, cost = timed(lambda: case(parts))
        return {**_costs(cost, cost), **evaluate(predict, parts.tested)}
    file = write_examples(folder / "learned.txt", parts.learned)
    if case == "autotune":
        held_out = write_examples(folder / "held_out.txt", parts.held_out)
        tuned = program.tune(file, held_out, seconds, thread=1, seed=seed)
        return {**_costs(tuned.epochs, tuned.call), **classify(tuned.model, parts.tested)}
    trained = [program.train(file, **case.settings, lr=rate, seed=seed) for rate in case.rates]
    best = max(trained, key=lambda each: classify(each.model, parts.held_out)["accuracy"])
    return {**_costs(best.epochs, best.call), **classify(best.model, parts.tested)}


def _shoal(case: shoal.Case, parts: Parts, folder: Path, seed: int) -> Figures:
    cache = folder / "cache"  # deleted after each run, because reading is part of the command
    summary, usage = shoal.train(
        folder / "model",
        *(f"--input={parts.train}", f"--test-input={parts.test}", f"--cache={cache}", f"--seed={seed}"),
        *case.arguments,
    )
    shutil.rmtree(cache)
    labeller = Labeller(load_model(folder / "model"), expected=1 << 40)

    def predict(texts: Sequence[str]) -> Probabilities:
        return np.array([each.probability for each in labeller(texts)])

    predict([parts.tested[0].text])
    seconds = summary["times"]["training"]
    costs = _costs(Cost(case.ranks * case.threads * seconds, seconds), Cost(usage.cpu, usage.wall))
    size = sum(each.stat().st_size for each in (folder / "model" / MODEL).iterdir())
    threshold = summary["threshold"]
    return {**costs, "megabytes": size / 1e6, **evaluate(predict, parts.tested, threshold)}


def _costs(epochs: Cost, whole: Cost) -> Figures:
    return {"train_cpu": epochs.cpu, "train_wall": epochs.wall, "all_cpu": whole.cpu, "all_wall": whole.wall}


def _tabulate(log: Log, name: str, found: Mapping[str, Sequence[Figures]]) -> None:
    """Print the figures of all cases, and their differences from the C++ program with its own settings."""
    majority = mean(run["majority"] for run in next(iter(found.values())))
    rows = [
        [
            case,
            *(spread([run[measure] for run in runs], 4) for measure in _MEASURES),
            *(spread([run[cost] for run in runs], 2) for cost in _COSTS),
        ]
        for case, runs in found.items()
    ]
    log.table([f"{name} (majority {majority:.1%})", *_HEADERS], rows)
    if _BASELINE not in found:
        return
    rows = [
        [
            case,
            *(difference([run[each] for run in runs], [run[each] for run in found[_BASELINE]]) for each in _MEASURES),
            *(ratio([run[cost] for run in runs], [run[cost] for run in found[_BASELINE]]) for cost in _COSTS),
        ]
        for case, runs in found.items()
        if case != _BASELINE
    ]
    log.table([f"{name}: less {_BASELINE}, or divided by it", *_HEADERS], rows)
