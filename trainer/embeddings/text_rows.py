"""The rows of a run on word vectors: the parts that readers left (corpus/stream), with ids of one vocabulary.

Readers know nothing of a vocabulary: a part has words of its own. Every rank makes the same vocabulary of the same
parts, and replaces the parts' tokens by its ids: 0 at the end of a line, 1 for a word without a vector, then the words,
the most frequent first.
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
from trainer.task import TEST, TRAINING, VALIDATION, NextEpoch

_LOOK_SECONDS = 0.2
_MOST_HELD_OUT, _HELD_OUT_EVERY = 256, 128
"""Held-out rows: one of so many, at least one, and no more than the first number."""


_EPOCHS, _SOME_ROWS = 5, 256

_MOST_WORDS = 2_000_000


class WordCounts:
    """How often each word occurs in some parts, in bounded memory.

    Where there are too many different words, the rarest so far are forgotten, as the word2vec program does
    (`ReduceVocab`): each time those that occur one time more. What is left depends on the order of the parts alone.
    """

    def __init__(self, *, most: int | None = None) -> None:
        """`most`: the most different words that are counted at once, by default 2,000,000, which take some 300 MB."""
        self.counts: Counter[str] = Counter()
        self.total = 0
        """Running words of all parts."""
        self.forgotten = 0
        """How many counts were dropped; of a word perhaps several."""
        self.least = 0
        """Words that had occurred so many times, or fewer, may have been forgotten."""
        self._most = most or _MOST_WORDS

    def add(self, part: Part) -> None:
        self.add_counts(dict(zip(part.words, part.counts.tolist(), strict=True)))

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Count words that occur so many times each."""
        self.counts.update(counts)
        self.total += sum(counts.values())
        while (before := len(self.counts)) > self._most:
            self.least += 1
            self.counts = Counter({word: count for word, count in self.counts.items() if count > self.least})
            self.forgotten += before - len(self.counts)

    def notes(self, *, min_count: int) -> list[str]:
        """What the user should know of what was forgotten."""
        if not self.forgotten:
            return []
        return [
            f"there are over {_MOST_WORDS:,} different words: {self.forgotten:,} counts of words that had occurred "
            f"up to {self.least} times were dropped meanwhile, so that some words may lack a vector that occur "
            f"{min_count:,} times (--min-count); identifiers and numbers in the text are often the cause"
        ]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words that have vectors, the most frequent first."""

    words: tuple[str, ...]
    counts: Counts

    @classmethod
    def of(cls, counted: WordCounts, *, min_count: int, where: Path) -> "Vocabulary":
        """The words that occur often enough; equally frequent ones in their own order. Raises TrainingError if there
        are none."""
        kept = sorted((-count, word) for word, count in counted.counts.items() if count >= min_count)
        if not kept:
            raise TrainingError(
                f"no word of the {plural(counted.total, 'word')} in {where} occurs {plural(min_count, 'time')}; "
                "lower --min-count, or read more text"
            )
        return cls(words=tuple(word for _, word in kept), counts=-np.array([count for count, _ in kept], np.int64))

    def ids(self, part: Part) -> Tokens:
        """(rows, tokens): a part's rows with the ids of this vocabulary."""
        known = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        table = np.full(len(part.words) + FIRST_OF_PART, UNKNOWN, np.int32)
        table[END_OF_LINE] = 0
        table[FIRST_OF_PART:] = [known.get(word, UNKNOWN) for word in part.words]
        return table[part.tokens]


class TextData(ABC):
    """The rows of running words of a run. What a subclass does not say is as of finite text."""

    vocabulary: Vocabulary
    tokens: Tokens
    """(rows, tokens) of an epoch, of which those that are held out are empty."""
    held_out: Tokens
    """(m, tokens)."""
    words: int
    """Running words of an epoch, with those that have no vector."""
    digest: str
    notes: tuple[str, ...]
    """For the user."""
    is_judged_at_intervals = False
    """Whether the model is evaluated at intervals, and not after each epoch."""
    saves_when_stopped = False
    """Whether a run that is asked to stop leaves a model, too."""

    @property
    def sizes(self) -> dict[str, int]:
        """Rows by part of the run."""
        return {TRAINING: len(self.tokens), VALIDATION: len(self.held_out), TEST: len(self.held_out)}

    @property
    @abstractmethod
    def sample(self) -> Tokens:
        """(n, tokens): some rows, by which the others can be estimated before they are there."""

    @property
    def counted_rows(self) -> float:
        """Rows of the text in which the words of the vocabulary were counted."""
        return len(self.tokens)

    @abstractmethod
    def usual_epochs(self, words: int | None) -> int:
        """The epochs of a run, where the user names none, that is to learn from so many `words`."""

    def schedule_position(self, config: TrainConfig, step: int, steps: int) -> tuple[int, int]:  # noqa: ARG002
        """Where in the schedule of the learning rate a step of a run of so many `steps` is: how much of it is done, and
        how much there is."""
        return step, steps

    def begin_epoch(self, config: TrainConfig, ranks: Ranks, stop: Callable[[], bool], *, wait: bool) -> NextEpoch:  # noqa: ARG002
        """See `Task`."""
        return NextEpoch.READY

    def end_part(self) -> bool:
        """The rows of the epoch were learnt from, all of them; returns whether that changes `state`."""
        return False

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to hold of it."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from such a state. Raises DamagedError for another one."""
        del state

    def tell_readers(self) -> None:
        """Report to readers of the text what is in a checkpoint. Raises OSError."""
        return

    def summary(self) -> dict[str, Any]:
        return {}

    def closing_notes(self, config: TrainConfig) -> list[str]:  # noqa: ARG002
        """Notes for the user at the end of a run."""
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

    def usual_epochs(self, words: int | None) -> int:
        return -(-words // self.words) if words else _EPOCHS


def held_out_rows(rows: int) -> IntArray:
    """The numbers of the held-out rows, of so many: one at least."""
    every = min(_HELD_OUT_EVERY, rows)
    return np.arange(every - 1, rows, every)[:_MOST_HELD_OUT]


def read_rows(stream: Path, settings: StreamSettings, *, min_count: int) -> TextRows:
    """All rows of a bounded stream, without those behind it; waits for its readers to come to it. Raises
    TrainingError and DataError."""
    folders = [reader_folder(stream, number) for number in range(settings.readers)]
    while [folder for folder in folders if not ended(folder)]:
        time.sleep(_LOOK_SECONDS)
    parts = [part_path(folder, number) for folder in folders for number in part_numbers(folder)]
    counted = WordCounts()
    digest = blake2b(digest_size=16)
    for path in parts:
        part = read_part(path)
        counted.add(part)
        digest.update(part.tokens.tobytes() + "\n".join(part.words).encode())
    vocabulary = Vocabulary.of(counted, min_count=min_count, where=stream)
    tokens = np.concatenate([vocabulary.ids(read_part(path)) for path in parts])
    tokens = tokens[(tokens != END_OF_LINE).any(axis=1)]  # the last part of a reader is filled up
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
