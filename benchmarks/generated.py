"""Generates large files of review-like lines, fast and from a seed, with the statistics of real reviews.

    python -m benchmarks.generated FILE --gb 1 [--seed 0]

The files have the properties that determine preprocessing time:

- lengths of texts (log-normal), and the share of a line that is text
- English word frequencies, with endless misspellings, so that the dictionary grows with the input
- a quarter of duplicates
- entities, apostrophes, letters outside ASCII, malformed lines

A file is a prefix of any longer file of the same seed. For speed, blocks of tokens are drawn from a table of 2^20
tokens (word, case and punctuation), in proportion to their frequency.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

LINES_A_BLOCK = 4096

_MEAN_TEXT = 944.0
_LOG_SD = 0.95
_BYTES_A_TOKEN = 5.35
_DUPLICATES = 0.27
_CONFLICTS = 0.04
_REPEATABLE = 50_000
_STOCK = 0.01
_MALFORMED = 0.001
_RATINGS = (1, 2, 3, 4, 5)
_RATING_SHARES = (0.08, 0.05, 0.08, 0.20, 0.59)

_SLOTS = 1 << 20
_WORDS = 40_000
# Zipf-Mandelbrot law, frequency ~ 1 / (rank + shift) ** exponent: for English's frequent words, which are the share
# _COMMON of all words, and for the others.
_COMMON = 0.61
_COMMON_LAW, _OTHERS_LAW = (2.0, 0.85), (30.0, 1.15)
_RARE = 0.006
_RARE_IDS = 1 << 34


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Most frequent English words, approximately in order.
_FREQUENT = _listed(
    "the and i a to it is of this for in that my with on you was but not have as are so be they at these or one them "
    "very like just from all if had great when has good can an me would we will what well use more up out really no "
    "there product do your get about than only some time don't after were their been because other it's much how "
    "which love too also don his she little even used then he who first could by bought any two work off made did her "
    "over better find am nice want does i'm make easy back got works now recommend most way need into still i've "
    "best price before few think put years go quality long doesn't didn't can't that's sure being know every never "
    "while through same bit old size right new wasn't own since look many day another buy where hard isn't down "
    "those again"
)
_ENTITIES = (
    b"&#34;",
    b"&quot;",
    b"&amp;",
    b"R&amp;B",
    b"&#34;wow&#34;",
    b"&lt;br /&gt;",
    b"isn&#39;t",
    b"AT&T",
    b"&eacute;",
)
_FOREIGN = tuple(
    token.encode()
    for token in (
        "caf\u00e9",
        "it\u2019s",
        "don\\u2019t",
        "\u201cnice\u201d",
        "na\\u00efve",
        "\u2014",
        "\u65e5\u672c",
        "\\ud83d\\ude00",
        "\u2026",
    )
)
_STOCK_TEXTS = (
    b"Works great!", b"Good product.", b"Love it", b"as expected", b"Five stars", b"nice", b"Great!!!", b"ok", b"...",
    b"It's ok, I guess", b"does the job", b"Very happy with it.", b"Not good", b"Perfect fit", b"good value", b"",
)  # fmt: skip
_BROKEN = (
    b'{"reviewText": "cut in the mid',
    b'{"overall": 5.0, "asin": "B000"}',
    b'{"reviewText": null, "overall": 4.0}',
    b'{"reviewText": "without a rating"}',
    b'{"reviewText": "rated too high", "overall": 11}',
    b'{"reviewText": "half a star", "overall": 3.5}',
    b'{"reviewText": "no number", "overall": NaN}',
    b'{"reviewText": "cr\xc3\xa8me br\xc3\xbbl\xc3\xa9e, caf\xc3", "overall": 4.0}',  # cut inside a letter
    b'["a list", 5]',
    b"not JSON at all",
)


def write_reviews(path: Path, size: int, seed: int = 0) -> None:
    """Write whole lines to `path`, in all `size` bytes or slightly more."""
    written = 0
    with path.open("wb") as file:
        for block in blocks(seed):
            if written + len(block) >= size:
                file.write(block[: block.index(b"\n", size - written - 1) + 1])
                return
            written += file.write(block)


def blocks(seed: int) -> Iterator[bytes]:
    """Yield blocks of LINES_A_BLOCK lines, without end."""
    random = np.random.default_rng(seed)
    table = _token_table(random)
    known: list[tuple[bytes, int]] = []  # texts that may be repeated, with their rating
    while True:
        texts, ratings = _texts(random, table)
        _repeat(random, texts, ratings, known)
        lines = _lines(random, texts, ratings)
        for place in np.flatnonzero(random.random(LINES_A_BLOCK) < _MALFORMED):
            lines[place] = _BROKEN[random.integers(len(_BROKEN))]
        yield b"\n".join(lines) + b"\n"


def _token_table(random: np.random.Generator) -> np.ndarray:
    """Return (_SLOTS,) bytes objects. The number of slots of a token is its frequency. None stands for a rare word."""
    words = [word.encode() for word in _FREQUENT]
    words += _misspellings(random, _WORDS - len(words))
    common, others = _zipf(len(_FREQUENT), *_COMMON_LAW), _zipf(len(words) - len(_FREQUENT), *_OTHERS_LAW)
    weights = np.concatenate([_COMMON * common, (1 - _COMMON) * others])
    rare = int(_RARE * _SLOTS)
    slots = np.floor(np.cumsum(weights) * (_SLOTS - rare)).astype(np.int64)
    of_slot = np.repeat(np.arange(len(words)), np.diff(slots, prepend=0))
    table = np.empty(_SLOTS, object)
    kinds = random.random(len(of_slot))
    for slot, (word, kind) in enumerate(zip(of_slot.tolist(), kinds.tolist(), strict=True)):
        table[slot] = _written(words[word], kind)
    return table


def _zipf(number: int, shift: float, exponent: float) -> np.ndarray:
    weights: np.ndarray = 1 / (np.arange(1, number + 1) + shift) ** exponent
    return np.asarray(weights / weights.sum())


def _written(word: bytes, kind: float) -> bytes:
    """Return a word with its case and punctuation in a text, chosen by `kind` from 0 to 1."""
    if kind < 0.82:
        return word
    if kind < 0.89:
        return word.capitalize()
    if kind < 0.90:
        return word.upper()
    return (
        word
        + (b",", b".", b".", b"!", b".  ", b";", b"...", b"'s", b")", b' \\"', b"?", b" -", b",", b".", b" 5")[
            int((kind - 0.90) * 150)
        ]
    )


_CONSONANTS = np.frombuffer(b"tnsrhldcmfpgwybvkxjqz", np.uint8)
_VOWELS = np.frombuffer(b"eaoiu", np.uint8)


def _misspellings(random: np.random.Generator, number: int) -> list[bytes]:
    """Return `number` different English-like words of 3 to 12 letters. Frequent words are shorter."""
    found: dict[bytes, None] = {}
    while len(found) < number:
        longest = 4 + min(6, len(found) // 400)
        letters = np.empty(12, np.uint8)
        letters[0::2] = _CONSONANTS[(random.random(6) ** 1.7 * 21).astype(int)]
        letters[1::2] = _VOWELS[random.integers(5, size=6)]
        found[letters.tobytes()[: random.integers(3, longest + 3)]] = None
    return list(found)


def _rare_words(random: np.random.Generator, number: int) -> list[bytes]:
    """Return words like misspellings, by a power law over so many words that new ones always occur."""
    ids = (_RARE_IDS ** random.random(number)).astype(np.uint64)
    mixed = ids * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    letters = ((mixed[:, None] >> np.arange(0, 60, 5, dtype=np.uint64)) & np.uint64(31)) % np.uint64(26) + np.uint64(97)
    lengths = 5 + (mixed >> np.uint64(60)).astype(np.int64) // 2
    found = [row.tobytes()[:length] for row, length in zip(letters.astype(np.uint8), lengths.tolist(), strict=True)]
    return [word * 2 if len(word) > 11 and word < b"h" else word for word in found]


def _texts(random: np.random.Generator, table: np.ndarray) -> tuple[list[bytes], list[int]]:
    """Return a block of texts, as between the quotes of JSON, and their ratings."""
    chars = random.lognormal(np.log(_MEAN_TEXT) - _LOG_SD**2 / 2, _LOG_SD, LINES_A_BLOCK)
    counts = np.maximum(1, (np.minimum(chars, 32_000) / _BYTES_A_TOKEN)).astype(np.int64)
    total = int(counts.sum())
    tokens = table[random.integers(_SLOTS, size=total)]
    rare = np.flatnonzero(tokens == None)  # noqa: E711
    tokens[rare] = _rare_words(random, len(rare))
    ends = np.cumsum(counts)
    for share, choices in ((0.12, _ENTITIES), (0.02, _FOREIGN)):
        for text in np.flatnonzero(random.random(LINES_A_BLOCK) < share):
            for place in random.integers(ends[text] - counts[text], ends[text], size=1 + counts[text] // 60):
                tokens[place] = choices[random.integers(len(choices))]
    drawn = tokens.tolist()
    texts, begin = [], 0
    for end in ends.tolist():
        texts.append(b" ".join(drawn[begin:end]))
        begin = end
    return texts, random.choice(_RATINGS, LINES_A_BLOCK, p=_RATING_SHARES).tolist()


def _repeat(
    random: np.random.Generator, texts: list[bytes], ratings: list[int], known: list[tuple[bytes, int]]
) -> None:
    """Replace a quarter of the new texts by earlier texts, and by some very common texts."""
    fate = random.random(LINES_A_BLOCK)
    conflicts = random.random(LINES_A_BLOCK) < _CONFLICTS
    for place in np.flatnonzero(fate < _DUPLICATES).tolist():
        if fate[place] < _STOCK:
            texts[place] = _STOCK_TEXTS[random.integers(len(_STOCK_TEXTS))]
        elif known:
            texts[place], rating = known[random.integers(len(known))]
            if not conflicts[place]:
                ratings[place] = rating
    for place in np.flatnonzero(fate > 1 - 1 / 8).tolist():
        if len(known) < _REPEATABLE:
            known.append((texts[place], ratings[place]))
        else:
            known[random.integers(_REPEATABLE)] = texts[place], ratings[place]


def _lines(random: np.random.Generator, texts: list[bytes], ratings: list[int]) -> list[bytes]:
    """Return a block of SNAP lines, with the fields and approximately the overhead of the files of 2014."""
    number = len(texts)
    reviewers = random.integers(1 << 48, size=number).tolist()
    items = random.integers(1 << 30, size=number).tolist()
    times = random.integers(9 * 10**8, 14 * 10**8, size=number).tolist()
    helpful = random.integers(12, size=number).tolist()
    return [
        b'{"reviewerID": "A%013X", "asin": "B%09X", "reviewerName": "Reviewer Number %d \\"the one\\"", '
        b'"helpful": [%d, %d], "reviewText": "%s", '
        b'"overall": %d.0, "summary": "%s", "unixReviewTime": %d, "reviewTime": "%02d %d, 20%02d"}'
        % (who, what, who % 9973, votes, votes, text, rating, _STOCK_TEXTS[votes], when,
           1 + votes, 1 + votes, votes)
        for who, what, when, votes, text, rating in zip(reviewers, items, times, helpful, texts, ratings, strict=True)
    ]  # fmt: skip


def main() -> None:
    """Write the file that the command line describes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.generated", description="Write a file of generated reviews."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--gb", type=float, default=1, help="size in GB of 10^9 bytes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    write_reviews(args.file, int(args.gb * 1e9), args.seed)


if __name__ == "__main__":
    main()
