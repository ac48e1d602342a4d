"""Skip-gram of Shoal and of gensim's word2vec: words per second, and quality of the vectors, at equal epochs.

    python -m benchmarks embeddings gensim [TEXT...] [--similarity FILE...] [--analogy FILE...] [--seeds 3]

Both learn from the same lines with the same words, window, negative samples, subsampling, minimum count and epochs. All
other settings are their defaults. Words per second are all words of the text, including omitted words, divided by the
seconds of learning. Reading, the vocabulary and evaluation do not count. gensim reads its file again in each epoch with
its compiled reader, which is its fastest way.

The same program evaluates both, on sets of similarity and analogies, and by the PIP loss. The PIP cosine does not
depend on the scale of the vectors.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.embeddings.texts import Text, add_options, write_texts
from benchmarks.fasttext import shoal
from benchmarks.record import Log, difference, ratio, spread
from corpus.stream.stream_settings import read_settings
from shoal.runs.sources.local_readers import FOLDER
from trainer.embeddings.evaluation import WordEvaluation, pip_reference
from trainer.embeddings.text_rows import read_rows
from trainer.embeddings.vectors import WordVectors, open_vectors
from trainer.output.run_files import MODEL

_SIZE, _WINDOW, _NEGATIVES, _SUBSAMPLE, _MIN_COUNT = 100, 5, 5, 1e-3, 5


CASES: Mapping[str, int | shoal.Case] = {
    "gensim, 1 worker": 1,
    "gensim, 2 workers": 2,
    "Shoal, 1 rank": shoal.Case(),
    "Shoal, 1 rank, 2 threads": shoal.Case(threads=2),
    "Shoal, 2 ranks, sync": shoal.Case(ranks=2),
    "Shoal, 2 ranks, average:20": shoal.Case(ranks=2, options=("--mode=average:20",)),
    "Shoal, 2 ranks, async:20": shoal.Case(ranks=2, options=("--mode=async:20",)),
}
"""Cases: the number of gensim's workers, or Shoal's options."""
_BASELINE = "gensim, 1 worker"
_FIGURES = ("words_per_second", "similarity", "analogy", "pip_cosine", "pip_loss")

Figures = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings gensim", description=__doc__.partition("\n")[0]
    )
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument(
        "--cases", nargs="+", choices=tuple(CASES), default=tuple(CASES), metavar="CASE", help=f"of: {'; '.join(CASES)}"
    )
    options = parser.parse_args(arguments)
    log = Log("embeddings-gensim")
    found: dict[str, dict[str, list[Figures]]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for text_name, text in write_texts(options, folder).items():
            text_runs = _Runs(text, folder / text_name, options)
            cases: dict[str, list[Figures]] = {case: [] for case in options.cases}
            for seed in range(options.seeds):
                for case, runs in cases.items():
                    runs.append(text_runs.run(CASES[case], seed))
                    log.say(f"{text_name}, {seed}, {case}: { {key: round(v, 4) for key, v in runs[-1].items()} }")
            found[text_name] = cases
            _tabulate(log, f"{text_name}, {text.words:,} words", cases)
    log.keep({"options": vars(options), "runs": found})


class _Runs:
    """Runs on one text."""

    def __init__(self, text: Text, folder: Path, options: argparse.Namespace) -> None:
        """Read the text, and fill the caches of compiled code."""
        self._text, self._folder, self._options = text, folder, options
        folder.mkdir()
        self._train(shoal.Case(), f"--input={text.path}", "--tokeniser=spaces", epochs=1, seed=0)
        self._stream = (folder / "model" / FOLDER).rename(folder / FOLDER)
        rows = read_rows(self._stream, read_settings(self._stream), min_count=_MIN_COUNT)
        self._words = rows.vocabulary.words
        reference = pip_reference(rows.tokens, words=len(self._words), window=_WINDOW, negatives=_NEGATIVES)
        self._evaluation = WordEvaluation(options.similarity, options.analogy, reference)

    def run(self, how: int | shoal.Case, seed: int) -> Figures:
        """Run a case, and return its figures."""
        if isinstance(how, int):
            return self._run_gensim(how, seed)
        summary = self._train(how, f"--data={self._stream}", epochs=self._options.epochs, seed=seed)
        read = summary["rows_seen"] * summary["words_a_row"]
        vectors = open_vectors(str(self._folder / "model" / MODEL))
        return {"words_per_second": read / summary["times"]["training"], **self._evaluate(vectors)}

    def _train(self, how: shoal.Case, *arguments: str, epochs: int, seed: int) -> Mapping[str, Any]:
        return shoal.train(
            self._folder / "model",
            *how.arguments,
            *arguments,
            *(f"--embedding={_SIZE}", f"--window={_WINDOW}", f"--negatives={_NEGATIVES}", f"--subsample={_SUBSAMPLE}"),
            *(f"--min-count={_MIN_COUNT}", f"--epochs={epochs}", f"--seed={seed}"),
            verb="embed",
        ).summary

    def _run_gensim(self, workers: int, seed: int) -> Figures:
        from gensim.models import Word2Vec  # in requirements-bench.txt

        model = Word2Vec(
            sg=1,
            vector_size=_SIZE,
            window=_WINDOW,
            negative=_NEGATIVES,
            sample=_SUBSAMPLE,
            min_count=_MIN_COUNT,
            workers=workers,
            seed=seed + 1,
        )
        model.build_vocab(corpus_file=str(self._text.path))
        began = time.perf_counter()
        model.train(
            corpus_file=str(self._text.path),
            total_words=model.corpus_total_words,
            total_examples=model.corpus_count,
            epochs=self._options.epochs,
        )
        seconds = time.perf_counter() - began
        figures = self._evaluate(WordVectors(model.wv.index_to_key, model.wv.vectors))
        return {"words_per_second": self._text.words * self._options.epochs / seconds, **figures}

    def _evaluate(self, vectors: WordVectors) -> Figures:
        """Return the measures of vectors, with the words of the text in order."""
        matrix = np.stack([vectors.matrix[vectors.numbers[word]] for word in self._words])
        found = self._evaluation.measures(WordVectors(self._words, matrix), analogy=True)
        known: Figures = {name: value for name, value in found.items() if value is not None}
        analogies = [value for name, value in known.items() if name.startswith("analogy")]
        return {**known, **({"analogy": mean(analogies)} if analogies else {})}


def _tabulate(log: Log, text: str, found: Mapping[str, Sequence[Figures]]) -> None:
    names = [name for name in _FIGURES if all(name in run for runs in found.values() for run in runs)]
    digits = {"words_per_second": 0, "pip_loss": 1}
    rows = [
        [case, *(spread([run[name] for run in runs], digits.get(name, 4)) for name in names)]
        for case, runs in found.items()
    ]
    log.table([text, *(name.replace("_", " ") for name in names)], rows)
    sets = [name for name in next(iter(found.values()))[0] if name.startswith(("similarity_", "analogy_"))]
    if sets:
        rows = [[case, *(spread([run[name] for run in runs], 3) for name in sets)] for case, runs in found.items()]
        log.table([text, *(name.partition("_")[2].replace("_", " ") for name in sets)], rows)
    if _BASELINE not in found:
        return
    baseline = found[_BASELINE]
    rows = [
        [
            case,
            ratio([run["words_per_second"] for run in runs], [run["words_per_second"] for run in baseline]),
            *(difference([run[name] for run in runs], [run[name] for run in baseline]) for name in names[1:]),
        ]
        for case, runs in found.items()
        if case != _BASELINE
    ]
    heads = ("words a second, divided", *(f"{name.replace('_', ' ')}, less" for name in names[1:]))
    log.table([f"{text}: compared with {_BASELINE}", *heads], rows)
