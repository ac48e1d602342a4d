"""The character model: an LSTM reads a word's characters, and its last state gives the word's vectors.

A linear layer makes of that state the word's vector as a centre, another one that as a context. So there is no table of
words, all parameters are small and dense, and a word that nobody has seen has a vector, too. What is learnt, and what
is random, is as in skip-gram.

Each word of some rows is read once, however often it stands there. Its two vectors are put where skip-gram's tables
would have them, so that the same kernels find the loss and the gradients of the vectors; autograd takes these on to the
parameters. The tables are not filled elsewhere: do not look at other rows.
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
from trainer.computing.row_gradients import Means, new_table, rows_of_means
from trainer.embeddings.sampling import Sampling, Tokens
from trainer.embeddings.skipgram import Keys, SkipGramGradients, touched_words

Letters = npt.NDArray[np.int16]
"""(words, LONGEST): the numbers of each word's characters, and 0 behind them."""

LONGEST = 32
"""Characters of a word that are read; a longer one has the vector of its beginning."""
MOST_CHARACTERS = 1000
"""Characters with a number of their own."""

_OTHER, _FIRST = 1, 2


@dataclass(frozen=True)
class Spelling:
    """How the model reads a word: a number for each of its characters. Characters without a number of their own share
    one, so that every word can be read. A change of a rule here needs a new format of the encoder's file."""

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


class CharLSTM(nn.Module):
    """Reads words by their characters."""

    def __init__(self, characters: int, *, character_embedding: int, hidden: int, layers: int, size: int) -> None:
        """`characters`: the numbers of a spelling. `size`: of a word's vectors."""
        super().__init__()
        self.characters = nn.Embedding(characters, character_embedding)
        self.lstm = nn.LSTM(character_embedding, hidden, layers)
        self.centres = nn.Linear(hidden, size)
        self.contexts = nn.Linear(hidden, size)

    def forward(self, letters: Letters) -> Tensor:
        """(words, hidden): the states after the last characters of words (words, LONGEST), of which there is one at
        least. Short words take less time than long ones."""
        lengths = (letters > 0).sum(1)
        device = self.centres.weight.device
        numbers = torch.from_numpy(letters[:, : lengths.max()].T.astype(np.int64)).to(device)  # (longest, words)
        read = pack_padded_sequence(self.characters(numbers), torch.from_numpy(lengths), enforce_sorted=False)
        _, (states, _) = self.lstm(read)  # (layers, words, hidden)
        last: Tensor = states[-1]
        return last


class CharacterLoss:
    def __init__(self, tokens: Tokens, rules: Sampling, letters: Letters, *, seed: int, pairs_a_row: float) -> None:
        """See `SkipGramGradients`. `letters`: of the words of the vocabulary, with rows for the ids before them."""
        self._tokens, self._letters = tokens, letters
        self._seed, self._pairs_a_row = seed, pairs_a_row
        self._pairs = SkipGramGradients(tokens, rules, seed=seed, pairs_a_row=pairs_a_row, steady=False)

    def __call__(self, model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        """See `LossOf`; it is about that of a pair, for each row."""
        assert isinstance(model, CharLSTM)
        rows, keys = self._tokens[numbers], hashes(self._seed, step, numbers)
        timer.end_phase(ROWS)
        loss, _ = self.sums(model, rows, keys)
        return loss / self._pairs_a_row

    def sums(self, model: CharLSTM, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        """The sum of the losses of `rows` (n, tokens) with `keys` (n,), and the number of their pairs."""
        if not len(rows):
            return model.centres.weight.new_zeros(()), 0
        learnt = np.flatnonzero((rows >= FIRST_WORD).any(1))
        if not len(learnt):
            learnt = np.zeros(1, np.int64)  # so that the loss depends on the parameters, if only as 0
        rows, keys = rows[learnt], keys[learnt]
        _, ids = touched_words(rows, keys, self._pairs.rules)
        states = model(self._letters[ids.numpy()])

        def of_tables(tables: _Filled) -> tuple[Tensor, int, list[Means]]:
            return self._pairs.sums(tables, rows, keys)

        loss, pairs = _PairLoss.apply(  # type: ignore[no-untyped-call]
            model.centres(states), model.contexts(states), ids.to(states.device), len(self._letters), of_tables
        )
        return loss, int(pairs)


class _Filled(NamedTuple):
    """The vectors of the words of some rows, (words of the vocabulary, size) each; other rows are not filled."""

    centres: Tensor
    contexts: Tensor


class _PairLoss(torch.autograd.Function):
    """The loss of pairs, and their number, as a function of the words' embeddings."""

    @staticmethod
    def forward(
        ctx: Any,
        centres: Tensor,
        contexts: Tensor,
        ids: Tensor,
        words: int,
        of_tables: Callable[[_Filled], tuple[Tensor, int, list[Means]]],
    ) -> tuple[Tensor, Tensor]:
        """`centres` and `contexts` (m, size) of the words `ids` (m,), in rising order."""
        tables = _Filled(*(new_table(words, each.shape[1], each) for each in (centres, contexts)))
        for table, vectors in zip(tables, (centres, contexts), strict=True):
            table[:FIRST_WORD] = 0.0  # torch's way reads them behind the words of a row
            table[ids] = vectors.detach()
        loss, pairs, means = of_tables(tables)
        gradients = []
        for each in means:
            rows, values = rows_of_means(each)
            gradients.append(torch.zeros_like(centres).index_copy_(0, torch.searchsorted(ids, rows), values))
        ctx.save_for_backward(*gradients)
        count = torch.tensor(pairs)
        ctx.mark_non_differentiable(count)
        return loss, count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _of_count: Tensor) -> tuple[Tensor | None, ...]:
        by_centres, by_contexts = ctx.saved_tensors
        return gradient * by_centres, gradient * by_contexts, None, None, None
