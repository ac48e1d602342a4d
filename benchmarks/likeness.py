"""How similar generated reviews are to real ones: the same statistics of both, side by side.

    python -m benchmarks.likeness [FILE...]

Without files: 40 MB of generated reviews, and the real ones that the tests use. Most statistics are of single lines.
The distinct words of the first million show how the dictionary grows with the input.
"""

import argparse
import gzip
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from tabulate import tabulate

from benchmarks.generated import write_reviews
from benchmarks.real_reviews import REVIEWS
from corpus.text import load_stopwords, words

_SAMPLE_BYTES = 40_000_000
_SAMPLE_WORDS = 1_000_000


def likeness(lines: Iterable[bytes]) -> dict[str, float]:
    """The statistics of the sound lines among SNAP's lines, by name."""
    stopwords = load_stopwords()
    frequencies: Counter[str] = Counter()
    sizes, texts, cleaned = [], [], set()
    sampled: set[str] = set()
    counted = 0
    for line in lines:
        try:
            text = orjson.loads(line)["reviewText"]
        except (ValueError, KeyError, TypeError):
            continue
        if not isinstance(text, str):
            continue
        sizes.append(len(line))
        texts.append(text)
        found = words(text)
        cleaned.add(hash(" ".join(found)))
        frequencies.update(found)
        counted += len(found)
        if counted <= _SAMPLE_WORDS:
            sampled.update(found)
    lengths = np.array([len(text) for text in texts])
    logs = np.log(lengths[lengths > 0])
    return {
        "lines": len(texts),
        "mean bytes of a line": float(np.mean(sizes)),
        "mean characters of a text": float(lengths.mean()),
        "median": float(np.median(lengths)),
        "sd of log characters": float(logs.std()),
        "text in a line, %": 100 * float(lengths.sum()) / sum(sizes),
        "words in a text": counted / len(texts),
        "letters in a word": sum(len(word) * times for word, times in frequencies.items()) / counted,
        "words over 16 letters, per million": 1e6
        * sum(n for word, n in frequencies.items() if len(word) > 16)
        / counted,
        "kept words (no stopwords), %": 100
        * sum(n for word, n in frequencies.items() if word not in stopwords)
        / counted,
        "distinct words in the first million": len(sampled),
        "seen once, % of distinct": 100 * sum(n == 1 for n in frequencies.values()) / len(frequencies),
        "covered by the 10,000 most frequent, %": 100 * sum(n for _, n in frequencies.most_common(10_000)) / counted,
        "words with an apostrophe, %": 100 * sum(n for word, n in frequencies.items() if "'" in word) / counted,
        "texts with an entity or &, %": 100 * float(np.mean(["&" in text for text in texts])),
        "texts outside ASCII, %": 100 * float(np.mean([not text.isascii() for text in texts])),
        "duplicates, %": 100 * (1 - len(cleaned) / len(texts)),
    }


def _cell(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likeness", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="SNAP's JSON lines, plain or gzip")
    args = parser.parse_args()
    columns: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        sample = Path(folder) / "generated"
        if not args.files:
            write_reviews(sample, _SAMPLE_BYTES)
        for path in args.files or [sample, *REVIEWS]:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                columns[path.name.partition(".")[0]] = likeness(file)
    names = next(iter(columns.values()))
    rows = [[name, *(_cell(column[name]) for column in columns.values())] for name in names]
    sys.stdout.write(tabulate(rows, headers=["", *columns], tablefmt="github", disable_numparse=True) + "\n")


if __name__ == "__main__":
    main()
