"""A model of fastText's C++ program as a model of Shoal, which answers as the program does.

The program ends each line with a word `</s>`, which is part of n-grams, too. Words outside its vocabulary have no
vector of their own, but those of their n-grams of characters, and are hashed by their letters into n-grams of words.
`--model fasttext` has neither, so texts are read in a way of their own, `ProgramRows`. Of equally probable labels the
program takes the last, and Shoal the first class: the classes are its labels in reverse.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from corpus.encoding import EncodedRows
from corpus.reading.formats import FASTTEXT_PREFIX
from corpus.tokens import END_OF_LINE, char_ngrams, line_words, token_hash
from trainer.classification.losses import SOFTMAX, Loss, Scale
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.ngrams import features
from trainer.classification.models.vocabulary_rows import WordRows
from trainer.classification.trained_model import TrainedModel
from trainer.computing.row_gradients import mean_of_rows
from trainer.output.program_file import SOFTMAX as PROGRAM_SOFTMAX
from trainer.output.program_file import ProgramFile, class_names, read_program_file

_PREFIX = FASTTEXT_PREFIX.encode()
_KNOWN_WORDS = 1 << 18
"""Words whose hash and rows are kept."""
_LIMIT, _STEPS = 8, 512
"""Of the program's table of the logistic function, from -_LIMIT to _LIMIT."""


def read_program_model(path: Path, shown: str) -> TrainedModel:
    """The model in a file; `shown` is its address for messages. Raises TrainingError."""
    content = read_program_file(path, shown)
    classes = tuple(reversed(class_names(content, shown)))
    loss = _Softmax if content.loss == PROGRAM_SOFTMAX else _OneVsAll
    return TrainedModel(
        name="fasttext",
        settings={},
        classifier=_MeanOfRows(content).eval(),
        loss=loss(kind=SOFTMAX, scale=Scale(0, 1, 1), positive_weight=1.0, classes=len(classes)),
        ids={},
        stopwords=frozenset(),
        row_length=None,
        about={},
        words="line",
        classes=classes,
        encode=ProgramRows(content),
    )


class _MeanOfRows(Classifier):
    """The mean of rows of a table, and a linear layer."""

    reads_whole_texts = True

    def __init__(self, content: ProgramFile) -> None:
        super().__init__()
        self._vectors = nn.Parameter(torch.from_numpy(content.vectors))
        self._weights = nn.Parameter(torch.from_numpy(content.weights[::-1].copy()))

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:  # noqa: ARG002
        return mean_of_rows(self._vectors, tokens, lengths.cumsum(0)) @ self._weights.T


class _Softmax(Loss):
    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(1)


class _OneVsAll(Loss):
    """Each label has a probability of its own, which the program looks up in a table."""

    def probabilities(self, outputs: Tensor) -> Tensor:
        table = (torch.arange(_STEPS + 1, dtype=torch.float32) * 2 * _LIMIT / _STEPS - _LIMIT).sigmoid()
        places = ((outputs + _LIMIT) * _STEPS / _LIMIT / 2).clamp(0, _STEPS).long()
        inside = table[places]
        return torch.where(outputs > _LIMIT, 1.0, torch.where(outputs < -_LIMIT, 0.0, inside))


class _Word(NamedTuple):
    """What the program knows of a word: its hash, as a signed number of 32 bits, and its rows."""

    hash: int
    rows: Sequence[int]


class ProgramRows:
    """Texts to rows of the table of vectors as the program does (`Dictionary::getLine`)."""

    def __init__(self, content: ProgramFile) -> None:
        self._words = {word: row for row, word in enumerate(content.words)}
        self._others = frozenset([*content.labels, *content.ignored])
        self._count, self._buckets, self._ngrams = len(content.words), content.buckets, content.ngrams
        self._char_lengths = content.char_lengths
        self._word = lru_cache(_KNOWN_WORDS)(self._new_word)

    def __call__(self, texts: Sequence[str]) -> EncodedRows:
        """The rows of some texts: those of their words and of these words' n-grams of characters, and those of their
        n-grams of words."""
        read = list(map(line_words, texts))
        distinct = dict.fromkeys(chain.from_iterable(read))
        if left_out := {word for word in distinct if not self._is_word(word)}:
            read = [[word for word in words if word not in left_out] for words in read]
        numbers = {word: number for number, word in enumerate(distinct.keys() - left_out)}
        known = [self._word(word) for word in numbers]
        lengths = np.array([len(words) for words in read], np.int64)
        tokens = np.fromiter(map(numbers.__getitem__, chain.from_iterable(read)), np.int32, int(lengths.sum()))
        # `features` takes a table that begins with rows of these words alone, behind which those of buckets begin.
        shift = self._count - len(known)
        rows = np.fromiter(chain.from_iterable(word.rows for word in known), np.int64) - shift
        starts = np.cumsum([0, *(len(word.rows) for word in known)])
        found = features(
            torch.from_numpy(tokens),
            torch.from_numpy(lengths),
            torch.tensor([word.hash for word in known], dtype=torch.int64),
            ngrams=self._ngrams,
            buckets=self._buckets,
            of_words=WordRows(torch.from_numpy(rows.astype(np.int32)), torch.from_numpy(starts)),
        )
        ends = found.ends.numpy()
        starts = np.concatenate([[0], ends])[:-1]
        return EncodedRows(found.rows.numpy() + np.int32(shift), starts, ends - starts)

    def _is_word(self, word: bytes) -> bool:
        return word not in self._others and (word in self._words or not word.startswith(_PREFIX))

    def _new_word(self, word: bytes) -> _Word:
        found = token_hash(word)
        own = [self._words[word]] if word in self._words else []
        if self._char_lengths and word != END_OF_LINE:
            ngrams = char_ngrams(word.decode("utf-8", "surrogatepass"), self._char_lengths)
            hashes = (token_hash(ngram.encode("utf-8", "surrogatepass")) for ngram in ngrams)
            own += [self._count + each % self._buckets for each in hashes]
        return _Word(found - (found >> 31 << 32), own)
