"""Text rows from which a run learns word embeddings: parts of a stream (corpus/stream), with ids of one vocabulary.

Readers have no common vocabulary: each part has its own word list. Every rank builds the same vocabulary from the same
parts, and replaces the parts' tokens by ids of this vocabulary. Id 0 is the end of a line, and 1 a word without a
vector. The other ids are the words, most frequent first.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from shoal_balance import IntArray

from common.display import plural
from common.errors import TrainingError
from corpus.stream.parts import END_OF_LINE, Part, part_numbers, part_path, read_part
from corpus.stream.parts import FIRST_WORD as FIRST_OF_PART
from corpus.stream.progress import ended, reader_folder
from corpus.stream.stream_settings import StreamSettings
from corpus.text import FIRST_WORD, UNKNOWN
from trainer.embeddings.sampling import Counts, Tokens
from trainer.task import TEST, TRAINING, VALIDATION

_POLL_SECONDS = 0.2
_MOST_HELD_OUT, _HELD_OUT_EVERY = 256, 128
"""Largest number of held-out rows, and the distance between two of them. At least one row is held out."""

_EPOCHS, _SOME_ROWS = 5, 256


def count_words(parts: Iterable[Part]) -> Counter[str]:
    """Return the number of occurrences of each word in parts."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(dict(zip(part.words, part.counts.tolist(), strict=True)))
    return counts


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Words that have vectors, most frequent first."""

    words: tuple[str, ...]
    counts: Counts

    @classmethod
    def of(cls, counts: Counter[str], *, min_count: int, where: Path) -> "Vocabulary":
        """Return a vocabulary of the words with at least `min_count` occurrences.

        Equally frequent words are in alphabetical order. `where`: the folder of the text, for the error message. Raises
        TrainingError if no word is frequent enough.
        """
        kept = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        if not kept:
            raise TrainingError(
                f"no word of the {plural(counts.total(), 'word')} in {where} occurs {plural(min_count, 'time')}; "
                "lower --min-count, or read more text"
            )
        return cls(words=tuple(word for _, word in kept), counts=-np.array([count for count, _ in kept], np.int64))

    def ids(self, part: Part) -> Tokens:
        """Return a part's rows (rows, tokens), with ids of this vocabulary in place of the part's own ids."""
        known = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        table = np.full(len(part.words) + FIRST_OF_PART, UNKNOWN, np.int32)
        table[END_OF_LINE] = 0
        table[FIRST_OF_PART:] = [known.get(word, UNKNOWN) for word in part.words]
        return table[part.tokens]


@dataclass(kw_only=True)
class TextRows:
    """Text rows of a run. If the text is finite, each epoch has all rows."""

    vocabulary: Vocabulary
    tokens: Tokens
    """(rows, tokens): ids of the training rows in an epoch. Held-out rows are replaced by empty rows."""
    held_out: Tokens
    """(m, tokens): ids of the held-out rows."""
    words: int
    """Number of running words in an epoch, including words without a vector."""
    digest: str

    @property
    def sizes(self) -> dict[str, int]:
        """Number of training, validation and test rows."""
        return {TRAINING: len(self.tokens), VALIDATION: len(self.held_out), TEST: len(self.held_out)}

    @property
    def sample(self) -> Tokens:
        """(n, tokens): sample of rows, from which properties of all rows are estimated."""
        return self.tokens[:_SOME_ROWS]

    @property
    def counted_rows(self) -> float:
        """Number of rows in which the words of the vocabulary were counted."""
        return len(self.tokens)

    def default_epochs(self, words: int | None) -> int:
        """Return the default number of epochs. `words`: the requested number of running words, if any."""
        return -(-words // self.words) if words else _EPOCHS


def held_out_rows(rows: int) -> IntArray:
    """Return the indices of the held-out rows among `rows` rows; at least one row is held out."""
    every = min(_HELD_OUT_EVERY, rows)
    return np.arange(every - 1, rows, every)[:_MOST_HELD_OUT]


def read_rows(stream: Path, settings: StreamSettings, *, min_count: int) -> TextRows:
    """Return all rows of a bounded stream, except empty rows. Waits until the stream's readers have finished.

    Raises TrainingError if no word is frequent enough. Raises DataError if a reader has failed or a part is invalid.
    """
    folders = [reader_folder(stream, number) for number in range(settings.readers)]
    while [folder for folder in folders if not ended(folder)]:
        time.sleep(_POLL_SECONDS)
    paths = [part_path(folder, number) for folder in folders for number in part_numbers(folder)]
    digest = blake2b(digest_size=16)

    def read_parts() -> Iterator[Part]:
        for path in paths:
            part = read_part(path)
            digest.update(part.tokens.tobytes() + "\n".join(part.words).encode())
            yield part

    counts = count_words(read_parts())
    vocabulary = Vocabulary.of(counts, min_count=min_count, where=stream)
    tokens = np.concatenate([vocabulary.ids(read_part(path)) for path in paths])
    tokens = tokens[(tokens != END_OF_LINE).any(axis=1)]  # a reader's last part is padded with empty rows
    held = held_out_rows(len(tokens))
    held_out = tokens[held].copy()
    tokens[held] = END_OF_LINE
    return TextRows(
        vocabulary=vocabulary,
        tokens=tokens,
        held_out=held_out,
        words=counts.total(),
        digest=digest.hexdigest(),
    )
