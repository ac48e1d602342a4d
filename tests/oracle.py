"""docs/dataset.md, word for word and slowly: what every runner's dataset has to equal. Shares no code with `corpus`."""

import html
import json
from collections import Counter
from hashlib import blake2b

import numpy as np

EXTRA_STOPWORDS = {"product", "would", "get"}


class Pairs(list):
    """A JSON object with all of its pairs, repeated keys too."""


def strict_json(line: bytes):
    """RFC 8259 without mercy: raises ValueError for anything unsound, anywhere in the line."""

    def number(convert):
        def parse(digits):
            if abs(float(digits)) == float("inf"):
                raise ValueError("overflows a double")
            return convert(digits)

        return parse

    def constant(name):
        raise ValueError(name)

    def sound(value):
        if isinstance(value, str):
            value.encode("utf-8")
        if isinstance(value, Pairs):
            return {sound(key): sound(item) for key, item in value}
        if isinstance(value, list):
            return [sound(item) for item in value]
        return value

    try:
        parsed = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=Pairs,
            parse_float=number(float),
            parse_int=number(int),
            parse_constant=constant,
        )
        return sound(parsed)
    except (UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def review(line: bytes):
    """(text, rating), or the reason why the line is malformed."""
    try:
        value = strict_json(line)
    except ValueError:
        return "not_json"
    if not isinstance(value, dict):
        return "not_an_object"
    if "reviewText" not in value:
        return "no_text"
    if not isinstance(value["reviewText"], str):
        return "text_not_a_string"
    if "overall" not in value:
        return "no_rating"
    rating = value["overall"]
    if isinstance(rating, str):
        try:
            rating = json.loads(rating.strip(" \t\r\n"))
        except ValueError:
            return "bad_rating"
    if type(rating) not in (int, float) or rating not in (1, 2, 3, 4, 5):
        return "bad_rating"
    return value["reviewText"], int(rating)


def cleaned_words(text: str) -> list[str]:
    text = html.unescape(text).replace("\u2019", "'").lower()
    spaced = "".join(letter if letter in "abcdefghijklmnopqrstuvwxyz'" else " " for letter in text)
    return [word.strip("'") for word in spaced.split() if word.strip("'")]


def lines_of(files: list[bytes]):
    for content in files:
        content = content.removeprefix(b"\xef\xbb\xbf")
        for line in content.split(b"\n"):
            if line.strip(b" \t\r"):
                yield line


def dataset(files: list[bytes], nltk_words: set[str], vocabulary_size=10_000, row_length=100, test_share=0.10):
    """(arrays by path, vocabulary, counts) of the contents of some files."""
    stopwords = nltk_words | EXTRA_STOPWORDS
    counts = Counter()
    reasons = Counter()
    before = Counter()
    ratings: dict[bytes, Counter] = {}
    words: dict[bytes, list[str]] = {}
    for line in lines_of(files):
        counts["lines"] += 1
        found = review(line)
        if isinstance(found, str):
            counts["malformed"] += 1
            reasons[found] += 1
            continue
        text, rating = found
        cleaned = cleaned_words(text)
        if not cleaned:
            counts["empty"] += 1
            continue
        counts["texts"] += 1
        before[rating] += 1
        digest = blake2b(" ".join(cleaned).encode(), digest_size=16).digest()
        ratings.setdefault(digest, Counter())[rating] += 1
        words[digest] = cleaned
    mode = {d: min(r for r in tally if tally[r] == max(tally.values())) for d, tally in ratings.items()}
    in_test = {digest: int.from_bytes(digest[:8], "big") < 2**64 * test_share for digest in words}
    kept = {digest: [word for word in text if word not in stopwords] for digest, text in words.items()}
    frequency = Counter(word for digest, text in kept.items() if not in_test[digest] for word in text)
    vocabulary = sorted(frequency, key=lambda word: (-frequency[word], word))[:vocabulary_size]
    ids = {word: index + 2 for index, word in enumerate(vocabulary)}
    arrays = {}
    for split, test in (("train", False), ("test", True)):
        chosen = [digest for digest in sorted(words) if in_test[digest] == test and kept[digest]]
        tokens = np.zeros((len(chosen), row_length), np.uint16)
        for row, digest in zip(tokens, chosen, strict=True):
            for place, word in enumerate(kept[digest][:row_length]):
                row[place] = ids.get(word, 1)
        arrays[f"{split}/tokens"] = tokens
        arrays[f"{split}/lengths"] = np.array([min(len(kept[d]), row_length) for d in chosen], np.uint16)
        arrays[f"{split}/labels"] = np.array([mode[d] >= 4 for d in chosen], np.uint8)
        arrays[f"{split}/ratings"] = np.array([mode[d] for d in chosen], np.uint8)
        counts[split] = len(chosen)
        counts[f"positive_{split}"] = int(arrays[f"{split}/labels"].sum())
        counts["tokens"] += int(arrays[f"{split}/lengths"].sum())
        counts["unknown_tokens"] += int((tokens == 1).sum())
    after = Counter(mode.values())
    names = ("lines", "malformed", "empty", "texts", "train", "test", "positive_train", "positive_test")
    return (
        arrays,
        vocabulary,
        {
            **{name: counts[name] for name in (*names, "tokens", "unknown_tokens")},
            "malformed_by_reason": {reason: reasons[reason] for reason in reasons},
            "distinct": len(words),
            "conflicting": sum(len(tally) > 1 for tally in ratings.values()),
            "wordless": sum(not text for text in kept.values()),
            "ratings": {
                "before": {str(rating): before[rating] for rating in range(1, 6)},
                "after": {str(rating): after[rating] for rating in range(1, 6)},
            },
        },
    )
