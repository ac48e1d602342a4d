"""Slow implementation of docs/reference/dataset.md, which every runner must equal. It shares no code with `corpus`.

Lines are read in `oracle_lines.py`; its names are also exported here.
"""

import html
import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from unicodedata import category

import numpy as np

from tests.oracle_lines import PAIRS, File, Malformed, Rules, outcomes, rating_of, review

_ORDER_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

__all__ = [
    "File",
    "Malformed",
    "Rules",
    "cleaned_words",
    "dataset",
    "outcomes",
    "rating_of",
    "review",
    "tokens",
]

EXTRA_STOPWORDS = {"product", "would", "get"}
_STOPWORDS = {
    *(Path(__file__).parents[1] / "corpus" / "stopwords_nltk_english.txt").read_text().split(),
    *EXTRA_STOPWORDS,
}


def cleaned_words(text: str) -> list[str]:
    try:
        text = html.unescape(text)
    except ValueError:  # of a number with more digits than Python parses
        text = html.unescape(re.sub("&#[0-9]{4301,}", "&#xfffd;", text))
    text = text.replace("\u2019", "'").lower()
    spaced = "".join(letter if letter in "abcdefghijklmnopqrstuvwxyz'" else " " for letter in text)
    return [word.strip("'") for word in spaced.split() if word.strip("'")]


def tokens(text: str) -> list[str]:
    text = "".join(" " if letter.isspace() and not letter.isascii() else letter for letter in text.lower())
    text = text.replace('"', "").replace("<br />", " ")
    for mark in "'.,()!?":
        text = text.replace(mark, f" {mark} ")
    for space in ";:\t\n\v\f\r\0":
        text = text.replace(space, " ")
    return [word for word in text.split(" ") if word]


def shown(word: str) -> str:
    breaks, controls = ("Zl", "Zp"), ("Cc", "Cs")
    text = ""
    for letter in word:
        if category(letter) in breaks or (category(letter) in controls and letter.isspace()):
            text += " "
        else:
            text += "?" if category(letter) in controls or letter in _ORDER_MARKS + "\ufffe\uffff" else letter
    return text


def positive_values(seen: set, rules: Rules, positive_from: int) -> set:
    """Return the positive ones of the ratings or labels that occur."""
    if not rules.labelled:
        return {value for value in seen if value >= positive_from}
    pairs = [pair for pair in PAIRS if seen <= set(pair)]
    if len(pairs) != 1:
        raise ValueError(f"the labels {sorted(seen)} are no pair")
    return seen & {pairs[0][1]}


def _informative(word):
    """Return whether a word is neither a stopword nor punctuation."""
    return word not in _STOPWORDS and any(letter.isalnum() for letter in word)


def dataset(
    files,
    nltk_words: set[str] | None,
    vocabulary_size=10_000,
    row_length=100,
    test_share=0.10,
    *,
    positive_from=4,
    rules=Rules(),  # noqa: B008
    test_input=False,
):
    """Return (arrays by path, vocabulary, counts) of `File`s, or of contents in SNAP's format.

    Without NLTK's words, no word is removed.
    """
    stopwords = nltk_words | EXTRA_STOPWORDS if nltk_words is not None else set()
    clean = {"letters": cleaned_words, "tokens": tokens}[rules.words]
    ragged, duplicates = rules.ragged, rules.duplicates
    rules.other_labels.clear()
    counts = Counter()
    reasons = Counter()
    before = Counter()
    values: dict[bytes, Counter] = {}
    cleaned: dict[bytes, list[str]] = {}
    in_test_files = set()
    texts = []  # (digest, value, whether it is in a file of test texts)
    for file in files:
        file = file if isinstance(file, File) else File(file)
        for _, found in outcomes(file, rules):
            counts["lines"] += 1
            if isinstance(found, str):
                counts["malformed"] += 1
                reasons[found] += 1
                continue
            text, value = found
            text_words = clean(text)
            if not text_words:
                counts["empty"] += 1
                continue
            counts["texts"] += 1
            before[value] += 1
            digest = blake2b(" ".join(text_words).encode(), digest_size=16).digest()
            values.setdefault(digest, Counter())[value] += 1
            cleaned[digest] = text_words
            texts.append((digest, value, file.test))
            if file.test:
                in_test_files.add(digest)
    if not duplicates:
        rank = {name: number for number, name in enumerate(rules.classes)}
        mode = {
            d: min((v for v in tally if tally[v] == max(tally.values())), key=lambda v: rank.get(v, v))
            for d, tally in values.items()
        }
        texts = [(digest, value, digest in in_test_files) for digest, value in mode.items()]
    if not test_input:
        texts = [(d, value, int.from_bytes(d[:8], "big") < 2**64 * test_share) for d, value, _ in texts]
    if rules.classes:
        classes = rules.classes
        label = {name: number for number, name in enumerate(classes)}
    else:
        positive = positive_values(set(before), rules, positive_from)
        classes, label = ["negative", "positive"], {value: int(value in positive) for value in before}
    kept = {digest: [word for word in text if word not in stopwords] for digest, text in cleaned.items()}
    frequency = Counter(word for digest, _, in_test in texts if not in_test for word in kept[digest])
    vocabulary = sorted(frequency, key=lambda word: (-frequency[word], word))[:vocabulary_size]
    ids = {word: index + 2 for index, word in enumerate(vocabulary)}
    token_type = np.uint16 if vocabulary_size + 2 <= 65_536 else np.uint32
    label_type = np.uint16 if len(classes) > 256 else np.uint8
    arrays = {}
    for split, test in (("train", False), ("test", True)):
        chosen = sorted((d, label[value], value) for d, value, in_test in texts if in_test == test and kept[d])
        rows = [[ids.get(word, 1) for word in kept[d][: None if ragged else row_length]] for d, _, _ in chosen]
        lengths = [len(row) for row in rows]
        if ragged:
            arrays[f"{split}/tokens"] = np.array([number for row in rows for number in row], token_type)
            arrays[f"{split}/ends"] = np.cumsum(lengths, dtype=np.int64)
        else:
            padded = [row + [0] * (row_length - len(row)) for row in rows]
            arrays[f"{split}/tokens"] = np.array(padded, token_type).reshape(-1, row_length)
            arrays[f"{split}/lengths"] = np.array(lengths, np.uint16)
        arrays[f"{split}/labels"] = np.array([number for _, number, _ in chosen], label_type)
        arrays[f"{split}/ratings"] = np.array([0 if rules.labelled else value for _, _, value in chosen], np.uint8)
        counts[split] = len(chosen)
        if not rules.classes:
            counts[f"positive_{split}"] = int(arrays[f"{split}/labels"].sum())
        counts["tokens"] += sum(lengths)
        counts["unknown_tokens"] += sum(row.count(1) for row in rows)
    after = Counter(value for _, value, _ in texts)
    low, high = rules.rating_range
    stars = [] if rules.labelled else range(low, high + 1)
    long = [len(kept[digest]) for digest, _, _ in texts if kept[digest]]
    names = (
        "lines",
        "malformed",
        "empty",
        "texts",
        "train",
        "test",
        *(() if rules.classes else ("positive_train", "positive_test")),
    )
    return (
        arrays,
        vocabulary,
        {
            **{name: counts[name] for name in (*names, "tokens", "unknown_tokens")},
            **({"other_labels": dict(rules.other_labels)} if rules.other_labels else {}),
            "malformed_by_reason": {reason: reasons[reason] for reason in reasons},
            "distinct": len(texts),
            "conflicting": 0 if duplicates else sum(len(tally) > 1 for tally in values.values()),
            "wordless": sum(not kept[digest] for digest, _, _ in texts),
            "ratings": {
                "before": {str(rating): before[rating] for rating in stars},
                "after": {str(rating): after[rating] for rating in stars},
            },
            "labels": {
                when: {
                    str(number): sum(found[value] for value in found if label[value] == number)
                    for number in range(len(classes))
                }
                for when, found in (("before", before), ("after", after))
            },
            "lengths": {
                str(least): sum(least <= length < 2 * least or length >= least == 8192 for length in long)
                for least in (2**power for power in range(14))
            },
            "cut": 0 if ragged else sum(length > row_length for length in long),
            "frequent_words": [[shown(word), frequency[word]] for word in vocabulary if _informative(word)][:20],
        },
    )
