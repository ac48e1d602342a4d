"""Character model: an LSTM reads a word's characters, and its last state determines the word's vectors.

Two linear layers turn this state into two vectors of the word: one as a centre, and one as a context. So the model has
no table of words, all parameters are small and dense, and unseen words have vectors, too. Loss and random choices are
those of skip-gram.

Each distinct word of a batch is encoded once. Its two vectors are written to tables with the layout of skip-gram's
tables, so that skip-gram's kernels compute the loss and the gradients of the vectors. Autograd propagates these
gradients to the parameters. All other rows of the tables are uninitialised: do not read them.

The file `encoder.safetensors` contains the weights and, as metadata, the settings of the model. It is untrusted input:
memory is allocated only for the weights that the file really contains.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from shoal_balance import IntArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from common.checked_values import of_length
from common.errors import DataError
from common.json_values import from_json, parse_json_object
from corpus.text import FIRST_WORD
from trainer.clock import ROWS, StepTimer
from trainer.computing.dropout import hashes
from trainer.computing.row_gradients import FactoredGradient, new_table, sum_touched_rows
from trainer.embeddings.sampling import Sampling, Tokens
from trainer.embeddings.skipgram import Keys, SkipGramGradients, Tables, touched_words
from trainer.embeddings.vectors import Matrix
from trainer.options.layer_options import Depth, Width
from trainer.output import archive
from trainer.output.archive import DamagedError

Letters = npt.NDArray[np.int16]
"""(words, LONGEST) int16: the character numbers of each word, padded with 0."""

LONGEST = 32
"""Number of characters of a word that are read. A longer word has the vector of its first 32 characters."""
MOST_CHARACTERS = 1000
"""Largest number of characters that have their own number; all other characters share one."""

FORMAT = 1
"""Format of the file `encoder.safetensors`."""

_METADATA = "shoal"
_OTHER, _FIRST = 1, 2
_BLOCK = 2048
"""Number of words that are encoded at once."""


@dataclass(frozen=True)
class Spelling:
    """Mapping of characters to numbers. All characters outside the mapping share one number, so any word can be read.

    If you change these rules, change FORMAT.
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


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """Settings that determine the shapes of a character model."""

    characters: Annotated[str, of_length(0, MOST_CHARACTERS)]
    """See `Spelling`."""
    character_embedding: Width
    hidden: Width
    layers: Depth
    size: Width
    """Number of dimensions of a word's vector."""


class CharLSTM(nn.Module):
    """Character LSTM, which encodes a word as a state from its characters."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Create a model with random weights, drawn from torch's default generator."""
        super().__init__()
        self.settings, self.spelling = settings, Spelling(settings.characters)
        self.characters = nn.Embedding(self.spelling.size, settings.character_embedding)
        self.lstm = nn.LSTM(settings.character_embedding, settings.hidden, settings.layers)
        self.centres = nn.Linear(settings.hidden, settings.size)
        self.contexts = nn.Linear(settings.hidden, settings.size)

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

    @torch.no_grad()
    def vectors(self, words: Sequence[str]) -> Matrix:
        """Return the embeddings (words, size) of `words`, which must not be empty strings."""
        vectors = np.empty((len(words), self.settings.size), np.float32)
        shortest_first = np.argsort(list(map(len, words)), kind="stable")  # a block takes as long as its longest word
        for begin in range(0, len(words), _BLOCK):
            block = shortest_first[begin : begin + _BLOCK]
            states = self(self.spelling.letters([words[number] for number in block]))
            vectors[block] = self.centres(states).cpu().numpy()
        return vectors


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
        ids = ids.to(states.device)
        vectors = model.centres(states), model.contexts(states)  # (ids, size) each
        tables = Tables(*(_table(each.detach(), ids, len(self._letters)) for each in vectors))
        loss, pairs, table_gradients = self._pairs.sums(tables, rows, keys)
        gradients = [_gradient_of(each, ids, of) for each, of in zip(table_gradients, vectors, strict=True)]
        return _KnownGradients.apply(loss, *vectors, *gradients), pairs  # type: ignore[no-untyped-call]


def _table(vectors: Tensor, ids: Tensor, words: int) -> Tensor:
    """Return a table of `words` rows with the `vectors` (m, size) of the words `ids` (m,). Other rows are
    uninitialised."""
    table = new_table(words, vectors.shape[1], vectors)
    table[:FIRST_WORD] = 0.0  # the torch implementation reads these rows as padding
    table[ids] = vectors
    return table


def _gradient_of(table_gradient: FactoredGradient, ids: Tensor, vectors: Tensor) -> Tensor:
    """Return the gradient of the `vectors` (m, size) of the words with the ascending `ids` (m,)."""
    rows, values = sum_touched_rows(table_gradient)
    return torch.zeros_like(vectors).index_copy_(0, torch.searchsorted(ids, rows), values)


class _KnownGradients(torch.autograd.Function):
    """Loss as a function of the two vectors of each word, with gradients that are computed already."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, _centres: Tensor, _contexts: Tensor, *gradients: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_centres, by_contexts = ctx.saved_tensors
        return None, gradient * by_centres, gradient * by_contexts, None, None


def write_encoder(path: Path, model: CharLSTM) -> None:
    """Write a character model to a file. Raises OSError or SafetensorError."""
    header = json.dumps({"format": FORMAT, **asdict(model.settings)})
    state = {name: tensor.cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, path, metadata={_METADATA: header})


def read_encoder(path: Path) -> CharLSTM:
    """Return the character model from a file. Raises DataError if the file is unreadable or invalid."""
    try:
        with safe_open(path, framework="pt") as stored:
            settings = _settings(stored.metadata() or {})
            names = stored.keys()
            state = {name: stored.get_tensor(name) for name in names}
        with torch.device("meta"):
            expected = CharLSTM(settings).state_dict()
        archive.require_tensors(state, expected)
        model = CharLSTM(settings)
        model.load_state_dict(state)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (DamagedError, DataError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} was not written by `shoal train`, or is damaged: {reason}; copy it again") from error
    return model.eval()


def _settings(metadata: Mapping[str, str]) -> EncoderSettings:
    values: dict[str, Any] = parse_json_object(metadata.get(_METADATA, "{}"))
    if values.pop("format", None) != FORMAT:
        raise DamagedError(f"its format is not {FORMAT}, the only format that this version of Shoal reads")
    settings = from_json(EncoderSettings, values)
    if len(set(settings.characters)) < len(settings.characters):
        raise DamagedError("its list of characters repeats a character")
    return settings
