"""Mutated lines of every format through the fast readers and the tokeniser, against the oracle and the plain functions.

    python -m tests.corpus.reading.fuzz [--seed N] [--lines N]

A seed always makes the same lines. What differs is narrowed down to the fewest lines that still do, and printed.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from corpus.reading.formats import LABELS, Codes
from corpus.reading.ranges import read_batches
from corpus.reading.sources import Range
from corpus.reading.tally import Tally
from corpus.text import digest, load_stopwords, words
from corpus.tokenise import Tokeniser
from tests import oracle
from tests.corpus.reading.accidents import KINDS, Kind, content_of

BLOCK_LINES = 1_000
# What the oracle adds to the stack must not decide which depth of nesting is malformed.
sys.setrecursionlimit(3_000)


class DifferenceError(Exception):
    """What the fast and the plain way make of the same content."""


def expected(kind: Kind, content: bytes) -> tuple[list[tuple[str, int]], Counter[str], dict[str, list[int]]]:
    """The oracle's reviews, its malformed lines by reason, and the first three lines of each."""
    reviews, reasons, places = [], Counter[str](), dict[str, list[int]]()
    for number, found in oracle.outcomes(replace(kind.file, content=content), kind.rules):
        if isinstance(found, str):
            reasons[found] += 1
            places.setdefault(found, []).append(number)
            continue
        text, said = found
        known = kind.settings.labelled and kind.settings.positive_label is None and kind.code is None
        reviews.append((text, LABELS.index(said) if known else int(said)))
    return reviews, reasons, {reason: numbers[:3] for reason, numbers in places.items()}


def check_reading(kind: Kind, content: bytes, path: Path, chance: random.Random) -> list[str]:
    """Read the content, cut anywhere, by the fast readers; returns the texts. Raises DifferenceError."""
    path.write_bytes(content)
    edges = [0, len(content)]
    if kind.form.kind != "csv":
        edges = sorted({*edges, *(chance.randrange(len(content) + 1) for _ in range(chance.randrange(4)))})
    ranges = [(0, -1)] if kind.form.kind == "csv" else list(pairwise(edges))
    tally, codes = Tally(), Codes(kind.settings)
    found = [
        review
        for start, end in ranges
        for batch in read_batches(Range(str(path), start, end, kind.form, kind.code, False), codes, tally)
        for review in zip(batch.texts, batch.codes, strict=True)
    ]
    reviews, reasons, places = expected(kind, content)
    if found != reviews:
        at = next(
            (n for n, (a, b) in enumerate(zip(found, reviews, strict=False)) if a != b), min(len(found), len(reviews))
        )
        raise DifferenceError(f"review {at}: {found[at : at + 1]} is not {reviews[at : at + 1]}")
    start = "malformed_by_reason."
    counted = {name.removeprefix(start): n for name, n in tally.counts.items() if name.startswith(start) and n}
    lines, malformed = len(reviews) + reasons.total(), reasons.total()
    if counted != reasons or (tally.counts["lines"], tally.counts["malformed"]) != (lines, malformed):
        raise DifferenceError(f"{tally.counts} is not {lines} lines, malformed {reasons}")
    listed: dict[str, list[int]] = {}
    for place in tally.malformed_lines():
        listed.setdefault(place.reason, []).append(place.line)
    if listed != places:
        raise DifferenceError(f"malformed at {listed}, not at {places}")
    return [text for text, _ in reviews]


def check_words(tokeniser: Tokeniser, texts: list[str], stopwords: frozenset[str]) -> None:
    """Turn the texts into ids and back. Raises DifferenceError."""
    found = tokeniser(texts)
    start = begin = 0
    for text, end, cleaned_end in zip(texts, found.ends.tolist(), found.cleaned_ends.tolist(), strict=True):
        plain = words(text)
        kept = [word for word in plain if word not in stopwords]
        ids = found.ids[start:end]
        back = tokeniser.join_words(ids).decode().split(" ") if len(ids) else []
        cleaned = bytes(found.cleaned[begin:cleaned_end])
        if back != kept or cleaned != "".join(f"{word} " for word in plain).encode():
            raise DifferenceError(f"{text!r}: words {back}, not {kept}; cleaned {cleaned!r}")
        if len(text) % 16 == 0 and plain != oracle.cleaned_words(text):
            raise DifferenceError(f"{text!r}: cleaned {plain}, not {oracle.cleaned_words(text)}")
        start, begin = end, cleaned_end
    if texts:
        first = bytes(found.cleaned[: found.cleaned_ends[0]]).removesuffix(b" ")
        if oracle.blake2b(first, digest_size=16).digest() != digest(words(texts[0])):
            raise DifferenceError(f"{texts[0]!r}: another digest")


def smallest(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Content of fewer lines, and then bytes, that still fails."""
    lines, size = content.split(b"\n"), 1 << 20
    while size:
        for at in range(0, len(lines), size):
            fewer = lines[:at] + lines[at + size :]
            if len(fewer) < len(lines) and fails(b"\n".join(fewer)):
                lines = fewer
                break
        else:
            size //= 2
    return b"\n".join(lines)


def fuzz(seed: int, lines: int, folder: Path) -> Iterator[int]:
    """Check so many lines of all kinds in turn; yields how many are done. Raises DifferenceError."""
    chance = random.Random(seed)
    stopwords = load_stopwords()
    tokeniser = Tokeniser(sorted(stopwords))
    done = number = 0
    while done < lines:
        name, kind = list(KINDS.items())[number % len(KINDS)]
        content = content_of(kind, chance, BLOCK_LINES)
        cuts = chance.randrange(1 << 30)

        def differs(content: bytes, kind: Kind = kind, cuts: int = cuts) -> bool:
            try:
                check_reading(kind, content, folder / "smaller", random.Random(cuts))
            except DifferenceError:
                return True
            return False

        try:
            texts = check_reading(kind, content, folder / "content", random.Random(cuts))
        except DifferenceError as found:
            fewest = smallest(content, differs)
            raise DifferenceError(f"seed {seed}, block {number}, {name}: {found}\n{fewest!r}") from None
        for at in range(0, len(texts), 256):
            check_words(tokeniser, texts[at : at + 256], stopwords)
        if len(tokeniser) > 200_000:
            tokeniser.clear()
        done += content.count(b"\n")
        number += 1
        yield done


def main() -> None:
    """Fuzz as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.reading.fuzz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, default=100_000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        done = 0
        for done in fuzz(options.seed, options.lines, Path(folder)):  # noqa: B007
            continue
    sys.stdout.write(f"seed {options.seed}: {done} lines, no difference\n")


if __name__ == "__main__":
    main()
