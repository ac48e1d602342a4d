"""Rows of a run on word embeddings: the parts of readers (corpus/stream), with ids of a common vocabulary.

Readers have no vocabulary: each part has its own word list. Every rank makes the same vocabulary from the same parts,
and replaces the parts' tokens by its ids: 0 for the end of a line, 1 for a word without a vector, then the words, most
frequent first.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from shoal_balance import IntArray

from common.display import plural
from common.errors import TrainingError
from corpus.stream.parts import END_OF_LINE, Part, part_numbers, part_path, read_part
from corpus.stream.parts import FIRST_WORD as FIRST_OF_PART
from corpus.stream.progress import ended, reader_folder
from corpus.stream.stream_settings import StreamSettings
from corpus.text import FIRST_WORD, UNKNOWN
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.sampling import Counts, Tokens
from trainer.task import TEST, TRAINING, VALIDATION, EpochStatus

_POLL_SECONDS = 0.2
_MOST_HELD_OUT, _HELD_OUT_EVERY = 256, 128
"""Number of held-out rows: one of every _HELD_OUT_EVERY, at least one, and at most _MOST_HELD_OUT."""


_EPOCHS, _SOME_ROWS = 5, 256

_MOST_WORDS = 2_000_000


class WordCounts:
    """Counts of words in parts, in bounded memory.

    If there are too many distinct words, the rarest ones so far are dropped, like in the word2vec program
    (`ReduceVocab`). Each time, the threshold increases by 1. The result depends only on the order of the parts.
    """

    def __init__(self, *, most: int | None = None) -> None:
        """`most`: the largest number of distinct words (default: 2,000,000, which take some 300 MB)."""
        self.counts: Counter[str] = Counter()
        self.total = 0
        """Running words of all parts."""
        self.forgotten = 0
        """Number of dropped counts, possibly several of one word."""
        self.least = 0
        """Largest count of dropped words."""
        self._most = most or _MOST_WORDS

    def add(self, part: Part) -> None:
        self.add_counts(dict(zip(part.words, part.counts.tolist(), strict=True)))

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add counts of words."""
        self.counts.update(counts)
        self.total += sum(counts.values())
        while (before := len(self.counts)) > self._most:
            self.least += 1
            self.counts = Counter({word: count for word, count in self.counts.items() if count > self.least})
            self.forgotten += before - len(self.counts)

    def notes(self, *, min_count: int) -> list[str]:
        """Return notes for the user about dropped counts."""
        if not self.forgotten:
            return []
        return [
            f"there are over {_MOST_WORDS:,} different words: {self.forgotten:,} counts of words that had occurred "
            f"up to {self.least} times were dropped while counting. Some words that occur {min_count:,} times "
            "(--min-count) may lack a vector; identifiers and numbers in the text are a frequent cause"
        ]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Words that have vectors, most frequent first."""

    words: tuple[str, ...]
    counts: Counts

    @classmethod
    def of(cls, counted: WordCounts, *, min_count: int, where: Path) -> "Vocabulary":
        """Return the words with at least `min_count` occurrences; equally frequent ones in alphabetical order.

        Raises TrainingError if no word is frequent enough.
        """
        kept = sorted((-count, word) for word, count in counted.counts.items() if count >= min_count)
        if not kept:
            raise TrainingError(
                f"no word of the {plural(counted.total, 'word')} in {where} occurs {plural(min_count, 'time')}; "
                "lower --min-count, or read more text"
            )
        return cls(words=tuple(word for _, word in kept), counts=-np.array([count for count, _ in kept], np.int64))

    def ids(self, part: Part) -> Tokens:
        """Return a part's rows (rows, tokens) with the ids of this vocabulary."""
        known = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        table = np.full(len(part.words) + FIRST_OF_PART, UNKNOWN, np.int32)
        table[END_OF_LINE] = 0
        table[FIRST_OF_PART:] = [known.get(word, UNKNOWN) for word in part.words]
        return table[part.tokens]


class TextData(ABC):
    """Rows of running words of a run. The defaults here are those of finite text."""

    vocabulary: Vocabulary
    tokens: Tokens
    """(rows, tokens) of an epoch; held-out rows are empty."""
    held_out: Tokens
    """(m, tokens)."""
    words: int
    """Running words of an epoch, including words without a vector."""
    digest: str
    notes: tuple[str, ...]
    """Notes for the user."""
    is_evaluated_at_intervals = False
    """True if the model is evaluated at intervals instead of after each epoch."""
    saves_when_stopped = False
    """True if a stopped run also saves a model."""

    @property
    def sizes(self) -> dict[str, int]:
        """Number of rows in each part of the run."""
        return {TRAINING: len(self.tokens), VALIDATION: len(self.held_out), TEST: len(self.held_out)}

    @property
    @abstractmethod
    def sample(self) -> Tokens:
        """(n, tokens): sample of rows, from which properties of the others are estimated."""

    @property
    def counted_rows(self) -> float:
        """Number of rows in which the words of the vocabulary were counted."""
        return len(self.tokens)

    @abstractmethod
    def default_epochs(self, words: int | None) -> int:
        """Return the default epochs of a run that is to learn from `words` running words."""

    def schedule_position(self, config: TrainConfig, step: int, steps: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the position of a step in the schedule of the learning rate: the finished and the total amount."""
        return step, steps

    def begin_epoch(self, config: TrainConfig, ranks: Ranks, stop: Callable[[], bool], *, wait: bool) -> EpochStatus:  # noqa: ARG002
        """See `Task`."""
        return EpochStatus.READY

    def end_part(self) -> bool:
        """Finish the epoch after all its steps. Return whether that changes `state`."""
        return False

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state. Raises DamagedError if it does not fit."""
        del state

    def report_to_readers(self) -> None:
        """Report to readers of the text which parts are in a checkpoint. Raises OSError."""
        return

    def summary(self) -> dict[str, Any]:
        return {}

    def closing_notes(self, config: TrainConfig) -> list[str]:  # noqa: ARG002
        """Return notes for the user at the end of a run."""
        return []


@dataclass(frozen=True, kw_only=True)
class TextRows(TextData):
    """All rows of finite text."""

    vocabulary: Vocabulary
    tokens: Tokens
    held_out: Tokens
    words: int
    digest: str
    notes: tuple[str, ...] = ()

    @property
    def sample(self) -> Tokens:
        return self.tokens[:_SOME_ROWS]

    def default_epochs(self, words: int | None) -> int:
        return -(-words // self.words) if words else _EPOCHS


def held_out_rows(rows: int) -> IntArray:
    """Return the indices of the held-out rows among `rows` rows, at least one."""
    every = min(_HELD_OUT_EVERY, rows)
    return np.arange(every - 1, rows, every)[:_MOST_HELD_OUT]


def read_rows(stream: Path, settings: StreamSettings, *, min_count: int) -> TextRows:
    """Return all rows of a bounded stream, except empty ones. Waits until its readers have finished.

    Raises TrainingError and DataError.
    """
    folders = [reader_folder(stream, number) for number in range(settings.readers)]
    while [folder for folder in folders if not ended(folder)]:
        time.sleep(_POLL_SECONDS)
    parts = [part_path(folder, number) for folder in folders for number in part_numbers(folder)]
    counted = WordCounts()
    digest = blake2b(digest_size=16)
    for path in parts:
        part = read_part(path)
        counted.add(part)
        digest.update(part.tokens.tobytes() + "\n".join(part.words).encode())
    vocabulary = Vocabulary.of(counted, min_count=min_count, where=stream)
    tokens = np.concatenate([vocabulary.ids(read_part(path)) for path in parts])
    tokens = tokens[(tokens != END_OF_LINE).any(axis=1)]  # a reader's last part is padded
    held = held_out_rows(len(tokens))
    held_out = tokens[held].copy()
    tokens[held] = END_OF_LINE
    return TextRows(
        vocabulary=vocabulary,
        tokens=tokens,
        held_out=held_out,
        words=counted.total,
        digest=digest.hexdigest(),
        notes=tuple(counted.notes(min_count=min_count)),
    )
