"""Character model: an LSTM reads a word's characters, and its last state determines the word's vectors.

Two linear layers turn this state into two vectors of the word: one as a centre, and one as a context. So the model has
no table of words, all parameters are small and dense, and unseen words have vectors, too. Loss and random choices are
those of skip-gram.

Each distinct word of a batch is encoded once. Its two vectors are written to tables with the layout of skip-gram's
tables, so that skip-gram's kernels compute the loss and the gradients of the vectors. Autograd propagates these
gradients to the parameters. All other rows of the tables are uninitialised: do not read them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from corpus.text import FIRST_WORD
from trainer.clock import ROWS, StepTimer
from trainer.computing.dropout import hashes
from trainer.computing.row_gradients import FactoredGradient, new_table, sum_touched_rows
from trainer.embeddings.sampling import Sampling, Tokens
from trainer.embeddings.skipgram import Keys, SkipGramGradients, touched_words

Letters = npt.NDArray[np.int16]
"""(words, LONGEST) int16: the character numbers of each word, padded with 0."""

LONGEST = 32
"""Number of characters of a word that are read. A longer word has the vector of its first 32 characters."""
MOST_CHARACTERS = 1000
"""Largest number of characters that have their own number; all other characters share one."""

_OTHER, _FIRST = 1, 2


@dataclass(frozen=True)
class Spelling:
    """Mapping of characters to numbers. All characters outside the mapping share one number, so any word can be read.

    If you change these rules, change the format number of the encoder's file (encoder.py).
    """

    characters: str
    """Characters that have their own number, without repetition."""

    @classmethod
    def of(cls, words: Iterable[str]) -> "Spelling":
        """Return a mapping of the most frequent characters of `words`.

        Equally frequent characters are in code point order.
        """
        counted = Counter(character for word in words for character in word)
        return cls("".join(sorted(counted, key=lambda each: (-counted[each], each))[:MOST_CHARACTERS]))

    @property
    def size(self) -> int:
        return _FIRST + len(self.characters)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.characters, _FIRST)}

    def letters(self, words: Sequence[str]) -> Letters:
        """Return the character numbers (words, LONGEST) of `words`, which must not be empty strings.

        A character without its own number gets the number of its lower-case form.
        """
        letters = np.zeros((len(words), LONGEST), np.int16)
        numbers = self._numbers
        for row, word in zip(letters, words, strict=True):
            row[: len(word)] = [numbers.get(each) or numbers.get(each.lower(), _OTHER) for each in word[:LONGEST]]
        return letters


class CharLSTM(nn.Module):
    """Character LSTM, which encodes a word as a state from its characters."""

    def __init__(self, characters: int, *, character_embedding: int, hidden: int, layers: int, size: int) -> None:
        """`characters`: the `size` of a Spelling. `size`: the number of dimensions of a word's vectors."""
        super().__init__()
        self.characters = nn.Embedding(characters, character_embedding)
        self.lstm = nn.LSTM(character_embedding, hidden, layers)
        self.centres = nn.Linear(hidden, size)
        self.contexts = nn.Linear(hidden, size)

    def forward(self, letters: Letters) -> Tensor:
        """Return the states (words, hidden) after the last character of each word in `letters` (words, LONGEST).

        `letters` must contain at least one word. Short words take less time than long words.
        """
        lengths = (letters > 0).sum(1)
        device = self.centres.weight.device
        numbers = torch.from_numpy(letters[:, : lengths.max()].T.astype(np.int64)).to(device)  # (longest, words)
        read = pack_padded_sequence(self.characters(numbers), torch.from_numpy(lengths), enforce_sorted=False)
        _, (states, _) = self.lstm(read)  # (layers, words, hidden)
        last: Tensor = states[-1]
        return last


class CharacterLoss:
    def __init__(self, tokens: Tokens, rules: Sampling, letters: Letters, *, seed: int, pairs_a_row: float) -> None:
        """`letters`: the character numbers of each word, by word id. The rows of ids below FIRST_WORD are unused.

        See `SkipGramGradients` for the other parameters.
        """
        self._tokens, self._letters = tokens, letters
        self._seed, self._pairs_a_row = seed, pairs_a_row
        self._pairs = SkipGramGradients(tokens, rules, seed=seed, pairs_a_row=pairs_a_row, steady=False)

    def __call__(self, model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        """Return the sum of the losses of the rows, divided by the usual number of pairs in a row. See `LossOf`."""
        assert isinstance(model, CharLSTM)
        rows, keys = self._tokens[numbers], hashes(self._seed, step, numbers)
        timer.end_phase(ROWS)
        loss, _ = self.sums(model, rows, keys)
        return loss / self._pairs_a_row

    def sums(self, model: CharLSTM, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        """Return the sum of the losses of `rows` (n, tokens), and their number of pairs.

        `keys` (n,): hashes that determine the random choices for each row.
        """
        if not len(rows):
            return model.centres.weight.new_zeros(()), 0
        learned = np.flatnonzero((rows >= FIRST_WORD).any(1))
        if not len(learned):
            learned = np.zeros(1, np.int64)  # one empty row, so that even a loss of 0 depends on the parameters
        rows, keys = rows[learned], keys[learned]
        _, ids = touched_words(rows, keys, self._pairs.rules)
        states = model(self._letters[ids.numpy()])

        def of_tables(tables: _WordTables) -> tuple[Tensor, int, list[FactoredGradient]]:
            return self._pairs.sums(tables, rows, keys)

        loss, pairs = _PairLoss.apply(  # type: ignore[no-untyped-call]
            model.centres(states), model.contexts(states), ids.to(states.device), len(self._letters), of_tables
        )
        return loss, int(pairs)


class _WordTables(NamedTuple):
    """Two tables (ids of the vocabulary, size) with the vectors of a batch's words; other rows are uninitialised."""

    centres: Tensor
    contexts: Tensor


class _PairLoss(torch.autograd.Function):
    """Loss of the pairs in a batch, and the number of pairs, as a function of the words' vectors."""

    @staticmethod
    def forward(
        ctx: Any,
        centres: Tensor,
        contexts: Tensor,
        ids: Tensor,
        words: int,
        of_tables: Callable[[_WordTables], tuple[Tensor, int, list[FactoredGradient]]],
    ) -> tuple[Tensor, Tensor]:
        """`centres`, `contexts` (m, size): the two vectors of each word in the ascending `ids` (m,).

        `words`: the number of rows in a table. `of_tables`: function of the tables that returns the loss, the number of
        pairs, and the gradients.
        """
        tables = _WordTables(*(new_table(words, each.shape[1], each) for each in (centres, contexts)))
        for table, vectors in zip(tables, (centres, contexts), strict=True):
            table[:FIRST_WORD] = 0.0  # the torch implementation reads these rows as padding
            table[ids] = vectors.detach()
        loss, pairs, table_gradients = of_tables(tables)
        gradients = []
        for each in table_gradients:
            rows, values = sum_touched_rows(each)
            gradients.append(torch.zeros_like(centres).index_copy_(0, torch.searchsorted(ids, rows), values))
        ctx.save_for_backward(*gradients)
        count = torch.tensor(pairs)
        ctx.mark_non_differentiable(count)
        return loss, count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _of_count: Tensor) -> tuple[Tensor | None, ...]:
        by_centres, by_contexts = ctx.saved_tensors
        return gradient * by_centres, gradient * by_contexts, None, None, None
