"""Predicts labels of new texts, in blocks.

Large blocks are fastest: rows of similar length are computed together, and a repeated text is computed once. A
prediction must not depend on the other texts of its block, so padding must not change it. Predictions are in the order
of the texts.
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
"""Words of a model batch, including padding: about a thousand of the longest rows. Half or double the size takes as
long; an eighth takes a quarter longer."""
_FAST_FROM = 12 << 20
"""Number of letters (or bytes of files) from which the fast encoder saves more time than it takes to load."""


class Prediction(NamedTuple):
    """Prediction for a text: its label, and the probability of each class.

    A text without a word that the model knows has label None and equal probabilities. Such a text has only stopwords
    and unknown words, or no words.
    """

    label: int | str | None
    """1 (positive) or 0 (negative); with named classes, the name."""
    probabilities: tuple[float, ...]
    """Probability of each class, by label."""

    @property
    def probability(self) -> float:
        """Probability of label 1; with named classes, the probability of the predicted class."""
        return max(self.probabilities) if isinstance(self.label, str) else self.probabilities[-1]


class Labeller:
    """Labels texts with a model. Words outside its vocabulary count as unknown."""

    def __init__(
        self, model: TrainedModel, threshold: float | None = None, *, expected: int = 0, threads: int = 1
    ) -> None:
        """Create a labeller.

        `threshold`: the probability above which a text is positive (default: the model's). With named classes, the most
        probable class is predicted, and in a tie the first. `expected`: the approximate number of letters that will
        come, if known. `expected` and `threads` affect only speed. PyTorch itself uses one thread from now on.
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
        found = zip(encoded.lengths.tolist(), self._labels(probabilities), probabilities.tolist(), strict=True)
        predictions = [Prediction(label if length else None, tuple(each)) for length, label, each in found]
        return [predictions[distinct[text]] for text in texts]

    def encoded(self, texts: Sequence[str]) -> EncodedRows:
        """Return the texts as rows of word ids."""
        self._letters += sum(map(len, texts))
        if self._letters >= _FAST_FROM and isinstance(self._encode, PlainEncoder):
            self._encode = _encoder(FastEncoder, self._model)
        return self._encode(texts)

    def _labels(self, probabilities: npt.NDArray[np.float64]) -> Sequence[int | str]:
        """Return the labels of N texts from their probabilities (N, classes)."""
        if names := self._model.classes:
            return [names[label] for label in probabilities.argmax(1).tolist()]
        labels: list[int] = (probabilities[:, 1] > self._threshold).astype(int).tolist()
        return labels

    def _probabilities(self, encoded: EncodedRows) -> npt.NDArray[np.float64]:
        """Return the class probabilities (N, classes) of N texts; equal probabilities for a text of length 0."""
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
    """Return the rows, with length 0 for rows without a known word."""
    known = np.concatenate([[0], np.cumsum(encoded.ids != UNKNOWN)])
    ends = encoded.starts + encoded.lengths
    return encoded._replace(lengths=encoded.lengths * (known[ends] > known[encoded.starts]))


def _concatenate(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """Return the rows with indices `numbers` (n,), concatenated: (t,) int32."""
    lengths = encoded.lengths[numbers]
    before = np.cumsum(lengths) - lengths  # (n,)
    place = np.arange(lengths.sum()) + np.repeat(encoded.starts[numbers] - before, lengths)  # (t,)
    return torch.from_numpy(encoded.ids[place])


def _pad(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """Return the rows with indices `numbers` (n,), longest first, padded: (n, longest) int32."""
    lengths = encoded.lengths[numbers]
    place = np.arange(lengths[0])  # (longest,)
    ids = encoded.ids.take(encoded.starts[numbers, None] + place, mode="clip")  # (n, longest)
    return torch.from_numpy(np.where(place < lengths[:, None], ids, np.int32(PADDING)))
