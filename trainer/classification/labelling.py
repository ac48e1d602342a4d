"""Prediction of labels for new texts, in blocks.

Large blocks are fastest: rows of similar length are computed together, and a repeated text is computed once. The
prediction for a text must not depend on the other texts of its block. So padding must not change a prediction.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.encoding import EncodedRows, FastEncoder, PlainEncoder
from corpus.text import PADDING, UNKNOWN
from trainer.classification.trained_model import TrainedModel
from trainer.computing.threads import Threads

EncoderT = TypeVar("EncoderT", PlainEncoder, FastEncoder)

_BATCH_WORDS = 1 << 17
"""Number of words in a batch, including padding: about a thousand of the longest rows. Half or double this number is
equally fast; with an eighth of it, prediction takes a quarter longer."""
_FAST_FROM = 12 << 20
"""Minimum number of letters (or bytes of files) for the fast encoder. For less text, loading it takes longer than it
saves."""


class Prediction(NamedTuple):
    """Prediction for a text: its label, and the probability of each class.

    If the model knows no word of the text, `label` is missing (None), and all probabilities are equal. Such a text has
    only stopwords and unknown words, or no words at all.
    """

    label: int | str | None
    """1 (positive) or 0 (negative); in a model with more than two classes, the name of the class."""
    probabilities: tuple[float, ...]
    """Probability of each class, in the order of the labels."""

    @property
    def probability(self) -> float:
        """Probability of label 1; in a model with more than two classes, the probability of the predicted class."""
        return max(self.probabilities) if len(self.probabilities) > 2 else self.probabilities[-1]


class Labeller:
    """Predicts labels of texts with a model. Words outside the model's vocabulary count as unknown."""

    def __init__(
        self, model: TrainedModel, threshold: float | None = None, *, expected: int = 0, threads: int = 1
    ) -> None:
        """`threshold`: the probability above which a text is positive (default: the model's threshold).

        A model with named classes has no threshold: the most probable class is predicted, and in a tie the first.
        `expected`: the approximate number of letters in all texts, if known. `threads`: the number of CPU threads. Both
        affect only speed. PyTorch's own operations use a single thread from this call on.
        """
        torch.set_num_threads(1)
        self._threads = Threads(threads)
        self._model = model
        self._threshold = model.loss.threshold if threshold is None else threshold
        self._letters = expected
        self._encode: PlainEncoder | FastEncoder = _encoder(PlainEncoder, model)

    def __call__(self, texts: Sequence[str]) -> list[Prediction]:
        """Return the prediction for each text, in order."""
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        encoded = _without_unknown_rows(self.encoded(list(distinct)))
        probabilities = self._probabilities(encoded)
        results = zip(encoded.lengths.tolist(), self._labels(probabilities), probabilities.tolist(), strict=True)
        predictions = [Prediction(label if length else None, tuple(each)) for length, label, each in results]
        return [predictions[distinct[text]] for text in texts]

    def encoded(self, texts: Sequence[str]) -> EncodedRows:
        """Return the texts, encoded as rows of word ids."""
        self._letters += sum(map(len, texts))
        if self._letters >= _FAST_FROM and isinstance(self._encode, PlainEncoder):
            self._encode = _encoder(FastEncoder, self._model)
        return self._encode(texts)

    def _labels(self, probabilities: npt.NDArray[np.float64]) -> Sequence[int | str]:
        """Return the labels of N texts from their class probabilities (N, classes)."""
        if names := self._model.classes:
            return [names[label] for label in probabilities.argmax(1).tolist()]
        labels: list[int] = (probabilities[:, 1] > self._threshold).astype(int).tolist()
        return labels

    def _probabilities(self, encoded: EncodedRows) -> npt.NDArray[np.float64]:
        """Return the class probabilities (N, classes) of N texts. A text of length 0 has equal probabilities."""
        classes = self._model.loss.classes
        probabilities = np.full((len(encoded.lengths), classes), 1 / classes)
        longest_first = np.argsort(-encoded.lengths, kind="stable")[: np.count_nonzero(encoded.lengths)]
        batches, start = [], 0
        while start < len(longest_first):
            longest = int(encoded.lengths[longest_first[start]])
            batches.append(longest_first[start : start + max(1, _BATCH_WORDS // longest)])
            start += len(batches[-1])

        rows = _concatenate if self._model.classifier.reads_whole_texts else _pad

        def compute(first: int) -> None:
            with torch.inference_mode():
                for some in batches[first :: self._threads.count]:
                    outputs = self._model.classifier(rows(encoded, some), torch.from_numpy(encoded.lengths[some]))
                    probabilities[some] = self._model.loss.probabilities(outputs).double().numpy()

        self._threads.map(compute, range(min(self._threads.count, len(batches))))
        return probabilities


def _encoder(kind: type[EncoderT], model: TrainedModel) -> EncoderT:
    """Return an encoder with the model's vocabulary and tokenisation rule."""
    return kind(model.ids, model.stopwords, model.row_length, model.words)


def _without_unknown_rows(encoded: EncodedRows) -> EncodedRows:
    """Return the encoded rows, with rows that contain no known word set to length 0."""
    known = np.concatenate([[0], np.cumsum(encoded.ids != UNKNOWN)])
    ends = encoded.starts + encoded.lengths
    return encoded._replace(lengths=encoded.lengths * (known[ends] > known[encoded.starts]))


def _concatenate(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """Return the word ids of the rows with indices `numbers` (n,), concatenated: (t,) int32."""
    lengths = encoded.lengths[numbers]
    before = np.cumsum(lengths) - lengths  # (n,)
    place = np.arange(lengths.sum()) + np.repeat(encoded.starts[numbers] - before, lengths)  # (t,)
    return torch.from_numpy(encoded.ids[place])


def _pad(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """Return the padded rows with indices `numbers` (n,), which must begin with the longest row: (n, longest) int32."""
    lengths = encoded.lengths[numbers]
    place = np.arange(lengths[0])  # (longest,)
    ids = encoded.ids.take(encoded.starts[numbers, None] + place, mode="clip")  # (n, longest)
    return torch.from_numpy(np.where(place < lengths[:, None], ids, np.int32(PADDING)))
