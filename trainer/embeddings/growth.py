"""The vocabulary of an unbounded stream, which grows with its text.

The tables of a model have rows in reserve. A word of the stream that has occurred often enough gets the next one, and
stays there: no row becomes another word's. All ranks count the same parts, so they agree without a message.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from corpus.stream.parts import Part
from trainer.embeddings.text_rows import Vocabulary, WordCounts
from trainer.output.archive import DamagedError

_MOST_OTHERS = 500_000
"""Words without a row that are counted, some 30 MB, which are in each checkpoint, too."""


class GrowingVocabulary:
    """The words that have rows, and the counts of those that may get one."""

    def __init__(self, first: Vocabulary, *, reserve: int, min_count: int) -> None:
        """`first`: that of the first parts; `reserve`: the most words that are added to it, those which occur
        `min_count` times in the parts that are counted."""
        self.now, self.reserve = first, reserve
        self._first, self._min_count = first, min_count
        self._others = WordCounts(most=_MOST_OTHERS)
        self._counted: tuple[str, int] | None = None
        self.is_full = False
        """Whether words of the last part have occurred often enough for which there was no row."""

    @property
    def added(self) -> int:
        return len(self.now.words) - len(self._first.words)

    def count(self, part: Part, chosen: tuple[str, int]) -> None:
        """Count the words of a part, the one that was `chosen` (its reader and number), and give rows to those that now
        occur often enough, the most frequent first. The part that was counted last is not counted again: a resumed run
        has it in its checkpoint."""
        if not self.reserve or chosen == self._counted:
            return
        self._counted = chosen
        known = {word: number for number, word in enumerate(self.now.words)}
        counts, others = self.now.counts.copy(), {}
        for word, count in zip(part.words, part.counts.tolist(), strict=True):
            if (number := known.get(word)) is None:
                others[word] = count
            else:
                counts[number] += count
        self._others.add_counts(others)
        enough = [word for word in others if self._others.counts[word] >= self._min_count]
        enough.sort(key=lambda word: (-self._others.counts[word], word))
        room = self.reserve - self.added
        new, self.is_full = enough[:room], len(enough) > room
        gained = np.array([self._others.counts.pop(word) for word in new], np.int64)
        self.now = Vocabulary(words=(*self.now.words, *new), counts=np.concatenate((counts, gained)))

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds of it; empty where nothing is ever added."""
        if not self.reserve:
            return {}
        return {
            "counted": self._counted,
            "added": _packed(self.now.words[len(self._first.words) :]),
            "counts": torch.from_numpy(self.now.counts),
            "others": _packed(tuple(self._others.counts)),
            "other_counts": torch.tensor(list(self._others.counts.values()), dtype=torch.int64),
            "least": self._others.least,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state. Raises DamagedError for another one."""
        if not self.reserve:
            return
        try:
            words, others = (*self._first.words, *_unpacked(state["added"])), _unpacked(state["others"])
            counts, other_counts = state["counts"].numpy(), state["other_counts"].tolist()
            if len(counts) != len(words) or len(words) - len(self._first.words) > self.reserve or counts.min() < 1:
                raise DamagedError("its vocabulary is not that of its tables")
            self._others.counts = Counter(dict(zip(others, other_counts, strict=True)))
            self._others.least, self._counted = int(state["least"]), state["counted"]
            self.now = Vocabulary(words=words, counts=counts.astype(np.int64))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DamagedError("it holds no vocabulary of a stream") from error


def _packed(words: Sequence[str]) -> torch.Tensor:
    return torch.frombuffer(bytearray("\n".join(words).encode() + b"\n"), dtype=torch.uint8)


def _unpacked(packed: torch.Tensor) -> list[str]:
    """Raises ValueError for what is no text."""
    return [word for word in packed.numpy().tobytes().decode().split("\n") if word]
