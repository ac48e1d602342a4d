"""What models of words learn in each mode, by default, from a finite and from an unbounded stream.

    python -m benchmarks embeddings sources [TEXT...] [--similarity FILE...] [--models skipgram] [--ranks 1 2]
    python -m benchmarks embeddings sources [TEXT...] --sources finite --ranks 1 2 4 8 --local-steps 5 20

The endless source is a file that is followed. A run on it has the defaults of text without an end, and ends after
--share of the file's words: so it learns from each word once, where a finite text has several epochs. The loss is that
of pairs in rows that are held out; a model that knows nothing has 4.16.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.embeddings.texts import Text, add_options, judging_options, write_texts
from benchmarks.fasttext import shoal
from benchmarks.fasttext.quality import spread
from benchmarks.record import Log

SOURCES = ("finite", "endless")
MODES = ("sync", "average", "async")

Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings sources", description=__doc__.partition("\n")[0]
    )
    add_options(parser)
    parser.add_argument(
        "--models", nargs="+", choices=("skipgram", "char-lstm"), default=("skipgram",), help="(default: skipgram)"
    )
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=SOURCES, help="(default: both)")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="(default: all)")
    parser.add_argument("--ranks", type=int, nargs="+", default=(1, 2), help="on this machine (default: 1 2)")
    parser.add_argument(
        "--local-steps", type=int, nargs="+", default=(20,), metavar="K", help="of average and async (default: 20)"
    )
    parser.add_argument("--seeds", type=int, default=2, help="runs of each way (default: %(default)s)")
    parser.add_argument(
        "--share", type=float, default=0.95, help="of an endless source's words, to end after (default: %(default)s)"
    )
    parser.add_argument("--size", type=int, default=100, help="dimensions of a vector (default: %(default)s)")
    parser.add_argument("--log", default="embeddings-sources", help="name of the record (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log(options.log)
    found: dict[str, dict[str, list[Figures]]] = {}
    with TemporaryDirectory() as name:
        for text_name, text in write_texts(options, Path(name)).items():
            ways = dict(_ways(options, text))
            runs: dict[str, list[Figures]] = {way: [] for way in ways}
            for seed in range(options.seeds):
                for way, asked in ways.items():
                    runs[way].append(_trained(Path(name) / "model", [*asked, f"--seed={seed}"], options))
                    log.say(f"{text_name}, {seed}, {way}: {runs[way][-1]}")
            _tabulate(log, text_name, runs)
            found[text_name] = runs
    log.keep({"options": vars(options), "runs": found})


def _ways(options: argparse.Namespace, text: Text) -> Iterator[tuple[str, list[str]]]:
    """What is compared, as options of `shoal train`: the modes that a model has; one rank has nobody to meet."""
    follow = ["--follow", f"--words={int(options.share * text.words)}", "--schedule=constant"]
    apart = [f"{mode}:{steps}" for mode in options.modes if mode != "sync" for steps in options.local_steps]
    together = ["sync"] if "sync" in options.modes else []
    for source in options.sources:
        for model in options.models:
            for ranks in options.ranks:
                for mode in ["sync"] if ranks == 1 else [*together, *(apart if model == "skipgram" else ())]:
                    yield (
                        f"{source}, {model}, {mode}, ranks: {ranks}",
                        [
                            *(f"--model={model}", f"--mode={mode}", f"--nodes={ranks}"),
                            *(f"--input={text.path}", *(follow if source == "endless" else ())),
                        ],
                    )


def _trained(output: Path, asked: Sequence[str], options: argparse.Namespace) -> Figures:
    summary = shoal.train(
        output,
        *("--tokeniser=spaces", "--threads=1", f"--embedding={options.size}", *judging_options(options), *asked),
        verb="embed",
    ).summary
    names = ("loss", "similarity")
    return {name: float(summary[name]) for name in names if summary.get(name) is not None}


def _tabulate(log: Log, text: str, runs: Mapping[str, Sequence[Figures]]) -> None:
    names = list(next(iter(runs.values()))[0])
    log.table(
        [text, *(name.replace("_", " ") for name in names)],
        [[way, *(spread([run[name] for run in of_way], 3) for name in names)] for way, of_way in runs.items()],
    )
