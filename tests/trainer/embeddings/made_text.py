"""Text on two topics with co-occurring words, and human scores for its words."""

from pathlib import Path

import numpy as np

from corpus.stream.reader import read_stream
from corpus.stream.stream_settings import StreamSettings, write_settings

WORDS = {topic: [f"{topic}{letter}" for letter in "abcdefghijkl"] for topic in ("sea", "sky")}


def lines(count: int, seed: int = 0) -> list[str]:
    """Return lines of twelve words, each line on one topic."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS[topic], 12)) for topic in generator.choice(sorted(WORDS), count)]


def bursts(count: int, seed: int = 0) -> list[str]:
    """Return lines of twenty words, half of them on a subject that changes every 200 lines. As in real text, rare words
    are frequent in some places."""
    generator = np.random.default_rng(seed)
    subjects = np.repeat(generator.integers(0, 80, -(-count // 200)), 200)[:count, None]
    own, common = (generator.random((count, 20)) ** 2 for _ in range(2))
    words = np.where(generator.random((count, 20)) < 0.5, 100 + 10 * subjects + (10 * own).astype(int), 100 * common)
    return [" ".join(f"word{number}" for number in line) for line in words.astype(int)]


def pairs(path: Path) -> Path:
    """Write a set of pairs, in which words of one topic are similar."""
    known = [(word, topic) for topic, words in WORDS.items() for word in words]
    rows = [
        f"{one} {other} {9.0 if topic == of_other else 1.0}"
        for number, (one, topic) in enumerate(known)
        for other, of_other in known[number + 1 :]
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def stream(folder: Path, text: list[str], *, part_rows: int = 64) -> Path:
    """Write a stream, and have its reader read this text to its end."""
    source = folder.with_suffix(".txt")
    source.write_text("\n".join(text) + "\n")
    write_settings(folder, StreamSettings(sources=(str(source),), tokeniser="spaces", part_rows=part_rows))
    read_stream(folder, 0, 1)
    return folder
