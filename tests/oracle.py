"""docs/dataset.md, word for word and slowly: what every runner's dataset has to equal. Shares no code with `corpus`.

Lines are read in `oracle_lines.py`, whose names are here, too.
"""

import html
import re
from collections import Counter
from hashlib import blake2b

import numpy as np

from tests.oracle_lines import PAIRS, File, Malformed, Rules, outcomes, rating_of, review

__all__ = ["File", "Malformed", "Rules", "cleaned_words", "dataset", "outcomes", "rating_of", "review"]

EXTRA_STOPWORDS = {"product", "would", "get"}


def cleaned_words(text: str) -> list[str]:
    try:
        text = html.unescape(text)
    except ValueError:  # of a number with more digits than Python reads
        text = html.unescape(re.sub("&#[0-9]{4301,}", "&#xfffd;", text))
    text = text.replace("\u2019", "'").lower()
    spaced = "".join(letter if letter in "abcdefghijklmnopqrstuvwxyz'" else " " for letter in text)
    return [word.strip("'") for word in spaced.split() if word.strip("'")]


def positive_values(seen: set, rules: Rules, positive_from: int) -> set:
    """Which of the ratings or labels that occur are positive."""
    if not rules.labelled:
        return {value for value in seen if value >= positive_from}
    pairs = [pair for pair in PAIRS if seen <= set(pair)]
    if len(pairs) != 1:
        raise ValueError(f"the labels {sorted(seen)} are no pair")
    return seen & {pairs[0][1]}


def dataset(
    files,
    nltk_words: set[str],
    vocabulary_size=10_000,
    row_length=100,
    test_share=0.10,
    *,
    positive_from=4,
    rules=Rules(),  # noqa: B008
    test_input=False,
):
    """(arrays by path, vocabulary, counts) of some files: `File`s, or the contents of SNAP's."""
    stopwords = nltk_words | EXTRA_STOPWORDS
    counts = Counter()
    reasons = Counter()
    before = Counter()
    values: dict[bytes, Counter] = {}
    words: dict[bytes, list[str]] = {}
    in_test_files = set()
    for file in files:
        file = file if isinstance(file, File) else File(file)
        counts["damaged_files"] += file.broken
        for _, found in outcomes(file, rules):
            counts["lines"] += 1
            if isinstance(found, str):
                counts["malformed"] += 1
                reasons[found] += 1
                continue
            text, value = found
            cleaned = cleaned_words(text)
            if not cleaned:
                counts["empty"] += 1
                continue
            counts["texts"] += 1
            before[value] += 1
            digest = blake2b(" ".join(cleaned).encode(), digest_size=16).digest()
            values.setdefault(digest, Counter())[value] += 1
            words[digest] = cleaned
            if file.test:
                in_test_files.add(digest)
    positive = positive_values(set(before), rules, positive_from)
    mode = {d: min(v for v in tally if tally[v] == max(tally.values())) for d, tally in values.items()}
    if test_input:
        in_test = {digest: digest in in_test_files for digest in words}
    else:
        in_test = {digest: int.from_bytes(digest[:8], "big") < 2**64 * test_share for digest in words}
    kept = {digest: [word for word in text if word not in stopwords] for digest, text in words.items()}
    frequency = Counter(word for digest, text in kept.items() if not in_test[digest] for word in text)
    vocabulary = sorted(frequency, key=lambda word: (-frequency[word], word))[:vocabulary_size]
    ids = {word: index + 2 for index, word in enumerate(vocabulary)}
    arrays = {}
    for split, test in (("train", False), ("test", True)):
        chosen = [digest for digest in sorted(words) if in_test[digest] == test and kept[digest]]
        tokens = np.zeros((len(chosen), row_length), np.uint16 if vocabulary_size + 2 <= 65_536 else np.uint32)
        for row, digest in zip(tokens, chosen, strict=True):
            for place, word in enumerate(kept[digest][:row_length]):
                row[place] = ids.get(word, 1)
        arrays[f"{split}/tokens"] = tokens
        arrays[f"{split}/lengths"] = np.array([min(len(kept[d]), row_length) for d in chosen], np.uint16)
        arrays[f"{split}/labels"] = np.array([mode[d] in positive for d in chosen], np.uint8)
        arrays[f"{split}/ratings"] = np.array([0 if rules.labelled else mode[d] for d in chosen], np.uint8)
        counts[split] = len(chosen)
        counts[f"positive_{split}"] = int(arrays[f"{split}/labels"].sum())
        counts["tokens"] += int(arrays[f"{split}/lengths"].sum())
        counts["unknown_tokens"] += int((tokens == 1).sum())
    after = Counter(mode.values())
    low, high = rules.rating_range
    stars = [] if rules.labelled else range(low, high + 1)
    long = [len(text) for text in kept.values() if text]
    names = (
        "lines",
        "malformed",
        "damaged_files",
        "empty",
        "texts",
        "train",
        "test",
        "positive_train",
        "positive_test",
    )
    return (
        arrays,
        vocabulary,
        {
            **{name: counts[name] for name in (*names, "tokens", "unknown_tokens")},
            "malformed_by_reason": {reason: reasons[reason] for reason in reasons},
            "distinct": len(words),
            "conflicting": sum(len(tally) > 1 for tally in values.values()),
            "wordless": sum(not text for text in kept.values()),
            "ratings": {
                "before": {str(rating): before[rating] for rating in stars},
                "after": {str(rating): after[rating] for rating in stars},
            },
            "labels": {
                when: {
                    "0": sum(number for value, number in found.items() if value not in positive),
                    "1": sum(number for value, number in found.items() if value in positive),
                }
                for when, found in (("before", before), ("after", after))
            },
            "lengths": {
                str(least): sum(least <= words < 2 * least or words >= least == 8192 for words in long)
                for least in (2**power for power in range(14))
            },
            "cut": sum(words > row_length for words in long),
            "frequent_words": [[word, frequency[word]] for word in vocabulary[:20]],
        },
    )
