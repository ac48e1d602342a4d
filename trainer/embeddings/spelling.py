"""How the character model reads a word: as a row of numbers, one for each of its characters.

The most frequent characters of the words that a run learns have numbers of their own; all others share one, so that
every word can be read, also one that the run has never seen. Do not change a rule here without a new format of the
encoder's file: a trained encoder understands this spelling alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Letters = npt.NDArray[np.int16]
"""(words, LONGEST): the numbers of each word's characters, and 0 behind them."""

LONGEST = 32
"""Characters of a word that are read; a longer one has the vector of its beginning."""
MOST_CHARACTERS = 1000
"""Characters with a number of their own."""

_OTHER, _FIRST = 1, 2


@dataclass(frozen=True)
class Spelling:
    characters: str
    """Those with a number of their own, each once."""

    @classmethod
    def of(cls, words: Iterable[str]) -> "Spelling":
        """The most frequent characters of these words; equally frequent ones in their own order."""
        counted = Counter(character for word in words for character in word)
        return cls("".join(sorted(counted, key=lambda each: (-counted[each], each))[:MOST_CHARACTERS]))

    @property
    def size(self) -> int:
        return _FIRST + len(self.characters)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.characters, _FIRST)}

    def letters(self, words: Sequence[str]) -> Letters:
        """Spell words, which have a character at least. A character without a number counts as its lower-case form."""
        found = np.zeros((len(words), LONGEST), np.int16)
        numbers = self._numbers
        for row, word in zip(found, words, strict=True):
            row[: len(word)] = [numbers.get(each) or numbers.get(each.lower(), _OTHER) for each in word[:LONGEST]]
        return found
